"""What training minimises: the loss on the labels, alone or with predictions for all nodes that agree under dropout."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cagat.models import Labelled
from cagat.settings import FitOptions


@dataclass(frozen=True)
class Objective:
    r"""The loss of a step, apart from the network and from how an epoch goes over the graph.

    *Supervised*: the cross-entropy on the training nodes. *Consistent*: a step predicts all nodes several times, each
    time with dropout of its own, :math:`P_1, \dots, P_M`. The mean of these predictions, sharpened, is the target
    :math:`T`, through which no gradient flows, and

    .. math::
        L = \frac{1}{M} \sum_m \Big( \mathrm{CE}(P_m) + r w \, \frac{1}{n} \sum_i \| P_{m,i} - T_i \|^2 \Big), \qquad
        T_{ic} \propto \big( \bar{P}_{ic} / \bar{p}_c^{\,a} \big)^{1/\tau}

    as in `GRAND <https://arxiv.org/abs/2005.11079>`_, with an alignment of ours: :math:`\bar{p}_c` is the share of
    class :math:`c` in the average prediction of all nodes, so that :math:`a > 0` keeps a class from swallowing others.

    Args:
        samples: How often a step predicts, :math:`M`.
        consistency: The weight :math:`w` of agreement; 0 for the supervised objective.
        ramp: The epochs over which the weight rises to :math:`w`; :math:`r` is how far it has come.
        sharpening: The temperature :math:`\tau` of the target; 1 leaves it as it is.
        alignment: The power :math:`a`.
        decay: What the weight decay is multiplied with.
    """

    samples: int = 1
    consistency: float = 0.0
    ramp: int = 0
    sharpening: float = 1.0
    alignment: float = 0.0
    decay: float = 1.0

    @classmethod
    def of(cls, options: FitOptions, train: Labelled, nodes: int) -> "Objective":
        """The objective of a fit on a graph of so many nodes.

        The fewer labels there are, the more agreement counts, and the stronger is the alignment: with many, the network
        knows better than that all classes are of one size. If most nodes have a label, only labels are learnt from. And
        many labels need less weight decay.
        """
        labels = _labels_per_class(train)
        decay = min(1.0, MANY / labels)
        if options.objective == "supervised" or 2 * train.nodes.numel() > nodes:
            return cls(decay=decay)
        few = FEW / labels
        alignment = min(LARGEST_ALIGNMENT, few) if options.alignment is None else options.alignment
        weight = options.consistency * (1 + options.emphasis * min(1.0, few))
        return cls(options.samples, weight, options.ramp, options.sharpening, alignment, decay)

    def predict(self, network: Callable[..., Tensor], inputs: tuple[Any, ...]) -> list[Tensor]:
        """The logits of all nodes, as often as the objective asks for."""
        return [network(*inputs) for _ in range(self.samples)]

    def loss(
        self,
        predictions: Sequence[Tensor],
        supervised: Callable[[Tensor], Tensor],
        epoch: int,
        total: Callable[[Tensor], Tensor] = lambda share: share,
    ) -> Tensor:
        """The loss of a step.

        Args:
            predictions: What :meth:`predict` gave.
            supervised: The loss of logits on the labels.
            epoch: The number of the epoch, from 1.
            total: Adds up what the processes that share a graph have; the loss is then this one's share.
        """
        loss = torch.stack([supervised(logits) for logits in predictions]).mean()
        if self.consistency == 0:
            return loss
        reached = min(1.0, epoch / self.ramp) if self.ramp else 1.0
        probabilities = torch.stack([logits.softmax(dim=1) for logits in predictions])
        nodes = total(loss.new_tensor(float(probabilities.size(1)))).item()
        target = self._target(probabilities.detach().mean(dim=0), nodes, total)
        disagreement = (probabilities - target).square().sum() / (nodes * self.samples)
        return loss + reached * self.consistency * disagreement

    def _target(self, mean: Tensor, nodes: float, total: Callable[[Tensor], Tensor]) -> Tensor:
        """What all predictions should be: their mean, aligned and sharpened."""
        logarithm = mean.clamp(min=torch.finfo(mean.dtype).tiny).log()
        if self.alignment > 0:
            share = total(mean.sum(dim=0)) / nodes
            logarithm = logarithm - self.alignment * share.clamp(min=torch.finfo(mean.dtype).tiny).log()
        return (logarithm / self.sharpening).softmax(dim=1)


class Sampled(torch.nn.Module):
    """A network that predicts as often as an objective asks for, in one call, which is what torch's DDP counts."""

    def __init__(self, network: torch.nn.Module, objective: Objective) -> None:
        super().__init__()
        self.network, self.objective = network, objective

    def forward(self, *inputs: Any) -> list[Tensor]:
        """The logits of all samples."""
        return self.objective.predict(self.network, inputs)


FEW = 2.0
"""Labels per class that are few: the more of them there are, the less agreement counts, and the less is aligned."""

MANY = 20.0
"""Labels per class that are many: with more of them the weight decay is smaller in proportion."""

LARGEST_ALIGNMENT = 0.6
"""The largest default power of the alignment, which is else :data:`FEW` over the labels per class."""


def _labels_per_class(train: Labelled) -> float:
    """Of the classes that have any."""
    counts = torch.bincount(train.classes)
    return max(1, train.classes.numel()) / max(1, int((counts > 0).sum()))
