"""How long our layer takes beside PyG's, measured interleaved in one run."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch_geometric.nn import GATConv

from cagat import data
from cagat.kernels import CSRGraph
from cagat.nn import CaGATConv

# What the layer is asked to do, and the options that make it do so.
_LAYERS: dict[str, dict[str, Any]] = {
    "layer": {},
    "layer, xi=0": {"xi": 0.0},
    "layer, plain GAT (alpha=0, xi=0, lam=1)": {"alpha": 0.0, "xi": 0.0, "lam": 1.0},
}


@dataclass(frozen=True)
class Measurement:
    """One row of the table: medians of forward and backward together, and the spread of the middle half.

    Attributes:
        case: What was measured, and on which graph.
        threads: How many threads both sides had.
        ours_ms: Our median.
        ours_spread_ms: The distance of our quartiles.
        peer: What was measured beside us.
        peer_ms: Its median.
        peer_spread_ms: The distance of its quartiles.
        ratio: Our median over its median.
    """

    case: str
    threads: int
    ours_ms: float
    ours_spread_ms: float
    peer: str
    peer_ms: float
    peer_spread_ms: float
    ratio: float

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON takes it."""
        return asdict(self)


def measure_layers(
    dataset: str = "cora", threads: tuple[int, ...] = (1, 2), repeats: int = 30
) -> Iterator[Measurement]:
    """Forward and backward of 64 -> 8 heads x 8 units, ours and PyG's GATConv in turn on the same prepared graph."""
    graph = data.load(dataset)
    prepared = CSRGraph.from_edge_index(graph.edge_index, graph.num_nodes)
    torch.manual_seed(0)
    x = torch.randn(graph.num_nodes, 64, requires_grad=True)
    before = torch.get_num_threads()
    try:
        for number in threads:
            torch.set_num_threads(number)
            for case, options in _LAYERS.items():
                ours, peer = CaGATConv(64, 8, 8, **options), GATConv(64, 8, 8, add_self_loops=False)
                ours_ms, peer_ms = _interleaved(
                    _step(ours, x, prepared), _step(peer, x, prepared.edge_index), repeats=repeats
                )
                yield Measurement(
                    case=f"{case}, {dataset}",
                    threads=number,
                    ours_ms=statistics.median(ours_ms),
                    ours_spread_ms=_spread(ours_ms),
                    peer="PyG GATConv",
                    peer_ms=statistics.median(peer_ms),
                    peer_spread_ms=_spread(peer_ms),
                    ratio=statistics.median(ours_ms) / statistics.median(peer_ms),
                )
    finally:
        torch.set_num_threads(before)


def _step(layer: torch.nn.Module, *inputs: Any) -> Callable[[], None]:
    def step() -> None:
        layer.zero_grad()
        layer(*inputs).sum().backward()

    return step


def _interleaved(*steps: Callable[[], None], repeats: int) -> list[list[float]]:
    """The milliseconds of each step, taken in turn, so that what disturbs the machine disturbs all alike."""
    times: list[list[float]] = [[] for _ in steps]
    for step in steps:  # The first calls compile and fill caches.
        step()
        step()
    for _ in range(repeats):
        for step, taken in zip(steps, times, strict=True):
            started = time.perf_counter()
            step()
            taken.append(1000 * (time.perf_counter() - started))
    return times


def _spread(times: list[float]) -> float:
    low, _, high = statistics.quantiles(times, n=4)
    return high - low
