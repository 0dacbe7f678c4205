"""What the saved state of a trainer must be like."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from cagat.training.trainer import Trainer

_MOMENTS = ("exp_avg", "exp_avg_sq")


def check_state(state: Mapping[str, Any], trainer: "Trainer") -> None:
    """Raise an error, of any kind, unless a trainer can go on with the state.

    Taking the state back finds out more: the names and shapes of weights, and what random numbers are drawn from. Here
    is what would else be noticed only when it is used, or would fill the memory.
    """
    for tensor in _tensors(state):
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise ValueError("a tensor says that it has more numbers than are there")
    history = state["history"]
    if history.dtype != torch.float64 or (history.numel() and (history.dim() != 2 or history.size(1) != 3)):
        raise ValueError(f"the history has type {history.dtype} and shape {tuple(history.shape)}")
    _check_stopping(state["stopping"], state["model"], len(history))
    if not all(isinstance(tensor, Tensor) and tensor.is_floating_point() for tensor in state["training"].values()):
        raise ValueError("what the model remembers between epochs are no tensors of numbers")
    if trainer.optimizer is not None:
        _check_optimizer(state["optimizer"], trainer.optimizer)


def _tensors(value: Any) -> Iterator[Tensor]:
    """All tensors in a value of dictionaries and lists, each of which is visited once, however often it is there."""
    seen, left = set(), [value]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, (Mapping, list, tuple)):
            left.extend(part.values() if isinstance(part, Mapping) else part)


def _check_stopping(stopping: Mapping[str, Any], weights: Mapping[str, Tensor], epochs: int) -> None:
    loss, best, waited = stopping["best_loss"], stopping["best_epoch"], stopping["waited"]
    if not isinstance(loss, float) or math.isnan(loss) or not isinstance(best, int) or not isinstance(waited, int):
        raise ValueError("the best epoch and its loss are no numbers")
    if not 0 <= best <= epochs or waited < 0:
        raise ValueError(f"epoch {best} cannot be the best of {epochs}")
    if best and _shapes(stopping["weights"]) != _shapes(weights):
        raise ValueError("the weights of the best epoch are not those of the model")


def _check_optimizer(state: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> None:
    known = optimizer.state_dict()["param_groups"]
    for group, own in zip(state["param_groups"], known, strict=True):
        # Another version of torch may have other keys.
        for key in own.keys() & group.keys():
            if own[key] != group[key]:
                raise ValueError(f"{key} of the optimizer is not as it was")
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, moments in state["state"].items():
        shapes = _shapes(moments)
        step = shapes.pop("step")
        if math.prod(step) != 1 or shapes != dict.fromkeys(_MOMENTS, tuple(parameters[number].shape)):
            raise ValueError("what the optimizer remembers has not the shapes of the weights")


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}
