"""What the layer and its training cost, beside others, measured interleaved in one run."""

from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

from cagat.errors import CagatError
from cagat.experiments.bench.in_turns import measure_dgl
from cagat.experiments.bench.layers import measure_alternatives, measure_epochs, measure_layers, measure_reference
from cagat.experiments.bench.measurement import Budget, Measurement
from cagat.experiments.bench.scale import measure_memory, measure_peer_scale, measure_scale
from cagat.experiments.bench.waiting import measure_labelling, measure_suggestions

__all__ = ["Budget", "Measurement", "measure"]


def measure(
    *,
    quick: bool = False,
    compare: bool = False,
    waiting: bool = False,
    repeats: int = 30,
    threads: tuple[int, ...] = (1, 2),
    dgl_python: Path | None = None,
    left_out: Callable[[str], None] = lambda reason: None,
) -> Iterator[Measurement]:
    """All rows, one after the other.

    Args:
        quick: Only the layer on Cora and PubMed, in about a minute.
        compare: Also the layers that users would pick instead.
        waiting: Only how long people wait for `cagat suggest` and `cagat label`.
        repeats: How often each side is measured at the most; slow cases are measured less often.
        threads: The numbers of threads.
        dgl_python: The Python of an environment that has DGL, to compare with that, too.
        left_out: Told why rows are left out, if their graph or their peer cannot be had.
    """
    budget = Budget(1.5 if quick else 6.0, repeats)
    measured: list[Iterator[Measurement]] = []
    if waiting:
        measured = [measure_labelling("cora", 300, 5), measure_labelling("pubmed", 1000, 30), measure_suggestions()]
    for name in () if waiting else ("cora", "pubmed"):
        measured.append(measure_layers(name, threads, budget))
        if compare:
            measured.append(measure_alternatives(name, threads, budget))
            if dgl_python is not None:
                measured.append(measure_dgl(name, threads, repeats, dgl_python))
        if not quick:
            measured.append(measure_epochs(name, threads, budget))
    if not quick and not waiting:
        measured += [measure_reference(threads), measure_memory(), measure_scale(threads), measure_peer_scale(threads)]
    if compare and dgl_python is None:
        left_out(
            "DGL's GATConv: the newest DGL that pip finds, 2.1.0, is built for PyTorch 2.0 to 2.2 and cannot be "
            f"imported beside PyTorch {version('torch')}. Name the Python of an environment that has it with --dgl."
        )
    for one in measured:
        try:
            yield from one
        except CagatError as error:  # noqa: PERF203  A part takes seconds.
            left_out(str(error))
