"""Deep Graph Infomax: an encoder that learns without labels, and a linear classifier on top."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import DeepGraphInfomax

from cagat.models.gcn import can_be_compiled, gcn_graph, propagate
from cagat.models.mlp import FeatureLinear
from cagat.models.node_classifier import Labelled, NodeClassifier, arguments
from cagat.nn import Features
from cagat.nn.validation import require_sizes


class DGI(NodeClassifier):
    r"""The model of `"Deep Graph Infomax" <https://arxiv.org/abs/1809.10341>`_ with PyG's objective.

    .. math::
        H = \mathrm{PReLU}(\hat{A} X W + b), \qquad s = \sigma(\mathrm{mean}_i\, h_i), \qquad
        D(h_i, s) = \sigma(h_i^T M s)

    The discriminator :math:`D` learns to tell nodes from those of the graph whose rows of :math:`X` are shuffled, and
    the encoder to let it. Labels come in last: softmax regression on the frozen :math:`H`.
    """

    takes_sparse = True
    labels_at_the_end = True
    hyperparameters = arguments(hidden="hidden_channels")

    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int) -> None:
        require_sizes(hidden_channels=hidden_channels)
        super().__init__()
        # X W is made once for both graphs: to shuffle its rows is to shuffle those of X, and X may stay sparse.
        self.lin = FeatureLinear(in_channels, hidden_channels, bias=False)
        self.infomax = DeepGraphInfomax(hidden_channels, _Encoder(hidden_channels), _summary, _corruption)
        self.classifier = FeatureLinear(hidden_channels, out_channels)
        self._epoch_loss = torch.tensor(float("nan"))

    def forward(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes, which mean nothing before :meth:`solve`."""
        logits: Tensor = self.classifier(self.embed(x, edge_index, edge_attr))
        return logits

    def embed(self, x: Features, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The output of the encoder."""
        H: Tensor = self.infomax.encoder(self.lin(x), edge_index, edge_attr)
        return H

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """The encoder and the discriminator; the classifier is fitted by :meth:`solve`."""
        learned = [*self.lin.parameters(), *self.infomax.parameters()]
        return [{"params": learned, "weight_decay": weight_decay}]

    def losses(self, inputs: tuple[Any, ...], train: Labelled) -> Iterator[Tensor]:
        """How badly nodes are told from shuffled ones; no label is looked at."""
        x, edge_index, edge_attr = (*inputs, None)[:3]
        z, encoder = self.lin(x), self.infomax.encoder
        weights = (encoder.bias, encoder.activation.weight, self.infomax.weight)
        graph = gcn_graph(z, edge_index, edge_attr)
        loss: Tensor
        # Rows of a multiple of 64 channels are whole vectors; see LANES of cagat.models.infomax.
        if can_be_compiled(graph, z, *weights) and z.size(1) % 64 == 0:
            # Imported here, so that importing cagat does not wait for the compiler.
            from cagat.models.infomax import InfomaxObjective

            transition = graph.transition("sym", z.dtype)
            loss = InfomaxObjective.apply(z, _shuffle(z), *weights, graph.pattern, transition)  # type: ignore[no-untyped-call]
        else:
            loss = self.infomax.loss(*self.infomax(z, edge_index, edge_attr))
        self._epoch_loss = loss.detach()
        yield loss

    def stopping_loss(self, inputs: tuple[Any, ...], logits: Tensor | None, val: Labelled) -> Tensor:
        """The loss that the epoch was trained on, as in the authors' code."""
        return self._epoch_loss

    def solve(self, inputs: tuple[Any, ...], train: Labelled) -> None:
        """Fit the classifier to the frozen encoder as the authors did: 100 steps of Adam, learning rate 0.01."""
        with torch.no_grad():
            H = self.embed(*inputs)[train.nodes]
        self.classifier.reset_parameters()
        optimizer = torch.optim.Adam(self.classifier.parameters(), lr=0.01)
        for _ in range(100):
            optimizer.zero_grad()
            F.cross_entropy(self.classifier(H), train.classes, train.class_weight).backward()  # type: ignore[no-untyped-call]
            optimizer.step()


class _Encoder(torch.nn.Module):
    """One graph convolution of features that are transformed already."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(channels))
        self.activation = torch.nn.PReLU()

    def forward(self, z: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> Tensor:
        H: Tensor = self.activation(propagate(z, edge_index, edge_attr) + self.bias)
        return H


def _summary(H: Tensor, *_: Any) -> Tensor:
    return H.mean(dim=0).sigmoid()


def _shuffle(z: Tensor) -> Tensor:
    return torch.randperm(z.size(0), device=z.device)


def _corruption(z: Tensor, edge_index: Tensor, edge_attr: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    return z[_shuffle(z)], edge_index, edge_attr
