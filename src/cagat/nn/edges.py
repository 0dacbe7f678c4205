"""What runs along the edges of the layer: edge features into the attention, and messages for PyG's explainers."""

from typing import Optional

import torch
from torch import Tensor
from torch_geometric.nn import GATConv, MessagePassing
from torch_geometric.utils import add_self_loops

from cagat.kernels import CSRGraph
from cagat.nn.validation import check_edge_features


class ExplainedMessages(GATConv):  # type: ignore[misc]
    """A GATConv that sends messages only where somebody looks at them.

    PyG's explainers hook into the messages of a layer, or mask them edge by edge. CaGAT aggregates over all pairs of
    nodes without messages; so, if explained, it sends the part of its output that runs along edges as messages, and
    changes its output by what the explainer makes of them.
    """

    # By itself PyG writes and compiles code for the messages of a class when its first layer is made, which takes half
    # a second, and a class inherits that of GATConv. Few layers are ever explained: PyG's plain loop serves them.
    propagate = _orig_propagate = _jinja_propagate = MessagePassing.propagate

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        pass

    @property
    def is_explained(self) -> bool:
        """Whether an explainer masks the messages, or a hook listens to them."""
        return bool(self._explain or self._message_forward_hooks or self._message_forward_pre_hooks)

    def explained_change(self, attention: Tensor, V: Tensor, graph: CSRGraph) -> Tensor:
        """What the explainers change of ``S V``, given S at the entries of the graph."""
        entry = graph.entry.long()
        alpha = attention[entry]
        # An edge that was given several times is one entry of S, of which each copy carries its share.
        share = 1 / torch.bincount(entry)[entry].to(V.dtype)
        source, target = graph.edge_index
        plain = torch.zeros_like(V).index_add(0, target, self.message(V[source], alpha, share))
        explained: Tensor = self.propagate(graph.edge_index, x=(V, V), alpha=alpha, share=share, size=None)
        return explained - plain

    def message(self, x_j: Tensor, alpha: Tensor, share: Tensor) -> Tensor:
        """What an edge brings to its target."""
        return share[:, None, None] * alpha[:, :, None] * x_j

    # PyG reads this signature and knows unions in their old form only.
    def explain_message(self, inputs: Tensor, dim_size: Optional[int]) -> Tensor:  # noqa: UP045
        """Mask the messages of the given edges; those of added self-loops, which come last, pass."""
        mask: Tensor = self._edge_mask.sigmoid() if self._apply_sigmoid else self._edge_mask
        mask = torch.cat([mask, mask.new_ones(inputs.size(0) - mask.size(0))])
        return inputs * mask.view(-1, *[1] * (inputs.dim() - 1))


def edge_features_with_loops(graph: CSRGraph, edge_attr: Tensor, fill_value: float | Tensor | str) -> Tensor:
    """Features ``(|E'|, D)`` for all columns of ``graph.edge_index``, from those of the edges that were given.

    As in PyG's GATConv, where self-loops are added, all of them are filled, those that were given too: with a number,
    a tensor, or the node's incoming features reduced by ``"mean"``, ``"max"``, ....
    """
    if edge_attr.dim() == 1:
        edge_attr = edge_attr[:, None]
    check_edge_features(graph, edge_attr, fill_value)
    if not graph.has_added_loops:
        return edge_attr
    given, added = graph.edge_index[:, : graph.num_given], graph.edge_index[1, graph.num_given :]
    is_loop = given[0] == given[1]
    _, filled = add_self_loops(
        given[:, ~is_loop], edge_attr[~is_loop], fill_value=fill_value, num_nodes=graph.num_nodes
    )
    loop_attr = filled[filled.size(0) - graph.num_nodes :]
    return torch.cat([torch.where(is_loop[:, None], loop_attr[given[1]], edge_attr), loop_attr[added]])
