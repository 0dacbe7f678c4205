"""Features on their way down to G."""

from torch import Tensor

from cagat.kernels import CSRGraph


class Chain:
    r"""The features :math:`V_0 = V` and :math:`V_i = \bar{A}^T V_{i-1}`, each made when it is first asked for.

    All rounds that multiply the same features share one chain. Its links are with halo, as products ask for them. With
    ``normalization="walk"``, where :math:`\bar{A}` stands on both sides of S, it is :math:`V_i = \bar{A} V_{i-1}`.

    Args:
        graph: The graph.
        normalization: How :math:`\bar{A}` is normalised.
        V: The features, of shape ``(n, heads or 1, C)``.
        transpose: Whether they are to be multiplied by the transpose of S, whose chain is that of the other side.
    """

    def __init__(self, graph: CSRGraph, normalization: str, V: Tensor, *, transpose: bool = False) -> None:
        self._graph = graph
        self._normalization = normalization
        self._is_transposed = normalization != "walk" or transpose
        self._links = [graph.gather_halo(V)]

    def up_from(self, step: int) -> list[Tensor]:
        """The features ``V_step, ..., V_1, V_0``."""
        while len(self._links) <= step:
            link = self._graph.propagate(self._links[-1], self._normalization, transpose=self._is_transposed)
            self._links.append(self._graph.gather_halo(link))
        return self._links[step::-1]
