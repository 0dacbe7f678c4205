"""Label propagation with the normalized Laplacian."""

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor
from torch_geometric.nn import LabelPropagation

from cagat.models.labelprop import LabelProp


class LabelPropNL(LabelProp):
    r"""Labels flow to neighbours by the normalized Laplacian, and some of each always from its source.

    The paper is `"Learning with Local and Global Consistency"
    <https://proceedings.neurips.cc/paper/2003/hash/87682805257e619d49b8e0dfdc14affa-Abstract.html>`_.

    .. math::
        F \leftarrow \alpha D^{-1/2} A D^{-1/2} F + (1 - \alpha) Y

    Args:
        in_channels: Number of input features, which are not looked at.
        out_channels: Number of classes.
        num_steps: How often labels are propagated. (default: ``50``)
        alpha: The share that comes from the neighbours. (default: ``0.95``)

    Shapes:
        - **input:** node features :math:`(n, F_{in})`, of which only :math:`n` matters; edges :math:`(2, |E|)`; weights
          :math:`(|E|)` *(optional)*
        - **output:** the logarithms of probabilities :math:`(n, F_{out})`
    """

    hyperparameters: ClassVar[Mapping[str, str]] = {"steps": "num_steps", "alpha": "alpha"}

    def __init__(self, in_channels: int, out_channels: int, num_steps: int = 50, alpha: float = 0.95) -> None:
        super().__init__(in_channels, out_channels, num_steps)
        self.alpha = alpha

    def propagate(self, start: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
        """Propagate labels along edges without self-loops."""
        from torch_geometric.nn.conv.gcn_conv import gcn_norm

        edges, weight = gcn_norm(edges, weight, start.size(0), add_self_loops=False)
        steps = LabelPropagation(self.num_steps, self.alpha)
        # PyG would cut shares off at 1, but a node of many neighbours may have more; nothing is to be done to them.
        shares: Tensor = steps(start, edges, edge_weight=weight, post_step=lambda shares: shares)
        return shares
