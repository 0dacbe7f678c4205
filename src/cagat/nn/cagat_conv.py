"""The CaGAT layer and its coefficients."""

import math
from dataclasses import replace
from inspect import signature
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.diffusion import (
    AttentionOperator,
    Coefficients,
    Diffusion,
    EdgeSupport,
    FullSupport,
    GATAttention,
    can_attend,
    diffuse,
    diffuse_features,
    is_zero,
    over_channels,
)
from cagat.kernels import CSRGraph, dropout, edge_softmax, prepare_graph
from cagat.memory import require_memory
from cagat.nn import validation
from cagat.nn.edges import ExplainedMessages, edge_features_with_loops
from cagat.nn.sparse_features import Features, apply_linear, as_features

Adjacency = Tensor | CSRGraph
Attention = tuple[Tensor, Tensor]


class AttentionRows(NamedTuple):
    """How much chosen nodes attend to every node of the graph, edge or not.

    Attributes:
        nodes: The nodes, shape ``(m,)``.
        G: GAT's attention, which is zero off the edges, shape ``(m, heads, n)``; scaled if the normalisation is
            ``"gcn"``.
        S: The context-aware attention, shape ``(m, heads, n)``.
    """

    nodes: Tensor
    G: Tensor
    S: Tensor


class AttentionOperators(NamedTuple):
    """How much every node attends to every other; known by products, rows and single pairs, and never formed.

    Attributes:
        G: GAT's attention, which is zero off the edges.
        S: The context-aware attention.
    """

    G: EdgeSupport
    S: FullSupport | EdgeSupport


class Aggregation(NamedTuple):
    r"""The parts of a layer's output: :math:`\lambda S V` and what each node keeps of its own.

    Attributes:
        S: The context-aware attention.
        V: The features that it aggregates, shape ``(n, heads, channels)``: Z, or with feedback the H before.
        own: What does not come through S: :math:`(1 - \lambda) Z` in the shape of V.
        lam: The share of aggregated features, shape ``(heads,)``.
    """

    S: FullSupport | EdgeSupport
    V: Tensor
    own: Tensor
    lam: Tensor


