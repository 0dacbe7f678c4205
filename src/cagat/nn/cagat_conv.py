"""The CaGAT layer."""

from dataclasses import replace
from inspect import signature
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedParameter
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.diffusion import (
    AttentionOperator,
    Diffused,
    Diffusion,
    EdgeSupport,
    attended_features,
    diffuse,
    diffused_features,
)
from cagat.diffusion.diffusion import is_zero, over_channels
from cagat.kernels import CSRGraph, dropout, edge_softmax, prepare_graph
from cagat.kernels.csr_graph import NORMALIZATIONS
from cagat.memory import require_memory
from cagat.nn.arguments import (
    as_features,
    chosen_nodes,
    require_edge_values,
    require_edges,
    require_fitting,
    require_rounds,
    require_square,
)
from cagat.nn.attention_operators import AttentionOperators
from cagat.nn.attention_rows import AttentionRows
from cagat.nn.edge_features import edge_features_with_loops
from cagat.nn.explained_messages import ExplainedMessages
from cagat.nn.finite import require_finite
from cagat.nn.learnable_coefficients import LearnableCoefficients
from cagat.nn.settings import (
    LARGEST,
    checked_fill_value,
    require_choice,
    require_count,
    require_input_size,
    require_known,
    require_sizes,
    require_switch,
    require_within,
)
from cagat.nn.sparse_features import SparseFeatures

Adjacency = Tensor | CSRGraph
Attention = tuple[Tensor, Tensor]


