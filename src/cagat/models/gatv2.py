"""Graph attention networks with dynamic attention."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.nn import GATv2Conv
from torch_geometric.utils import is_torch_sparse_tensor

from cagat.kernels.validation import check_edges, require_dense, require_tensor
from cagat.models.gat import GAT
from cagat.nn import SparseFeatures
from cagat.nn.sparse_features import as_features
from cagat.nn.validation import require_finite, require_fitting


class GATv2(GAT):
    r"""The two-layer network of GAT with dynamic attention, by PyG's layers.

    The paper is `"How Attentive are Graph Attention Networks?" <https://arxiv.org/abs/2105.14491>`_.

    .. math::
        G_{ij} = \mathrm{softmax}_j\, a^T \mathrm{LeakyReLU}(W_{dst} x_i + W_{src} x_j)

    The arguments are those of :class:`~cagat.models.GAT`.

    Shapes:
        - **input:** node features :math:`(n, F_{in})`; edges :math:`(2, |E|)`
        - **output:** logits :math:`(n, F_{out})`
    """

    takes_sparse = False
    layer = GATv2Conv
    hyperparameters: ClassVar[Mapping[str, str]] = {
        key: name for key, name in GAT.hyperparameters.items() if key != "decay_biases"
    }

    def embed(self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the hidden layer; what PyG's layer would stumble over is refused before."""
        require_dense("x", x)
        features = as_features(x)
        require_fitting("x", features, self.conv1.lin_l.weight, "in_channels")
        require_tensor("edge_index", edge_index)
        if not torch.compiler.is_compiling() and not is_torch_sparse_tensor(edge_index):
            check_edges(edge_index, features.shape[0])
        hidden = super().embed(features, edge_index)
        require_finite(hidden, features, None, self.parameters())
        return hidden
