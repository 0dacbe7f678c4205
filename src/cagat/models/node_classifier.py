"""What the trainer asks of a model."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class Labelled(NamedTuple):
    """Nodes whose class may be looked at, and how much each class weighs in their loss, if not all the same."""

    nodes: Tensor
    classes: Tensor
    class_weight: Tensor | None = None

    def to(self, device: torch.device) -> "Labelled":
        """The same on another device."""
        return Labelled(*(None if part is None else part.to(device) for part in self))  # type: ignore[arg-type]

    def some(self, chosen: Tensor) -> "Labelled":
        """Some of the nodes, by their places or by a mask."""
        return self._replace(nodes=self.nodes[chosen], classes=self.classes[chosen])

    def loss(self, logits: Tensor) -> Tensor:
        """The cross-entropy of the logits of all nodes at these."""
        return F.cross_entropy(logits[self.nodes], self.classes, self.class_weight)


class NodeClassifier(torch.nn.Module):
    r"""A model that labels the nodes of a graph, and how it wants to be trained.

    A network that is trained full-batch with cross-entropy writes :meth:`forward` and :meth:`embed` and inherits the
    rest. Whatever is random draws from torch's own generator, and whatever training carries from epoch to epoch is a
    weight or in :meth:`training_state`, so that a resumed run is bitwise the same.

    Args:
        in_channels: Number of input features.
        hidden_channels: Number of units of the hidden layer, if there is one.
        out_channels: Number of classes.

    Shapes:
        - **input:** node features :math:`(n, F_{in})`, dense, or sparse if the model :attr:`takes_sparse`; edges
          :math:`(2, |E|)`; weights :math:`(|E|)` *(optional)*, if it :attr:`takes_weights`
        - **output:** logits :math:`(n, F_{out})`
    """

    hyperparameters: ClassVar[Mapping[str, str]] = {}
    """Which keys of a configuration the model takes, and the names of its arguments for them."""

    takes_sparse: ClassVar[bool] = False
    """Whether :meth:`forward` takes sparse features; if not, it is given dense ones."""

    takes_weights: ClassVar[bool] = True
    """Whether ``edge_attr``, the weights of the edges, has an effect."""

    inductive: ClassVar[bool] = True
    """Whether the trained model also labels the nodes of another graph."""

    labels_at_the_end: ClassVar[bool] = False
    """Whether the logits mean nothing before :meth:`solve`, so that there is nothing to validate in an epoch."""

    attention_weight_decay: float | None = None
    """The weight decay of the vectors that attention is made with, if it has one of its own."""

    closed_form: ClassVar[bool] = False
    """Whether the model is fitted by :meth:`solve` alone, without epochs."""

    def forward(self, x: Any, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The logits of all nodes, shape (nodes, classes)."""
        raise NotImplementedError

    def embed(self, x: Any, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """The hidden representation of all nodes, from which the last layer makes the logits."""
        raise NotImplementedError

    def reach(self) -> int | None:
        """How many hops from a node anything can be that its logits depend on; ``None`` if that is not known.

        In the subgraph of all nodes within so many hops of some nodes, along edges in either direction, these have the
        logits that they have in the whole graph.
        """
        return None

    def decaying(self) -> Collection[torch.nn.Parameter]:
        """The parameters that weight decay applies to."""
        return list(self.parameters())

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """What Adam optimises, and with which weight decay."""
        own, named = self.attention_weight_decay, self.named_parameters()
        attention = [] if own is None else [one for name, one in named if name.rpartition(".")[2].startswith("att")]
        decaying = [parameter for parameter in self.decaying() if parameter not in set(attention)]
        rest = [parameter for parameter in self.parameters() if parameter not in {*decaying, *attention}]
        groups = [(decaying, weight_decay), (rest, 0.0), (attention, own)]
        return [{"params": parameters, "weight_decay": decay} for parameters, decay in groups if parameters]

    @property
    def has_own_losses(self) -> bool:
        """Whether the model is trained by :meth:`losses` of its own, so that no other objective can be had."""
        return type(self).losses is not NodeClassifier.losses

    def losses(self, inputs: tuple[Any, ...], train: Labelled) -> Iterator[Tensor]:
        """The losses of an epoch; after each of them the trainer takes a step, and only then asks for the next.

        Only of a model that :attr:`has_own_losses`; an objective makes those of all others.
        """
        raise NotImplementedError

    def stopping_loss(self, inputs: tuple[Any, ...], logits: Tensor | None, val: Labelled) -> Tensor:
        """The loss that decides which weights are best and when to stop; without dropout and gradients.

        ``logits`` are those of all nodes, or ``None`` for a model that :attr:`labels_at_the_end`.
        """
        assert logits is not None, "a model that labels at the end has a stopping loss of its own"
        return val.loss(logits)

    def solve(self, inputs: tuple[Any, ...], train: Labelled) -> None:
        """The fit of a model in :attr:`closed_form`; of others, a last step with the best weights."""

    def training_state(self) -> dict[str, Tensor]:
        """What training carries from epoch to epoch beside the weights."""
        return {}

    def load_training_state(self, state: dict[str, Tensor]) -> None:
        """Take back what :meth:`training_state` gave."""


def arguments(*names: str, **renamed: str) -> Mapping[str, str]:
    """Hyperparameters that a model's arguments are called after, and those that have another name there."""
    return renamed | {name: name for name in names}


def weights_of(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """All parameters that are not biases."""
    return [parameter for name, parameter in model.named_parameters() if not name.endswith("bias")]
