"""A graph convolution that takes sparse features and prepares its graph once."""

from torch import Tensor
from torch_geometric.nn import GCNConv

from cagat.kernels import CSRGraph, prepare_graph, spmm
from cagat.models.feature_linear import FeatureLinear
from cagat.nn import SparseFeatures


class GraphConvolution(GCNConv):  # type: ignore[misc]
    r"""PyG's :class:`~torch_geometric.nn.GCNConv` with dropout on its input, our sparse product and sparse features.

    .. math::
        Y = \hat{A}\, \mathrm{dropout}(X) W + b, \qquad \hat{A} = D^{-1/2} (A + I) D^{-1/2}

    Parameters, their names and their initialisation are PyG's, and so is the result; an edge that is given twice
    without weights counts once. :math:`\hat{A}` is remembered as long as the `edge_index` lives.

    Args:
        in_channels: Number of input features.
        out_channels: Number of units.
        dropout: Dropout on the input in training. (default: ``0``)

    Shapes:
        - **input:** node features :math:`(n, F_{in})`, dense or sparse; edges :math:`(2, |E|)`; weights :math:`(|E|)`
          *(optional)*
        - **output:** :math:`(n, F_{out})`
    """

    def __init__(self, in_channels: int, out_channels: int, dropout: float = 0.0) -> None:
        super().__init__(in_channels, out_channels)
        self.lin = FeatureLinear(in_channels, out_channels, dropout, bias=False)

    def forward(
        self, x: Tensor | SparseFeatures, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None
    ) -> Tensor:
        """The convolved features."""
        y: Tensor = propagate(self.lin(x), edge_index, edge_weight) + self.bias
        return y


def propagate(z: Tensor, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None) -> Tensor:
    r"""The product :math:`\hat{A} Z`."""
    graph = gcn_graph(z, edge_index, edge_weight)
    return spmm(graph.pattern, graph.transition("sym", z.dtype), z)


def gcn_graph(z: Tensor, edge_index: Tensor | CSRGraph, edge_weight: Tensor | None = None) -> CSRGraph:
    r"""The graph whose symmetric transition is :math:`\hat{A}`, for features of this length and dtype."""
    if isinstance(edge_index, CSRGraph):
        return edge_index
    graph: CSRGraph = prepare_graph(edge_index, z.size(0), edge_weight, normalization="sym", dtype=z.dtype)
    return graph
