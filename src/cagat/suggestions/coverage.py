r"""Our strategy: nodes that much hangs on, each in another region of the graph.

Features are smoothed over the graph, :math:`z_v` of length 1, and a set :math:`S` of labelled nodes covers node
:math:`v` as far as the nearest of them is similar to it. The next node is the one whose gain of coverage, times its
influence, is largest:

.. math::
    s = \arg\max_s \; \rho_s^{\,b} \sum_v u_v \Big( \max_{t \in S \cup s} \kappa(z_v, z_t)
        - \max_{t \in S} \kappa(z_v, z_t) \Big), \qquad \kappa(z, z') = \max(0, \langle z, z' \rangle)^p

where :math:`\rho` is PageRank and :math:`u_v` is 1, or if there is a model, from 1/2 for a node that it is sure of to 1
for one of which it knows nothing. Labels that are there already are part of :math:`S` from the start. Each node is
chosen after those before it and without a look at the budget, so that the first k of a larger budget are a good choice
of k.

The constants were chosen on cora, citeseer, cora_ml and pubmed, on one half of the nodes
(`RandomState(100).permutation(n)[: n // 2]`): some twenty variants by how often the nearest chosen node is of the same
class, then a dozen by the accuracy of CaGAT with 2 times as many labels as classes, on the three smaller graphs and
mostly with one seed, 100. Differences between most of these variants are within what a seed changes. On these graphs,
results for that half are optimistic.
"""

import numpy as np
from numpy.typing import NDArray

from cagat.suggestions.node_space import NodeSpace, blocks, unit_rows
from cagat.suggestions.strategy import Choice, Question, lazy_greedy

STEPS, RESTART = 6, 0.15
SHARPNESS = 2
INFLUENCE = 0.25
MOST_CANDIDATES = 4096
MOST_DEMANDS = 20_000
UNSURE = 0.6
"""A model that gives its best class less than this is unsure of a node."""


def coverage(question: Question) -> list[Choice]:
    """Choose by influence and gain of coverage; see the module."""
    space = question.space
    z = unit_rows(space.smoothed(STEPS, RESTART))
    random = np.random.RandomState(question.seed)
    candidates = _candidates(space, question.unlabelled, question.budget, random)
    # A sample of a large graph says about the same of every gain as all of it.
    demands = np.arange(len(z))
    if len(z) > MOST_DEMANDS:
        demands = np.sort(random.permutation(len(z))[:MOST_DEMANDS])
    weight = np.ones(len(demands), dtype=np.float32)
    if question.uncertainty is not None:
        weight = ((1 + question.uncertainty[demands]) / 2).astype(np.float32)
    wanted, offered = z[demands], z[candidates]
    covered = np.zeros(len(demands), dtype=np.float32)
    for part in blocks(len(question.labelled)):
        covered = np.maximum(covered, _similarity(wanted, z[question.labelled[part]]).max(axis=1))
    influence = np.power(space.pagerank[candidates], INFLUENCE)

    def gains(some: NDArray[np.int64]) -> NDArray[np.float64]:
        found = np.empty(len(some))
        for part in blocks_of(some):
            gain = _similarity(wanted, offered[some[part]])
            gain -= covered[:, None]
            found[part] = weight @ np.maximum(gain, 0, out=gain)
        return np.asarray(found * influence[some] / max(float(weight.sum()), np.finfo(np.float64).tiny))

    def take(candidate: int) -> None:
        np.maximum(covered, _similarity(wanted, offered[[candidate]])[:, 0], out=covered)

    chosen = [(int(candidates[one]), gain) for one, gain in lazy_greedy(len(candidates), question.budget, gains, take)]
    reasons = _reasons(question, z, np.array([node for node, _ in chosen], dtype=np.int64))
    return [Choice(node, gain, reason) for (node, gain), reason in zip(chosen, reasons, strict=True)]


def blocks_of(some: NDArray[np.int64]) -> list[slice]:
    """Few candidates at a time: against twenty thousand nodes they are a large matrix."""
    return [slice(start, start + 256) for start in range(0, len(some), 256)]


def _candidates(
    space: NodeSpace, unlabelled: NDArray[np.int64], budget: int, random: np.random.RandomState
) -> NDArray[np.int64]:
    """Of many nodes those with the largest PageRank, and as many others drawn at random."""
    most = max(MOST_CANDIDATES, 2 * budget)
    if len(unlabelled) <= most:
        return unlabelled
    order = np.argsort(-space.pagerank[unlabelled], kind="stable")
    drawn = random.permutation(order[most // 2 :])[: most - most // 2]
    return np.sort(unlabelled[np.concatenate([order[: most // 2], drawn])])


def _similarity(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    found = a @ b.T
    np.maximum(found, 0, out=found)
    found **= SHARPNESS  # A square for NumPy, which np.power(found, 2) is not.
    return np.asarray(found)


def _reasons(question: Question, z: NDArray[np.float32], chosen: NDArray[np.int64]) -> list[str]:
    """How many nodes each stands for: those that no other chosen or labelled node is more similar to."""
    known = question.labelled
    nearest = np.empty(len(z), dtype=np.int64)
    for rows in blocks(len(z)):
        best = z[rows] @ z[chosen].T
        nearest[rows], similarity = best.argmax(axis=1), best.max(axis=1)
        for part in blocks(len(known)):
            nearest[rows][(z[rows] @ z[known[part]].T).max(axis=1) > similarity] = len(chosen)
    nearest[chosen] = np.arange(len(chosen))
    counts = np.bincount(nearest, minlength=len(chosen))
    nearer = "no labelled and no other suggested node is nearer to"
    told = [f"stands for {count} node{'s' * (count != 1)} that {nearer}" for count in counts.tolist()]
    if question.probabilities is None:
        return told[: len(chosen)]
    unsure = np.bincount(nearest[question.probabilities.max(axis=1) < UNSURE], minlength=len(chosen))
    return [f"{text}; the model is unsure of {unsure[one]} of them" for one, text in enumerate(told[: len(chosen)])]
