"""Suggest nodes to label: of a graph by its name, in a file or in memory, with or without a model that was trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from cagat.data.features import lacks_features, structural_features
from cagat.data.loading import is_name
from cagat.errors import ConfigError, DatasetError, nearest
from cagat.suggestions import published
from cagat.suggestions.coverage import coverage
from cagat.suggestions.node_space import NodeSpace
from cagat.suggestions.strategy import Question, Strategy
from cagat.training import TrainedRun
from cagat.training.problem import graph_digest, load_graph

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT = "coverage"

STRATEGIES: Mapping[str, Strategy] = MappingProxyType({
    DEFAULT: coverage,
    "random": published.random,
    "pagerank": published.pagerank,
    "featprop": published.featprop,
    "age": published.age,
    "grain": published.grain,
})  # fmt: skip
"""By name; the first is ours."""

LIKES_A_MODEL = frozenset({"age"})
"""Strategies of papers that ask a model again and again while labels come in."""


@dataclass(frozen=True)
class Suggestion:
    """A node that should be labelled: its rank from 1, its name and number, what it is worth, and why."""

    rank: int
    node: str
    index: int
    score: float
    reason: str


def suggest(
    graph: Data | str | Path,
    n: int,
    *,
    strategy: str = DEFAULT,
    seed: int = 0,
    run: str | Path | None = None,
    labelled: Sequence[int] | NDArray[Any] | None = None,
    data_dir: str | None = None,
) -> list[Suggestion]:
    """Suggest nodes to label, in the order in which they should be labelled.

    Nodes that have a label already are never suggested; what they cover is taken into account. With a run, so is what
    its model is unsure of.

    Args:
        graph: A graph as :func:`cagat.data.load` gives it, or what that takes: a name or a path. A published graph by
            its name counts as one without labels.
        n: How many nodes.
        strategy: `"coverage"` is ours; the others, for comparison, are `"random"`, `"pagerank"`, `"featprop"`, `"age"`
            and `"grain"`.
        seed: Decides what is drawn at random.
        run: The directory of a run that was trained on this graph.
        labelled: The numbers of the nodes that count as labelled, or a mask, instead of those with a label in the
            graph; `[]` to choose as if there were no labels. Those that a run was trained on count in any case.
        data_dir: Where published graphs are looked for.

    Raises:
        ConfigError: There is no such strategy, or `n` is not from 1 to the number of nodes without a label.
        DatasetError: The run was trained on another graph.

    Examples:
        >>> import cagat
        >>> [one.rank for one in cagat.suggest("karate", 2)]
        [1, 2]
    """
    name, trained = str(graph), None if run is None else TrainedRun(run)
    if not isinstance(graph, Data):
        config, encoder = (None, None) if trained is None else (trained.config, trained.encoder)
        data_dir = config.data_dir if data_dir is None and config is not None else data_dir
        as_given = is_name(name) and labelled is None
        graph, labelled = load_graph(name, data_dir, config, encoder), () if as_given else labelled
    elif graph.x is None or lacks_features(graph):
        graph = structural_features(graph)
    known, probabilities = _labelled(graph, labelled), None
    if trained is not None:
        problem = trained.problem
        if graph_digest(graph) != graph_digest(problem.graph):
            raise DatasetError(
                f"The run in {run} was trained on {trained.config.dataset}, which is not the graph to be labelled "
                f"({graph.name}). Give that graph, or leave the run out."
            )
        parts = (problem.split.train.numpy(), problem.split.val.numpy())
        known = np.union1d(known, np.concatenate(parts))
        probabilities = trained.probabilities(graph).numpy()
    weight = getattr(graph, "edge_weight", None)
    return suggest_in(
        NodeSpace(graph.x, graph.edge_index, weight, seed),
        n,
        labelled=known,
        strategy=strategy,
        seed=seed,
        probabilities=probabilities,
        num_classes=len(graph.get("class_names", ())),
        names=graph.get("node_names"),
    )


def suggest_in(
    space: NodeSpace,
    n: int,
    *,
    labelled: NDArray[np.int64],
    strategy: str = DEFAULT,
    seed: int = 0,
    probabilities: NDArray[np.float64] | None = None,
    num_classes: int = 2,
    names: Sequence[str] | None = None,
) -> list[Suggestion]:
    """As :func:`suggest`, in a space that may be asked again."""
    if strategy not in STRATEGIES:
        raise ConfigError(f"There is no strategy {strategy!r}.{nearest(strategy, STRATEGIES)}")
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ConfigError(f"The number of nodes to suggest must be at least 1, got {n!r}.")
    left = space.num_nodes - len(labelled)
    if left == 0:
        raise ConfigError(
            f"All {space.num_nodes} nodes have a label, so there is none to suggest. In Python, labelled=[] chooses as "
            "if there were no labels."
        )
    if n > left:
        raise ConfigError(
            f"{n} nodes were asked for, but only {left} of {space.num_nodes} have no label. Ask for at most {left}."
        )
    question = Question(space, labelled, int(n), seed, probabilities, max(2, num_classes))
    found = STRATEGIES[strategy](question)
    return [
        Suggestion(rank, str(one.node) if names is None else names[one.node], one.node, one.score, one.reason)
        for rank, one in enumerate(found, 1)
    ]


def suggestions_table(found: Sequence[Suggestion]) -> "pa.Table":
    """One row per suggestion: rank, node, score, reason."""
    import pyarrow as pa

    return pa.table({key: [getattr(one, key) for one in found] for key in ("rank", "node", "score", "reason")})


def _labelled(graph: Data, given: Sequence[int] | NDArray[Any] | None) -> NDArray[np.int64]:
    """The numbers of the nodes that count as labelled, each once, in order."""
    size = int(graph.num_nodes)
    if given is None:
        y = getattr(graph, "y", None)
        return np.empty(0, dtype=np.int64) if y is None else np.flatnonzero(y.numpy() >= 0)
    nodes = np.asarray(given)
    if nodes.size == 0:
        return np.empty(0, dtype=np.int64)
    if nodes.dtype == bool and nodes.shape == (size,):
        return np.flatnonzero(nodes)
    if nodes.ndim != 1 or nodes.dtype.kind not in "iu" or nodes.min() < 0 or nodes.max() >= size:
        raise ConfigError(
            f"labelled must be numbers of nodes from 0 to {size - 1}, or a mask of {size}, got {given!r:.80}."
        )
    return np.unique(nodes.astype(np.int64))
