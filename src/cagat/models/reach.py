"""How far the layers of CaGAT look."""

from cagat.diffusion.diffusion import is_zero
from cagat.nn import CaGATConv


def reach_of(conv: CaGATConv) -> int | None:
    r"""How many hops from a node the features can be that a layer's output there depends on.

    After :math:`m` steps, :math:`S` holds :math:`\bar{A}^m G (\bar{A}^T)^m`, whose rows reach :math:`2 m + 1` hops. On
    the edges, a step takes in the entries of neighbouring edges, and rows reach :math:`m + 1` hops. Features that enter
    the attention by their affinity, or are fed back, have looked around before.

    Returns:
        The number of hops, or ``None`` if all nodes see each other, by an affinity on all pairs.
    """
    alpha, lam, xi = conv.coefficients()
    if is_zero(lam):
        return 0
    has_context, has_affinity = not is_zero(alpha), not is_zero(xi) and conv.T > 0
    if has_affinity and conv.affinity == "full" and conv.K > 0:
        return None
    reach = [1]  # H = lam G Z + (1 - lam) Z.
    for k in range(1, conv.K + 1):
        steps = k * conv.T if has_context else 0
        own = steps + 1 if conv.support == "edges" else 2 * steps + 1
        if conv.feedback:
            own += reach[k - 1]
        if has_affinity:
            # The matrix of round r stands at most (k - r + 1) T hops away, at the ends of its edges.
            ends = [(k - r + 1) * conv.T if has_context else 1 for r in range(1, k + 1)]
            rounds = range(1, k + 1) if has_context else (k,)
            own = max(own, *(ends[r - 1] + reach[r - 1] for r in rounds))
        reach.append(own)
    return reach[conv.K]


def needs_degrees_at_its_end(conv: CaGATConv) -> bool:
    r"""Whether a layer divides by the degrees of the farthest nodes that it reaches, as :math:`\bar{A}^T` does.

    On the edges, for a walk, and where features that are fed back look one hop further, they are degrees of nearer
    nodes.
    """
    has_steps = conv.K * conv.T > 0 and not is_zero(conv.coefficients().alpha)
    return has_steps and conv.support == "full" and not conv.feedback and conv.normalization != "walk"
