"""Features on their way down to G."""

from torch import Tensor

from cagat.kernels import CSRGraph, spmm


class Chain:
    r"""The features :math:`V_0 = V` and :math:`V_i = \bar{A}^T V_{i-1}`, each made when it is first asked for.

    All rounds that multiply the same features share one chain.

    Args:
        graph: The graph.
        weights: The values of :math:`\bar{A}` in both orders.
        V: The features, of shape ``(n, heads or 1, C)``.
    """

    def __init__(self, graph: CSRGraph, weights: tuple[Tensor, Tensor], V: Tensor) -> None:
        self._graph = graph
        self._weights = weights
        self._links = [V]

    def up_from(self, step: int) -> list[Tensor]:
        """The features ``V_step, ..., V_1, V_0``."""
        while len(self._links) <= step:
            self._links.append(spmm(self._graph.pattern, self._weights, self._links[-1], transpose=True))
        return self._links[step::-1]
