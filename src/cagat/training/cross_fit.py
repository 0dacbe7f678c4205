"""Training on every label there is: folds decide when to stop, and say how good the model is."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cagat.models import Labelled
from cagat.settings import FitOptions
from cagat.training.trainer import EpochPlan, Trainer, Validation, accuracy_of

FOLDS = 5
"""How many parts the labelled nodes are put into."""

FEWEST_LABELS = 5
"""Labels that half of the classes must have for folds to tell more than they cost."""


def folds_of(classes: Tensor, seed: int) -> Tensor | None:
    """The fold of each labelled node, every class spread evenly over them; ``None`` if there are too few labels."""
    counts = torch.bincount(classes)
    if counts[counts > 0].double().median() < FEWEST_LABELS:
        return None
    order = np.arange(len(classes))
    np.random.RandomState(seed).shuffle(order)
    by_class = order[np.argsort(classes.numpy()[order], kind="stable")]
    fold = np.empty(len(classes), dtype=np.int64)
    fold[by_class] = np.arange(len(classes)) % FOLDS
    return torch.from_numpy(fold)


class CrossFit(Trainer):
    """A trainer on all labels, and beside it one for each fold, on the labels of the others.

    All take one epoch after the other together. The validation loss is that of all labelled nodes, each by the trainer
    that has not seen its label. So the epoch with the lowest is good for the model on all labels too, and the accuracy
    there is that of predictions for nodes whose label was not known.

    Args:
        plan: How to train on all labels.
        folds: How to train on those of all folds but one, which is for validation.
        options: How to fit.

    Attributes:
        out_of_fold: The logits of the labelled nodes, in the order of the plan's, at the best epoch.
    """

    def __init__(self, plan: EpochPlan, folds: Sequence[EpochPlan], options: FitOptions | None = None) -> None:
        super().__init__(plan, options)
        self.folds = [Trainer(fold, options) for fold in folds]
        position = torch.empty(int(plan.inputs[0].shape[0]), dtype=torch.int64)
        position[plan.train.nodes.cpu()] = torch.arange(plan.train.nodes.numel())
        self._positions = [position[fold.val.nodes.cpu()] for fold in folds]
        self._latest = self.out_of_fold = torch.empty(0)

    @property
    def has_validation(self) -> bool:
        """Folds are for that."""
        return True

    def _learn(self, number: int) -> float:
        loss = super()._learn(number)
        if not self.model.labels_at_the_end:  # Such a model learns nothing from labels before the end.
            for fold in self.folds:
                fold._learn(number)
        return loss

    def _validate(self) -> Validation:
        if self.model.labels_at_the_end:
            return super()._validate()
        for fold in self.folds:
            fold.model.eval()
        self._latest = self._gathered([fold.plan.model(*fold.plan.inputs) for fold in self.folds])
        labelled = self._labelled()
        return Validation(labelled.loss(self._latest).item(), accuracy_of(self._latest, labelled))

    def _labelled(self) -> Labelled:
        """The labelled nodes by their places in the logits out of fold."""
        classes = self.plan.train.classes.cpu()
        return Labelled(torch.arange(len(classes)), classes)

    def _gathered(self, logits: list[Tensor]) -> Tensor:
        gathered = torch.empty(self.plan.train.nodes.numel(), logits[0].size(1), dtype=logits[0].dtype)
        for fold, positions, found in zip(self.folds, self._positions, logits, strict=True):
            gathered[positions] = found.detach()[fold.plan.val.nodes].cpu()
        return gathered

    def _keep_best(self) -> None:
        super()._keep_best()
        self.out_of_fold = self._latest

    def finish(self) -> None:
        """See :meth:`Trainer.finish`."""
        if self.model.labels_at_the_end:
            logits = []
            for fold in self.folds:
                self.model.load_state_dict(self._best_weights)
                self.model.solve(self.plan.inputs, fold.plan.train)
                self.model.eval()
                with torch.no_grad():
                    logits.append(self.model(*self.plan.inputs))
            self.out_of_fold = self._gathered(logits)
        super().finish()

    def state_dict(self) -> dict[str, Tensor]:
        """See :meth:`Trainer.state_dict`."""
        folds = {
            f"fold{number}.{name}": one for number, fold in enumerate(self.folds) for name, one in fold.learnt().items()
        }
        return {**super().state_dict(), **folds, "out_of_fold": self.out_of_fold}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:  # type: ignore[override]
        """See :meth:`Trainer.load_state_dict`."""
        for number, fold in enumerate(self.folds):
            prefix = f"fold{number}."
            fold.load_learnt({name.removeprefix(prefix): one for name, one in state.items() if name.startswith(prefix)})
        self.out_of_fold = state["out_of_fold"]
        super().load_state_dict(state)