class CaGATConv(ExplainedMessages):
    r"""The context-aware graph attention layer, exact, without the :math:`n \times n` matrix :math:`S`.

    It is the layer of `"Context-Aware Graph Attention Networks" <https://arxiv.org/abs/1910.01736>`_. GAT's attention
    :math:`G` of each edge, Eq. (1)-(2), is diffused over the edges' neighbouring edges and drawn towards the affinity
    of the features, Eq. (15), in turn with the features themselves, Eq. (9) and (18):

    .. math::
        G_{ij} &= \mathrm{softmax}_{j \in \mathcal{N}(i)} \,
            \mathrm{LeakyReLU}(a_{dst}^T z_i + a_{src}^T z_j), \qquad Z = X W \\
        H &\leftarrow \lambda G Z + (1 - \lambda) Z, \qquad S \leftarrow G \\
        S &\leftarrow \alpha \bar{A} S \bar{A}^T + (1 - \alpha) G + \xi Q(H) \qquad (T \text{ times}) \\
        H &\leftarrow \lambda S Z + (1 - \lambda) Z
            \qquad (K \text{ times, with the } T \text{ steps before each})

    where :math:`\bar{A} = D^{-1} A` and :math:`Q(H)_{ij} = \langle h_i, h_j \rangle`. With ``alpha=0, xi=0, lam=1`` it
    is :class:`~torch_geometric.nn.conv.GATConv`, whose parameters have the same names, so that state dicts can be
    exchanged.

    Edges follow PyG: ``edge_index[0]`` are sources, ``edge_index[1]`` targets. An edge that is given twice counts once
    (GATConv would count it twice). A node without incoming edges keeps :math:`(1 - \lambda) z_i`. ``edge_index`` may
    also be a torch sparse matrix with targets as rows, PyG's ``EdgeIndex``, or a :class:`~cagat.CSRGraph`.

    Args:
        in_channels: Size of each input sample, or ``-1`` to take it from the first input.
        out_channels: Size of each output sample of a head.
        heads: Number of attention heads. (default: ``1``)
        concat: If ``False``, heads are averaged instead of concatenated. (default: ``True``)
        negative_slope: LeakyReLU's slope. (default: ``0.2``)
        dropout: Dropout of the entries of :math:`G` in training. Entries of :math:`S` cannot be dropped, since they
            are never formed. (default: ``0.0``)
        add_self_loops: Whether nodes without a self-loop get one. (default: ``True``)
        edge_dim: Size of the edge features, if there are any. Without it, ``edge_attr`` are the weights of
            :math:`A`. (default: ``None``)
        fill_value: The features of self-loops, as in GATConv: also of those that are given. (default: ``"mean"``)
        bias: Whether to add a learnable bias. (default: ``True``)
        residual: Whether to add a learnable skip-connection. (default: ``False``)
        K: Number of rounds. (default: ``3``)
        T: Number of diffusion steps in a round. (default: ``2``)
        alpha: Share of context in the attention, in ``[0, 1]``. (default: ``0.4``)
        lam: Share of aggregated features in the output, in ``[0, 1]``. (default: ``0.3``)
        xi: Weight of the affinity, not negative. (default: ``1e-3``)
        support: Whether :math:`S` lives on all pairs of nodes (``"full"``) or is kept on the ``"edges"``.
            (default: ``"full"``)
        affinity: Whether :math:`Q` is taken on the ``"edges"`` or on all pairs (``"full"``; not with
            ``support="edges"``). (default: ``"edges"``)
        feedback: Whether to aggregate :math:`S H` instead of :math:`S Z`. (default: ``False``)
        normalization: ``"row"`` is the paper's :math:`D^{-1} A`. ``"sym"``, an extension of ours, is
            :math:`D^{-1/2} A D^{-1/2}`, which does not favour hubs. ``"walk"``, another one, is
            :math:`D^{-1} A` on both sides, :math:`S \leftarrow \alpha \bar{A} S \bar{A} + \dots`: both ends of an edge
            walk at random, and rows of :math:`S` keep summing to 1 if ``xi=0``; not with ``support="edges"``.
            (default: ``"row"``)
        learn_coefficients: An extension of ours: whether ``alpha``, ``lam`` and ``xi`` are learnt for each head,
            starting at the values given and kept within their ranges. One that is given at an end of its range
            (``alpha=0``, ``lam=1``, ``xi=0``, ...) is thereby switched off or fully on, and stays so. Weight decay
            draws them back to the values given. (default: ``False``)
        **kwargs: Arguments of :class:`~torch_geometric.nn.conv.MessagePassing`, if they say what is the case anyway
            (``aggr="add"``, ``flow="source_to_target"``); others are refused.

    Shapes:
        - **input:** node features :math:`(n, F_{in})`, dense or sparse; edges :math:`(2, |E|)`; edge features
          :math:`(|E|, D)` or weights :math:`(|E|)` *(optional)*
        - **output:** :math:`(n, H \cdot F_{out})`, or :math:`(n, F_{out})` if ``concat=False``; with
          ``return_attention_weights=True`` also :math:`((2, |E'|), (|E'|, H))`, where :math:`E'` are the given edges in
          their order and then the added self-loops
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        dropout: float = 0.0,
        add_self_loops: bool = True,
        edge_dim: int | None = None,
        fill_value: float | Tensor | str = "mean",
        bias: bool = True,
        residual: bool = False,
        *,
        K: int = 3,
        T: int = 2,
        alpha: float = 0.4,
        lam: float = 0.3,
        xi: float = 1e-3,
        support: Literal["full", "edges"] = "full",
        affinity: Literal["edges", "full"] = "edges",
        feedback: bool = False,
        normalization: Literal["row", "sym", "walk"] = "row",
        learn_coefficients: bool = False,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            own = [name for name in signature(CaGATConv).parameters if name != "kwargs"]
            require_known(kwargs, [*own, *_MESSAGE_PASSING])
        for name, value in kwargs.items():
            if value != _MESSAGE_PASSING[name]:
                raise ValueError(
                    f"{name}={value!r} cannot be had: CaGAT sums over the edges into a node, and as a whole"
                )
        require_input_size("in_channels", in_channels)
        in_channels = int(in_channels)  # PyG takes any other kind of integer for the sizes of two sets of nodes.
        require_sizes(out_channels=out_channels, heads=heads)
        for name, switch in (
            ("concat", concat),
            ("add_self_loops", add_self_loops),
            ("bias", bias),
            ("residual", residual),
            ("feedback", feedback),
            ("learn_coefficients", learn_coefficients),
        ):
            require_switch(name, switch)
        require_within("negative_slope", negative_slope, -LARGEST, LARGEST)
        require_within("dropout", dropout, 0, 1)
        require_count("K", K, most=_MOST_STEPS)
        require_count("T", T, most=_MOST_STEPS)
        if edge_dim is not None and edge_dim != -1:  # As in PyG, -1 waits for the first features.
            require_sizes(edge_dim=edge_dim)
        if in_channels > 0 and torch.get_default_device().type == "cpu":
            weights = in_channels * heads * out_channels * torch.get_default_dtype().itemsize
            require_memory(weights, f"A layer from {in_channels} to {heads} x {out_channels} units", "Ask for fewer.")
        require_choice("support", support, ("full", "edges"))
        require_choice("affinity", affinity, ("edges", "full"))
        require_choice("normalization", normalization, NORMALIZATIONS)
        if support == "edges" and affinity == "full":
            raise ValueError('support="edges" keeps S on the edges, so affinity="full" cannot be had; use "edges"')
        if support == "edges" and normalization == "walk":
            raise ValueError(
                'support="edges" goes with normalization="row" or "sym", not with "walk": change one of them'
            )
        super().__init__(
            in_channels,
            out_channels,
            heads,
            concat,
            negative_slope,
            dropout,
            add_self_loops,
            edge_dim,
            checked_fill_value(fill_value),
            bias,
            residual,
            **kwargs,
        )
        self.K = K
        self.T = T
        self.support = support
        self.affinity = affinity
        self.feedback = feedback
        self.normalization = normalization
        self.learn_coefficients = learn_coefficients
        self.diffusion = Diffusion(K, T, support, affinity, feedback, normalization)
        self.coefficients = LearnableCoefficients(alpha, lam, xi, heads, learn_coefficients)

    @property
    def alpha(self) -> float:
        """The share of context that the layer was made with."""
        return float(self.coefficients.start.alpha)

    @property
    def lam(self) -> float:
        """The share of aggregated features that the layer was made with."""
        return float(self.coefficients.start.lam)

    @property
    def xi(self) -> float:
        """The weight of the affinity that the layer was made with."""
        return float(self.coefficients.start.xi)

    def reset_parameters(self) -> None:
        """Draw the parameters anew, as GATConv does, and put learnt coefficients back to the values given."""
        super().reset_parameters()
        if "coefficients" in self._modules:  # GATConv's __init__ calls this before they exist.
            self.coefficients.reset_parameters()

    def forward(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Adjacency,
        edge_attr: Tensor | None = None,
        size: tuple[int, int] | None = None,
        return_attention_weights: bool | None = None,
    ) -> Tensor | tuple[Tensor, Attention]:
        """Run the layer.

        Args:
            x: The node features, dense or torch-sparse.
            edge_index: The edges.
            edge_attr: Edge features if the layer has an ``edge_dim``, else edge weights.
            size: Taken for GATConv's sake; it can only be ``(n, n)``.
            return_attention_weights: Whether to also return the edges and S on them. With context this costs a product
                for every node; see :meth:`attention` for some nodes only.
        """
        features = as_features(x)
        graph, edge_attr = self._prepare(features, edge_index, edge_attr, size)
        Z = self._transform(features)
        is_looked_into = self.is_explained or return_attention_weights
        # Whoever looks into the layer must be shown the G that it works with, and dropout would give another one.
        has_one_G = not (is_looked_into and self.training and self.dropout > 0)
        fused = self._fused(Z, graph) if edge_attr is None and has_one_G else None
        if is_zero(self.coefficients().lam) and not is_looked_into:
            fused = Z  # Nothing is aggregated, so that attention does not matter.
        if fused is None or is_looked_into:
            G = self._attend(Z, graph, edge_attr)
            G = dropout(G, self.dropout, self.training, graph.global_entries)
        out = diffused_features(Z, G, graph, self.coefficients(), self.diffusion) if fused is None else fused
        if is_looked_into:
            diffused = self._diffuse(Z, G, graph, self.K)
        if self.is_explained:
            change = self.explained_change(diffused.S.on_edges(), diffused.V, graph)
            out = out + over_channels(self.coefficients().lam) * change

        out = out.flatten(1) if self.concat else out.mean(dim=1)
        if self.res is not None:
            out = out + _linear(self.res, features)
        if self.bias is not None:
            out = out + self.bias
        require_finite(out, features, edge_attr, self.parameters())
        if return_attention_weights:
            return out, _edge_attention(diffused.S, graph, edge_index)
        return out

    @torch.no_grad()
    def attention(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Adjacency,
        edge_attr: Tensor | None = None,
        *,
        nodes: int | list[int] | Tensor,
        rounds: int | None = None,
    ) -> AttentionRows:
        """The attention of chosen nodes to all nodes, pairs that are not edges among them, as it is in evaluation.

        It costs O(K T |E|) for each node and head, and so can be had for some nodes of any graph. There is no dropout,
        and there are no gradients.

        Args:
            x: The node features.
            edge_index: The edges.
            edge_attr: Edge features or weights.
            nodes: The nodes whose rows are wanted: a number, numbers, or a mask.
            rounds: After how many of the K rounds. (default: all)
        """
        G, S = self.attention_operators(x, edge_index, edge_attr, rounds=rounds)
        chosen = chosen_nodes(nodes, G.graph)
        S.require_rows(chosen.numel(), matrices=2)
        return AttentionRows(chosen, G.rows(chosen), S.rows(chosen))

    @torch.no_grad()
    def attention_operators(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Adjacency,
        edge_attr: Tensor | None = None,
        *,
        rounds: int | None = None,
    ) -> AttentionOperators:
        """The attention of all nodes as it is in evaluation, known by its products.

        A product with a few columns costs O(K T |E|), so that sums of attention over groups of nodes can be had for all
        nodes at once. There is no dropout, and there are no gradients.

        Args:
            x: The node features.
            edge_index: The edges.
            edge_attr: Edge features or weights.
            rounds: After how many of the K rounds. (default: all)
        """
        if rounds is not None:
            require_rounds(rounds, self.K)
        features = as_features(x)
        graph, edge_attr = self._prepare(features, edge_index, edge_attr)
        Z = self._transform(features)
        require_finite(Z, features, None, self.parameters())
        G = self._attend(Z, graph, edge_attr)
        S = self._diffuse(Z, G, graph, self.K if rounds is None else rounds).S
        return AttentionOperators(EdgeSupport(graph, G), S)

    def _prepare(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Adjacency,
        edge_attr: Tensor | None,
        size: tuple[int, int] | None = None,
    ) -> tuple[CSRGraph, Tensor | None]:
        """The prepared graph, and edge features if the layer takes them."""
        require_fitting("x", x, self.lin.weight, "in_channels")
        require_edges(edge_index)
        if edge_attr is not None:
            require_edge_values(edge_attr)
        num_nodes = x.shape[0]
        require_square(size, num_nodes)
        weight = edge_attr if self.edge_dim is None else None
        if weight is not None and weight.dim() > 1 and weight.size(1) > 1:
            raise ValueError(
                f"edge_attr has {weight.size(1)} features an edge, but the layer was made without edge features; "
                f"pass edge_dim={weight.size(1)} to it"
            )
        if isinstance(edge_index, CSRGraph):
            graph = edge_index
            if weight is not None:
                raise ValueError("a prepared graph has its own weights; give edge_weight to CSRGraph.from_edge_index")
        else:
            if self.edge_dim is not None and edge_attr is None and is_torch_sparse_tensor(edge_index):
                edge_attr = edge_index.to_sparse(layout=torch.sparse_coo).coalesce().values()
            graph = prepare_graph(
                edge_index,
                num_nodes,
                weight,
                values_are_weights=self.edge_dim is None,
                add_self_loops=self.add_self_loops,
                normalization=self.normalization,
                dtype=self.att_src.dtype,
            )
        if graph.num_nodes != num_nodes:
            raise ValueError(f"the graph has {graph.num_nodes} nodes, but x has {num_nodes} rows")
        return graph, edge_attr if self.edge_dim is not None else None

    def _transform(self, x: Tensor | SparseFeatures) -> Tensor:
        Z = _linear(self.lin, x)
        # Under autocast Z may be of lower precision; the diffusion is not worth less than the attention.
        return Z.view(-1, self.heads, self.out_channels).to(self.att_src.dtype)

    def _attend(self, Z: Tensor, graph: CSRGraph, edge_attr: Tensor | None) -> Tensor:
        """GAT's attention G at the entries of the graph, Eq. (1)-(2)."""
        # One dense product, with zeros where a head would meet another head's weights, is faster than sums of products.
        apart = torch.eye(self.heads, dtype=Z.dtype, device=Z.device)[:, None, :]
        weights = [(att[0, :, :, None] * apart).flatten(0, 1) for att in (self.att_dst, self.att_src)]
        with torch.autocast(Z.device.type, enabled=False):
            dst, src = torch.chunk(Z.flatten(1) @ torch.cat(weights, dim=1), 2, dim=1)
        edge = None if edge_attr is None else self._edge_logits(graph, edge_attr)
        return edge_softmax(graph.pattern, dst, graph.gather_halo(src), edge, self.negative_slope)

    def _fused(self, Z: Tensor, graph: CSRGraph) -> Tensor | None:
        """The features after all rounds, without G, if there is an operator that makes them."""
        return attended_features(
            Z,
            (self.att_dst, self.att_src),
            graph,
            self.coefficients(),
            self.diffusion,
            negative_slope=self.negative_slope,
            dropout=self.dropout if self.training else 0.0,
        )

    def _edge_logits(self, graph: CSRGraph, edge_attr: Tensor) -> Tensor:
        """What the edge features add to the logits, at the entries of the graph."""
        edge_attr = edge_features_with_loops(graph, edge_attr, self.fill_value)
        require_fitting("edge_attr", edge_attr, self.lin_edge.weight, "edge_dim")
        transformed = self.lin_edge(edge_attr).view(-1, self.heads, self.out_channels)
        return graph.merge((transformed * self.att_edge).sum(dim=-1))

    def _diffuse(self, Z: Tensor, G: Tensor, graph: CSRGraph, K: int) -> Diffused:
        return diffuse(Z, G, graph, self.coefficients(), replace(self.diffusion, K=K))

    def __repr__(self) -> str:
        extras = "".join(
            f", {name}={getattr(self, name)!r}" for name, default in _SWITCHES.items() if getattr(self, name) != default
        )
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, heads={self.heads}, K={self.K}, "
            f"T={self.T}, alpha={self.alpha:g}, lam={self.lam:g}, xi={self.xi:g}{extras})"
        )


