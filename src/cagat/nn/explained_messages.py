"""Messages along edges, for PyG's explainers to see and to mask."""

from typing import Any, ClassVar, Optional

import torch
from torch import Tensor
from torch_geometric.nn import GATConv, MessagePassing
from torch_geometric.typing import OptPairTensor

from cagat.kernels import CSRGraph


class ExplainedMessages(GATConv):  # type: ignore[misc]
    """A GATConv that sends messages only where somebody looks at them.

    PyG's explainers hook into the messages of a layer, or mask them edge by edge. CaGAT aggregates over all pairs of
    nodes without messages; so, if explained, it sends the part of its output that runs along edges as messages, and
    changes its output by what the explainer makes of them.
    """

    # PyG asks for the arguments of propagate() in this form.
    propagate_type: ClassVar = {"x": OptPairTensor, "alpha": Tensor, "share": Tensor}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # What PyG goes back to when it explains. By itself it takes what the class inherits when a first layer is made:
        # code for GATConv's own messages, if a GATConv was made before.
        type(self)._orig_propagate = MessagePassing.propagate

    @property
    def is_explained(self) -> bool:
        """Whether an explainer masks the messages, or a hook listens to them."""
        return bool(self._explain or self._message_forward_hooks or self._message_forward_pre_hooks)

    def explained_change(self, attention: Tensor, V: Tensor, graph: CSRGraph) -> Tensor:
        """What the explainers change of ``S V``, given S at the entries of the graph."""
        alpha = attention[graph.entry]
        # An edge that was given several times is one entry of S, of which each copy carries its share.
        share = 1 / torch.bincount(graph.entry)[graph.entry].to(V.dtype)
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
        mask: Tensor | None = self._edge_mask
        if mask is None:
            raise ValueError("no edge mask is set; use torch_geometric.explain")
        if self._apply_sigmoid:
            mask = mask.sigmoid()
        mask = torch.cat([mask, mask.new_ones(inputs.size(0) - mask.size(0))])
        masked: Tensor = inputs * mask.view(-1, *[1] * (inputs.dim() - 1))
        return masked
