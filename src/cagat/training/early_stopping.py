"""Stopping when validation no longer improves."""

import math
from typing import Any

import torch
from torch import Tensor


class EarlyStopping:
    """Keeps the weights of the lowest validation loss and says when to stop waiting for a lower one.

    Args:
        patience: How many epochs in a row may pass without a lower loss.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.best_loss = math.inf
        self.best_epoch = 0
        self._weights: dict[str, Tensor] = {}
        self._waited = 0

    @property
    def exhausted(self) -> bool:
        """Whether training should stop."""
        return self._waited >= self.patience

    def update(self, epoch: int, loss: float, model: torch.nn.Module) -> bool:
        """Take note of an epoch; whether training should stop after it."""
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_epoch = epoch
            self._waited = 0
            # state_dict() alone gives the live tensors, which the next step would change: clone them.
            self._weights = {name: weight.detach().clone() for name, weight in model.state_dict().items()}
        else:
            self._waited += 1
        return self.exhausted

    def restore(self, model: torch.nn.Module) -> None:
        """Put the best weights back."""
        if not self._weights:
            raise RuntimeError("no epoch had a finite validation loss, so there are no best weights to go back to")
        model.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, Any]:
        """What is needed to go on later."""
        return {
            "best_loss": self.best_loss,
            "best_epoch": self.best_epoch,
            "waited": self._waited,
            "weights": self._weights,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state_dict` gave."""
        self.best_loss, self.best_epoch, self._waited = state["best_loss"], state["best_epoch"], state["waited"]
        self._weights = state["weights"]
