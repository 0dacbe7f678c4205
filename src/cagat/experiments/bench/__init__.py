"""What the layer and its training cost, beside others, measured interleaved in one run: issue 'Performance'."""

from collections.abc import Callable, Iterator

from cagat.errors import DatasetError
from cagat.experiments.bench.epochs import measure_epochs
from cagat.experiments.bench.layers import measure_alternatives, measure_layers, measure_reference
from cagat.experiments.bench.measurement import Budget, Measurement
from cagat.experiments.bench.scale import measure_memory, measure_scale

__all__ = ["Budget", "Measurement", "measure"]


def measure(
    *,
    quick: bool = False,
    compare: bool = False,
    repeats: int = 30,
    threads: tuple[int, ...] = (1, 2),
    left_out: Callable[[str], None] = lambda reason: None,
) -> Iterator[Measurement]:
    """All rows, one after the other.

    Args:
        quick: Only the layer on Cora and PubMed, in less than a minute.
        compare: Also the layers that users would pick instead.
        repeats: How often each side is measured at the most; slow cases are measured less often.
        threads: The numbers of threads.
        left_out: Told why rows are left out, if their graph cannot be had.
    """
    budget = Budget(1.5 if quick else 6.0, repeats)
    parts: list[Iterator[Measurement]] = []
    for name in ("cora", "pubmed"):
        parts.append(measure_layers(name, threads, budget))
        if compare:
            parts.append(measure_alternatives(name, threads, budget))
        if not quick:
            parts.append(measure_epochs(name, threads, budget))
    if not quick:
        parts += [measure_reference(threads), measure_memory(), measure_scale(max(threads))]
    for part in parts:
        yield from _unless_absent(part, left_out)


def _unless_absent(part: Iterator[Measurement], left_out: Callable[[str], None]) -> Iterator[Measurement]:
    try:
        yield from part
    except DatasetError as error:
        left_out(str(error))