# Of rounds, and of steps in a round: more would take days, and beyond 2**63 torch's operators fail.
_MOST_STEPS = 10_000
_MESSAGE_PASSING = {"aggr": "add", "flow": "source_to_target", "decomposed_layers": 1}
_SWITCHES = {
    "support": "full",
    "affinity": "edges",
    "feedback": False,
    "normalization": "row",
    "learn_coefficients": False,
}


def _linear(layer: Any, x: Tensor | SparseFeatures) -> Tensor:
    if isinstance(x, SparseFeatures):
        if isinstance(layer.weight, UninitializedParameter):
            layer(x.values.new_empty(0, x.shape[1]))  # A layer of unknown input size learns it from an input.
        weight: Tensor = layer.weight
        return x.matmul(weight.t())
    y: Tensor = layer(x)
    return y


def _edge_attention(S: AttentionOperator, graph: CSRGraph, edge_index: Adjacency) -> Attention:
    """The edges as they were given, with added self-loops, and S on them."""
    values = S.on_edges()
    if isinstance(edge_index, Tensor) and is_torch_sparse_tensor(edge_index):
        pattern, size = graph.pattern, (graph.num_nodes, graph.num_nodes, values.size(1))
        adjacency = torch.sparse_csr_tensor(pattern.rowptr.long(), pattern.col.long(), values.detach(), size)
        return adjacency, values
    # A copy, since the graph is kept for later calls.
    return graph.edge_index.clone(), values[graph.entry]
