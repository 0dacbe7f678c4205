"""Graph attention networks with dynamic attention."""

from collections.abc import Mapping
from typing import ClassVar

from torch_geometric.nn import GATv2Conv

from cagat.models.gat import GAT


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
