"""A graph, prepared once for all products."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from cagat.kernels.csr_pattern import CSRPattern, LocalOrder
from cagat.kernels.operators import spmm
from cagat.kernels.validation import check_edges, checked_weight, require_choice

MATRIX_OF = {"row": "row", "sym": "sym", "walk": "row", "gcn": "sym"}
"""The matrix that each normalisation diffuses with; what else they differ in is not the matrix."""


class _Prepared:
    """What was computed from a graph, each made when it is first asked for."""

    def __init__(self) -> None:
        self.results: dict[Any, Any] = {}

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self.results:
            # It outlives the call: training must be able to use what an evaluation was the first to ask for.
            with torch.inference_mode(False), torch.no_grad():
                self.results[key] = make()
        return self.results[key]


@dataclass(frozen=True, eq=False)
class CSRGraph:
    r"""The adjacency matrix :math:`A` of a graph in compressed rows, with all that the products need.

    Row :math:`i` holds the edges *into* node :math:`i`: ``edge_index`` follows PyG, so that ``edge_index[0]`` are the
    sources :math:`j`, ``edge_index[1]`` the targets :math:`i`, and :math:`A_{ij}` is the weight of :math:`j \to i`.
    Build it with :meth:`from_edge_index` and pass it wherever a layer takes an ``edge_index``; it is then taken as it
    is, whatever the layer says about self-loops.

    The edges of the caller keep their order. An edge that is given twice is one entry of :math:`A`: it counts once
    without weights, and its weights add up where there are weights.

    Attributes:
        pattern: Where the entries of :math:`A` are.
        adjacency: The values of :math:`A`, as float64; a single number, expanded, if there are no weights.
        entry: The entry of :math:`A` that each column of :attr:`edge_index` belongs to.
        num_given: How many columns of :attr:`edge_index` are the caller's.
        has_added_loops: Whether missing self-loops were added.
    """

    pattern: CSRPattern
    adjacency: Tensor
    entry: Tensor
    num_given: int
    has_added_loops: bool
    _prepared: _Prepared = field(default_factory=_Prepared, init=False, repr=False)

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        edge_weight: Tensor | None = None,
        *,
        add_self_loops: bool = True,
        normalization: str = "row",
        dtype: torch.dtype | None = None,
    ) -> "CSRGraph":
        """Prepare a graph.

        Args:
            edge_index: Sources and targets.
            num_nodes: The number of nodes, edges or none.
            edge_weight: A non-negative weight for each edge; 1 if none are given.
            add_self_loops: Whether nodes without a self-loop get one, of weight 1. A self-loop that is given stays,
                with its weight.
            normalization: The normalisation to have ready; any other is made when it is asked for.
            dtype: The dtype to have it ready in (default: torch's default dtype).

        Shapes:
            - **edge_index:** :math:`(2, |E|)`
            - **edge_weight:** :math:`(|E|)` or :math:`(|E|, 1)`
        """
        check_edges(edge_index, num_nodes)
        dtype = dtype or torch.get_default_dtype()
        # What is made here outlives the call, as in _Prepared, and does not change with the caller's tensors.
        with torch.inference_mode(False), torch.no_grad():
            edges = edge_index.to(torch.long, copy=True)
            weight = None if edge_weight is None else checked_weight(edge_weight, edges)
            num_given = edges.size(1)
            if add_self_loops:
                has_loop = torch.zeros(num_nodes, dtype=torch.bool, device=edges.device)
                has_loop[edges[0, edges[0] == edges[1]]] = True
                loops = (~has_loop).nonzero().squeeze(1)
                edges = torch.cat([edges, loops.expand(2, -1)], dim=1)
                if weight is not None:
                    weight = torch.cat([weight, weight.new_ones(loops.numel())])

            source, target = edges
            key, entry = torch.unique(target * num_nodes + source, return_inverse=True)
            row = torch.div(key, max(num_nodes, 1), rounding_mode="floor")
            adjacency = torch.ones(1, dtype=torch.float64, device=edges.device).expand(key.numel())
            if weight is not None:
                adjacency = torch.zeros_like(adjacency).index_add_(0, entry, weight)
            pattern = CSRPattern.from_sorted(row, key - row * num_nodes, num_nodes, num_nodes)
        graph = cls(pattern, adjacency, entry.to(pattern.col.dtype), num_given, add_self_loops)
        if graph.device.type == "cpu":
            graph.local_transition(normalization, dtype)
        else:  # Other devices have no use for that.
            graph.transition(normalization, dtype)
        return graph

    @classmethod
    def from_transition(cls, pattern: CSRPattern, weights: tuple[Tensor, Tensor]) -> "CSRGraph":
        """A graph of which no more is known than the pattern and the values of its ``"row"`` transition."""
        none = torch.empty(0, dtype=torch.long, device=pattern.col.device)
        graph = cls(pattern, weights[0].double(), none, num_given=0, has_added_loops=False)
        graph._prepared.results["row", weights[0].dtype] = weights
        return graph

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.pattern.num_rows

    @property
    def num_entries(self) -> int:
        """The number of entries of the adjacency matrix, self-loops among them."""
        return self.pattern.num_entries

    @property
    def edge_index(self) -> Tensor:
        """The caller's edges as given, then the self-loops that were added; made when they are first asked for."""

        def make() -> Tensor:
            entry = self.entry.long()
            return torch.stack([self.pattern.col.long()[entry], self.pattern.rows()[entry]])

        edges: Tensor = self._prepared.get("edge index", make)
        return edges

    @property
    def device(self) -> torch.device:
        """Where the graph lies."""
        return self.adjacency.device

    @property
    def is_whole(self) -> bool:
        """Whether all nodes are here; of a graph that is parted among processes, each holds some."""
        return True

    @property
    def runs_passes(self) -> bool:
        """Whether compiled passes over several steps can run on it."""
        return True

    @property
    def global_nodes(self) -> Tensor | None:
        """Which nodes of the whole graph these are, if it is parted."""
        return None

    @property
    def global_entries(self) -> Tensor | None:
        """Which entries of the whole graph these are, if it is parted."""
        return None

    def gather_halo(self, x: Tensor) -> Tensor:
        """Rows of nodes as the pattern's columns ask for them: with those of neighbours that other processes hold."""
        return x

    def all_reduce(self, x: Tensor) -> Tensor:
        """A sum over the nodes that are here as the sum over all nodes."""
        return x

    def propagate(self, x: Tensor, normalization: str, *, transpose: bool = False) -> Tensor:
        r"""The product :math:`\bar{A} x`, or :math:`\bar{A}^T x`, of rows that are :meth:`gather_halo`."""
        return spmm(self.pattern, self.transition(normalization, x.dtype), x, transpose=transpose)

    def transition(self, normalization: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        r"""The values of :math:`\bar{A}`, in the order of the entries and of the transpose's entries.

        Args:
            normalization: ``"row"`` and ``"walk"`` for :math:`D^{-1} A`, ``"sym"`` and ``"gcn"`` for
                :math:`D^{-1/2} A D^{-1/2}`, where :math:`D_{ii} = \sum_j A_{ij}`. A node into which no weight leads
                has a row of zeros.
            dtype: The dtype of the values.
        """
        require_choice("normalization", normalization, MATRIX_OF)
        matrix = MATRIX_OF[normalization]

        def make() -> tuple[Tensor, Tensor]:
            values = self._make_transition(matrix, dtype)
            return values, values[self.pattern.perm_t.long()]

        weights: tuple[Tensor, Tensor] = self._prepared.get((matrix, dtype), make)
        return weights

    def _make_transition(self, matrix: str, dtype: torch.dtype) -> Tensor:
        row, degree = self.pattern.rows(), self.degrees()
        if matrix == "row":
            values = self.adjacency * _inverse_power(degree, -1.0)[row]
        else:
            scale = _inverse_power(degree, -0.5)
            values = self.adjacency * scale[row] * scale[self.pattern.col.long()]
        return values.to(dtype)

    def degrees(self) -> Tensor:
        r"""The sums :math:`D_{jj}` of the rows of :math:`A`, for the nodes that columns name, as float64."""
        return self.adjacency.new_zeros(self.num_nodes).index_add_(0, self.pattern.rows(), self.adjacency)

    def attention_scale(self, dtype: torch.dtype) -> Tensor:
        r"""What ``normalization="gcn"`` multiplies the attention at each entry with, :math:`\sqrt{D_{ii} / D_{jj}}`."""

        def make() -> Tensor:
            degree = self.degrees()
            ratio = degree.sqrt()[self.pattern.rows()] * _inverse_power(degree, -0.5)[self.pattern.col.long()]
            return ratio.to(dtype)

        scale: Tensor = self._prepared.get(("attention scale", dtype), make)
        return scale

    def local_attention_scale(self, dtype: torch.dtype) -> Tensor:
        """As :meth:`attention_scale`, in the order of :meth:`local_order`."""
        scale: Tensor = self._prepared.get(
            ("local attention scale", dtype), lambda: self.attention_scale(dtype)[self.local_order().entries]
        )
        return scale

    def local_order(self) -> LocalOrder:
        """An order of the nodes in which neighbours are near each other."""
        order: LocalOrder = self._prepared.get("local order", lambda: LocalOrder.of(self.pattern))
        return order

    def local_transition(self, normalization: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """As :meth:`transition`, in the order of :meth:`local_order`."""
        require_choice("normalization", normalization, MATRIX_OF)
        matrix = MATRIX_OF[normalization]
        weights: tuple[Tensor, Tensor] = self._prepared.get(
            ("local", matrix, dtype), lambda: self.local_order().weights(self._make_transition(matrix, dtype))
        )
        return weights

    def merge(self, edge_values: Tensor) -> Tensor:
        """Values of the columns of :attr:`edge_index` as values of the entries; an edge given twice gets the mean."""
        total = edge_values.new_zeros(self.num_entries, *edge_values.shape[1:]).index_add(0, self.entry, edge_values)
        if self.num_entries == edge_values.size(0):
            return total
        count = torch.bincount(self.entry, minlength=self.num_entries).to(edge_values.dtype)
        return total / count.view(-1, *[1] * (edge_values.dim() - 1))

    def to(self, device: torch.device | str) -> "CSRGraph":
        """The same graph on another device."""
        return replace(
            self,
            pattern=self.pattern.to(device),
            adjacency=self.adjacency.to(device),
            entry=self.entry.to(device),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_nodes={self.num_nodes}, num_entries={self.num_entries})"


def _inverse_power(degree: Tensor, power: float) -> Tensor:
    return degree.pow(power).masked_fill_(degree == 0, 0)
