"""Label propagation: the edges alone, without features."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import LabelPropagation
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import remove_self_loops

from cagat.kernels.validation import check_edges, checked_weight
from cagat.models.node_classifier import Labelled, NodeClassifier, arguments
from cagat.nn import as_features
from cagat.nn.validation import require_sizes


class LabelProp(NodeClassifier):
    r"""Every node takes the mean of its neighbours, and labelled nodes keep their label.

    The paper is `"Learning from Labeled and Unlabeled Data with Label Propagation"
    <http://mlg.eng.cam.ac.uk/zoubin/papers/CMU-CALD-02-107.pdf>`_.

    .. math::
        F \leftarrow D^{-1} A F, \qquad F_{labelled} \leftarrow Y_{labelled}

    What is learned is which nodes have which label, so it says nothing about another graph; features are not looked at.
    :math:`A` has no self-loops. A node that no label reaches belongs to all classes alike.

    Args:
        num_steps: How often labels are propagated. (default: ``50``)
    """

    nodes: Tensor
    classes: Tensor
    takes_sparse = True
    inductive = False
    closed_form = True
    hyperparameters = arguments(steps="num_steps")

    def __init__(self, in_channels: int, out_channels: int, num_steps: int = 50) -> None:
        require_sizes(out_channels=out_channels)
        super().__init__()
        self.out_channels = out_channels
        self.num_steps = num_steps
        self.register_buffer("nodes", torch.empty(0, dtype=torch.long))
        self.register_buffer("classes", torch.empty(0, dtype=torch.long))

    def forward(self, x: Any, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logarithms of the classes' probabilities, finite also where a probability is 0."""
        shares = self.embed(x, edge_index, edge_attr)
        total = shares.sum(dim=1, keepdim=True)
        uniform = torch.full_like(shares, 1 / self.out_channels)
        return torch.where(total > 0, shares / total, uniform).clamp(min=torch.finfo(shares.dtype).tiny).log()

    def embed(self, x: Any, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """How much of each class has reached each node."""
        num_nodes = as_features(x).shape[0]
        if self.nodes.numel() and (last := int(self.nodes.max())) >= num_nodes:
            raise ValueError(
                f"it has the label of node {last}, but the graph has {num_nodes} nodes; fit it to this graph"
            )
        check_edges(edge_index, num_nodes)
        start = torch.zeros(num_nodes, self.out_channels, device=edge_index.device)
        start[self.nodes, self.classes] = 1
        given = None if edge_attr is None else checked_weight(edge_attr, edge_index)
        edges, weight = remove_self_loops(edge_index.long(), given)
        if weight is None:
            weight = start.new_ones(edges.size(1))
        return self.propagate(start, edges, weight.view(-1).to(start))

    def propagate(self, start: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
        """Propagate labels along edges without self-loops."""
        incoming = torch.zeros(start.size(0), device=start.device).index_add_(0, edges[1], weight)
        share = weight / incoming[edges[1]].clamp(min=torch.finfo(weight.dtype).tiny)
        labelled = self.nodes

        def reset(shares: Tensor) -> Tensor:
            shares[labelled] = start[labelled]
            return shares

        steps = LabelPropagation(self.num_steps, alpha=1.0)
        shares: Tensor = steps(start, edges, edge_weight=share, post_step=reset)
        return shares

    def solve(self, inputs: tuple[Any, ...], train: Labelled) -> None:
        """Take note of the labels."""
        self.nodes, self.classes = train.nodes.clone(), train.classes.clone()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        # As many labels as were saved, whatever there were before.
        for name in ("nodes", "classes"):
            if (saved := state_dict.get(prefix + name)) is not None:
                setattr(self, name, torch.empty_like(saved, device=self.nodes.device))
        super()._load_from_state_dict(state_dict, prefix, *args)


class LabelPropNL(LabelProp):
    r"""Labels flow to neighbours by the normalized Laplacian, and some of each always from its source.

    The paper is `"Learning with Local and Global Consistency"
    <https://proceedings.neurips.cc/paper/2003/hash/87682805257e619d49b8e0dfdc14affa-Abstract.html>`_.

    .. math::
        F \leftarrow \alpha D^{-1/2} A D^{-1/2} F + (1 - \alpha) Y

    Args:
        num_steps: How often labels are propagated. (default: ``50``)
        alpha: The share that comes from the neighbours. (default: ``0.95``)
    """

    hyperparameters = arguments("alpha", steps="num_steps")

    def __init__(self, in_channels: int, out_channels: int, num_steps: int = 50, alpha: float = 0.95) -> None:
        super().__init__(in_channels, out_channels, num_steps)
        self.alpha = alpha

    def propagate(self, start: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
        """Propagate labels along edges without self-loops."""
        edges, weight = gcn_norm(edges, weight, start.size(0), add_self_loops=False)
        steps = LabelPropagation(self.num_steps, self.alpha)
        # PyG would cut shares off at 1, but a node of many neighbours may have more; nothing is to be done to them.
        shares: Tensor = steps(start, edges, edge_weight=weight, post_step=lambda shares: shares)
        return shares