class LearnableCoefficients(torch.nn.Module):
    r"""The coefficients :math:`\alpha, \lambda \in [0, 1]` and :math:`\xi \ge 0`, fixed, or one per head and learnt.

    A learnt coefficient is kept in its range by its form, :math:`\sigma(\sigma^{-1}(\alpha_0) + o)` and
    :math:`\xi_0 (1 + \mathrm{elu}(o))`, where the offset :math:`o` is what is learnt. It starts at zero, so that the
    coefficient starts at the value given, and weight decay draws it back there. A coefficient that is given at an end
    of its range is switched off or fully on, and is not learnt.
    """

    def __init__(self, alpha: float, lam: float, xi: float, heads: int, learn: bool = False) -> None:
        super().__init__()
        self.start = Coefficients(float(alpha), float(lam), float(xi))
        for name, value, end in (("alpha", alpha, 1), ("lam", lam, 1), ("xi", xi, math.inf)):
            learnt = learn and 0 < value < end
            self.register_parameter(f"{name}_offset", torch.nn.Parameter(torch.empty(heads)) if learnt else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Go back to the values given."""
        for offset in self.parameters():
            torch.nn.init.zeros_(offset)

    def forward(self) -> Coefficients:
        """The coefficients as they are now: numbers, or tensors of shape ``(heads,)`` where they are learnt."""
        values: dict[str, Any] = {}
        for name, start in zip(Coefficients._fields, self.start, strict=True):
            offset = getattr(self, f"{name}_offset")
            if offset is None:
                values[name] = start
            elif name == "xi":
                values[name] = start * (1 + F.elu(offset))
            else:
                values[name] = torch.sigmoid(math.log(start / (1 - start)) + offset)
        return Coefficients(**values)


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
            walk at random, and rows of :math:`S` keep summing to 1 if ``xi=0``; not with ``support="edges"``. ``"gcn"``
            is ``"sym"`` and scales :math:`G_{ij}` by :math:`\sqrt{D_{ii} / D_{jj}}`, so that equal attention to all
            neighbours is GCN's matrix. (default: ``"row"``)
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
        normalization: Literal["row", "sym", "walk", "gcn"] = "row",
        learn_coefficients: bool = False,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            validation.check_message_passing(kwargs, list(signature(CaGATConv).parameters)[:-1])
        in_channels = validation.checked_input_size("in_channels", in_channels)
        validation.require_sizes(out_channels=out_channels, heads=heads)
        if edge_dim is not None and edge_dim != -1:  # As in PyG, -1 waits for the first features.
            validation.require_sizes(edge_dim=edge_dim)
        validation.require_switches(concat=concat, add_self_loops=add_self_loops, bias=bias, residual=residual)
        validation.require_within("negative_slope", negative_slope, -validation.LARGEST, validation.LARGEST)
        diffusion = Diffusion(K, T, support, affinity, feedback, normalization)
        coefficients = {"alpha": alpha, "lam": lam, "xi": xi, "learn_coefficients": learn_coefficients}
        validation.check_settings(dropout=dropout, **vars(diffusion), **coefficients)
        if in_channels > 0 and torch.get_default_device().type == "cpu":
            weights = in_channels * heads * out_channels * torch.get_default_dtype().itemsize
            require_memory(weights, f"A layer from {in_channels} to {heads} x {out_channels} units", "Ask for fewer.")
        shared = (in_channels, out_channels, heads, concat, negative_slope, dropout, add_self_loops, edge_dim)
        super().__init__(*shared, validation.checked_fill_value(fill_value), bias, residual, **kwargs)
        self.K, self.T, self.support, self.affinity = K, T, support, affinity
        self.feedback, self.normalization, self.learn_coefficients = feedback, normalization, learn_coefficients
        self.coefficients = LearnableCoefficients(alpha, lam, xi, heads, learn_coefficients)

    @property
    def diffusion(self) -> Diffusion:
        """The switches of the diffusion."""
        return Diffusion(self.K, self.T, self.support, self.affinity, self.feedback, self.normalization)

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
        x: Features,
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
        features, graph, edge_attr, Z = self._prepare(x, edge_index, edge_attr)
        validation.require_square(size, graph.num_nodes)
        coefficients, p = self.coefficients(), self.dropout if self.training else 0.0
        is_looked_into = self.is_explained or return_attention_weights
        # Whoever looks into the layer must be shown the G that it works with, and dropout would give another one.
        is_fused = edge_attr is None and not (is_looked_into and p > 0)
        is_fused = is_fused and can_attend(Z, graph, coefficients, self.diffusion, p)
        if is_zero(coefficients.lam) and not is_looked_into:
            out = Z  # Nothing is aggregated, so that attention does not matter.
        else:
            if is_looked_into or not is_fused:
                G = dropout(self._attend(Z, graph, edge_attr), p, self.training, graph.global_entries)
            attention = GATAttention(self.att_dst, self.att_src, self.negative_slope, p) if is_fused else G
            out = diffuse_features(Z, attention, graph, coefficients, self.diffusion)
        if is_looked_into:
            diffused = diffuse(Z, G, graph, coefficients, self.diffusion)
        if self.is_explained:
            change = self.explained_change(diffused.S.on_edges(), diffused.V, graph)
            out = out + over_channels(coefficients.lam) * change

        out = out.flatten(1) if self.concat else out.mean(dim=1)
        if self.res is not None:
            out = out + apply_linear(self.res, features)
        if self.bias is not None:
            out = out + self.bias
        validation.require_finite(out, features, edge_attr, self.parameters())
        if return_attention_weights:
            return out, _edge_attention(diffused.S, graph, edge_index)
        return out

    @torch.no_grad()
    def attention(
        self,
        x: Features,
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
        chosen = validation.chosen_nodes(nodes, G.graph)
        S.require_rows(chosen.numel(), matrices=2)
        return AttentionRows(chosen, G.rows(chosen), S.rows(chosen))

    @torch.no_grad()
    def attention_operators(
        self, x: Features, edge_index: Adjacency, edge_attr: Tensor | None = None, *, rounds: int | None = None
    ) -> AttentionOperators:
        """The attention of all nodes as it is in evaluation, known by its products.

        A product with a few columns costs O(K T |E|), so that sums of attention over groups of nodes can be had for all
        nodes at once. The arguments are those of :meth:`attention`.
        """
        rounds = self.K if rounds is None else rounds
        validation.require_integer("rounds", rounds, 0, self.K)
        features, graph, edge_attr, Z = self._prepare(x, edge_index, edge_attr)
        validation.require_finite(Z, features, None, self.parameters())
        G = self._attend(Z, graph, edge_attr)
        S = diffuse(Z, G, graph, self.coefficients(), replace(self.diffusion, K=rounds)).S
        return AttentionOperators(EdgeSupport(graph, G), S)

    @torch.no_grad()
    def aggregation(self, x: Features, edge_index: Adjacency, edge_attr: Tensor | None = None) -> Aggregation:
        """The parts of the output as it is in evaluation, before heads are joined and bias and residual are added."""
        _, graph, edge_attr, Z = self._prepare(x, edge_index, edge_attr)
        coefficients = self.coefficients()
        S, V = diffuse(Z, self._attend(Z, graph, edge_attr), graph, coefficients, self.diffusion)[1:]
        lam = torch.as_tensor(coefficients.lam, dtype=Z.dtype, device=Z.device).expand(self.heads)
        return Aggregation(S, V, (1 - lam[:, None]) * Z, lam)

    def _prepare(
        self, x: Features, edge_index: Adjacency, edge_attr: Tensor | None
    ) -> tuple[Features, CSRGraph, Tensor | None, Tensor]:
        """The features and the graph, prepared, edge features if the layer takes them, and Z."""
        x = as_features(x)
        validation.require_fitting("x", x, self.lin.weight, "in_channels")
        validation.check_edges(edge_index, edge_attr, self.edge_dim)
        has_features = self.edge_dim is not None
        if isinstance(edge_index, CSRGraph):
            graph = edge_index
        else:
            if has_features and edge_attr is None and is_torch_sparse_tensor(edge_index):
                edge_attr = edge_index.to_sparse(layout=torch.sparse_coo).coalesce().values()
            graph = prepare_graph(
                edge_index,
                x.shape[0],
                None if has_features else edge_attr,
                values_are_weights=not has_features,
                add_self_loops=self.add_self_loops,
                normalization=self.normalization,
                dtype=self.att_src.dtype,
            )
        validation.require_all_nodes(x, graph)
        # Under autocast Z may be of lower precision; the diffusion is not worth less than the attention.
        Z = apply_linear(self.lin, x).view(-1, self.heads, self.out_channels).to(self.att_src.dtype)
        return x, graph, edge_attr if has_features else None, Z

    def _attend(self, Z: Tensor, graph: CSRGraph, edge_attr: Tensor | None) -> Tensor:
        """GAT's attention G at the entries of the graph, Eq. (1)-(2), scaled if the normalisation is GCN's."""
        # One dense product, with zeros where a head would meet another head's weights, is faster than sums of products.
        apart = torch.eye(self.heads, dtype=Z.dtype, device=Z.device)[:, None, :]
        weights = [(att[0, :, :, None] * apart).flatten(0, 1) for att in (self.att_dst, self.att_src)]
        with torch.autocast(Z.device.type, enabled=False):
            dst, src = torch.chunk(Z.flatten(1) @ torch.cat(weights, dim=1), 2, dim=1)
        edge = None
        if edge_attr is not None:
            edge_attr = edge_features_with_loops(graph, edge_attr, self.fill_value)
            validation.require_fitting("edge_attr", edge_attr, self.lin_edge.weight, "edge_dim")
            transformed = self.lin_edge(edge_attr).view(-1, self.heads, self.out_channels)
            edge = graph.merge((transformed * self.att_edge).sum(dim=-1))
        G = edge_softmax(graph.pattern, dst, graph.gather_halo(src), edge, self.negative_slope)
        return G * graph.attention_scale(G.dtype)[:, None] if self.normalization == "gcn" else G

    def __repr__(self) -> str:
        usual = vars(Diffusion(self.K, self.T)) | {"learn_coefficients": False}
        switches = {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}
        extras = "".join(f", {name}={value!r}" for name, value in switches.items())
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, heads={self.heads}, K={self.K}, "
            f"T={self.T}, alpha={self.alpha:g}, lam={self.lam:g}, xi={self.xi:g}{extras})"
        )


def _edge_attention(S: AttentionOperator, graph: CSRGraph, edge_index: Adjacency) -> Attention:
    """The edges as they were given, with added self-loops, and S on them."""
    values = S.on_edges()
    if isinstance(edge_index, Tensor) and is_torch_sparse_tensor(edge_index):
        pattern, size = graph.pattern, (graph.num_nodes, graph.num_nodes, values.size(1))
        adjacency = torch.sparse_csr_tensor(pattern.rowptr.long(), pattern.col.long(), values.detach(), size)
        return adjacency, values
    # A copy, since the graph is kept for later calls.
    return graph.edge_index.clone(), values[graph.entry.long()]
