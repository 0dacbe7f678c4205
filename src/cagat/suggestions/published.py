"""Strategies of others, each from its paper, for comparison."""

import numpy as np
from numpy.typing import NDArray

from cagat.suggestions.node_space import NodeSpace, blocks, squared_distances
from cagat.suggestions.strategy import Choice, Question, lazy_greedy

_STEPS = 2
"""How far a network of two layers looks; FeatProp and Grain smooth features so often."""

_MANY = 100_000
"""Nodes above which k-means sees a part of them at a time, and Grain has fewer candidates and looks at a sample."""

_SAMPLE = 20_000
_CANDIDATES = 4096


def random(question: Question) -> list[Choice]:
    """Nodes drawn at random, all equally likely."""
    drawn = np.random.RandomState(question.seed).permutation(question.unlabelled)[: question.budget]
    return [Choice(int(node), 0.0, "drawn at random") for node in drawn]


def pagerank(question: Question) -> list[Choice]:
    """The nodes of the largest PageRank."""
    rank = question.space.pagerank
    order = np.argsort(-rank[question.unlabelled], kind="stable")[: question.budget]
    return [
        Choice(int(node), float(rank[node]), f"its PageRank is {rank[node]:.1f} times the average")
        for node in question.unlabelled[order]
    ]


def featprop(question: Question) -> list[Choice]:
    """`FeatProp <https://arxiv.org/abs/1910.07567>`_: nodes nearest to the centres of clusters of smoothed features.

    There are as many clusters as nodes are asked for, so that a larger budget is another choice; those that stand for
    most nodes come first. Clusters are k-means', whose nearest nodes stand for the paper's medoids.
    """
    z = question.space.smoothed(_STEPS)
    centres, cluster = _clusters(z, min(question.budget, len(z)), question.seed)
    sizes = np.bincount(cluster, minlength=len(centres))
    order = np.argsort(-sizes, kind="stable")
    is_free = np.zeros(len(z), dtype=bool)
    is_free[question.unlabelled] = True
    chosen = []
    for centre in order:
        distance = squared_distances(z, centres[[centre]])[:, 0]
        distance[~is_free] = np.inf
        node = int(distance.argmin())
        is_free[node] = False
        reason = f"nearest to the centre of {sizes[centre]} nodes with similar surroundings"
        chosen.append(Choice(node, float(sizes[centre]), reason))
    return chosen


def age(question: Question) -> list[Choice]:
    """`AGE <https://arxiv.org/abs/1705.05085>`_: uncertainty, density and centrality, each as a percentile.

    Density is nearness to the centre of one of as many clusters as there are classes, in the space of smoothed
    features; centrality is PageRank. The weight of centrality is drawn from a Beta distribution and falls as labels
    grow in number; the other two share the rest. Without a model nothing is known of uncertainty, and density has it.
    """
    space, free = question.space, question.unlabelled
    random = np.random.RandomState(question.seed)
    z = space.smoothed(_STEPS)
    centres, cluster = _clusters(z, min(question.num_classes, len(z)), question.seed)
    density = _percentile((1 / (1 + np.linalg.norm(z - centres[cluster], axis=1)))[free])
    centrality = _percentile(space.pagerank[free])
    unsure = None if question.uncertainty is None else _percentile(question.uncertainty[free])
    is_free, chosen = np.ones(len(free), dtype=bool), []
    for number in range(question.budget):
        share = random.beta(1, 1.005 - 0.995 ** (len(question.labelled) + number))
        other = density if unsure is None else (density + unsure) / 2
        score = np.where(is_free, share * centrality + (1 - share) * other, -np.inf)
        best = int(score.argmax())
        is_free[best] = False
        told = {"density": density, "centrality": centrality} | ({} if unsure is None else {"uncertainty": unsure})
        reason = ", ".join(f"{name} above {100 * of[best]:.0f} % of nodes" for name, of in told.items())
        chosen.append(Choice(int(free[best]), float(score[best]), reason))
    return chosen


def grain(question: Question) -> list[Choice]:
    """`Grain <https://arxiv.org/abs/2108.00219>`_ (NN-D): nodes within two steps, and nearness of smoothed features.

    Greedily, the share of nodes that a chosen node reaches in two steps plus the mean over all nodes of one minus the
    distance to the nearest chosen one, where distances are divided by the largest.
    """
    space = question.space
    z, random = space.smoothed(_STEPS), np.random.RandomState(question.seed)
    is_large = space.num_nodes > _MANY
    seen = np.sort(random.permutation(space.num_nodes)[:_SAMPLE]) if is_large else np.arange(space.num_nodes)
    free = question.unlabelled
    if is_large:
        free = np.sort(free[np.argsort(-space.pagerank[free], kind="stable")[: max(_CANDIDATES, 2 * question.budget)]])
    largest = max(_largest_distance(z[seen]), float(np.finfo(np.float32).tiny))
    reached, distance = np.zeros(space.num_nodes, dtype=bool), np.ones(len(seen), dtype=np.float32)
    counts: dict[int, int] = {}
    new = 0

    def gains(some: NDArray[np.int64]) -> NDArray[np.float64]:
        found = np.empty(len(some))
        for start in range(0, len(some), 256):
            part = slice(start, start + 256)
            apart = np.sqrt(squared_distances(z[seen], z[free[some[part]]])) / largest
            found[part] = np.maximum(distance[:, None] - apart, 0).mean(axis=0)
        for index, one in enumerate(some.tolist()):
            counts[one] = int((~reached[_reach(space, int(free[one]))]).sum())
            found[index] += counts[one] / space.num_nodes
        return found

    def choose(node: int) -> None:
        reached[_reach(space, node)] = True
        np.minimum(distance, np.sqrt(squared_distances(z[seen], z[[node]])[:, 0]) / largest, out=distance)

    for node in question.labelled.tolist():
        choose(node)
    chosen = []
    for one, gain in lazy_greedy(len(free), question.budget, gains, lambda one: choose(int(free[one]))):
        new = counts[one]
        reason = f"reaches {new} node{'s' * (new != 1)} in two steps that nothing chosen before it reaches"
        chosen.append(Choice(int(free[one]), gain, reason))
    return chosen


def _reach(space: NodeSpace, node: int) -> NDArray[np.int64]:
    """The nodes at most two steps away from a node, each once."""
    first = np.append(space.neighbours(np.array([node])), node)
    return np.unique(np.concatenate([first, space.neighbours(first)]))


def _largest_distance(z: NDArray[np.float32]) -> float:
    return float(max(np.sqrt(squared_distances(z[part], z).max()) for part in blocks(len(z))))


def _percentile(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each value the share of values that are smaller, by more than what rounding does."""
    values = np.round(values, 5)
    return np.asarray(np.searchsorted(np.sort(values), values) / len(values))


def _clusters(z: NDArray[np.float32], count: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The centres of k-means, and which of them each node is in."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    kind = MiniBatchKMeans if len(z) > _MANY else KMeans
    found = kind(count, n_init=1, random_state=seed).fit(z)
    return np.asarray(found.cluster_centers_, dtype=np.float32), np.asarray(found.labels_, dtype=np.int64)
