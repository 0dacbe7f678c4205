"""Weight decay for some of a model's parameters."""

from collections.abc import Collection
from typing import Any

import torch


def decay_only(
    model: torch.nn.Module, decaying: Collection[torch.nn.Parameter], weight_decay: float
) -> list[dict[str, Any]]:
    """All parameters of a model for Adam, where only the given ones decay."""
    chosen = {id(parameter) for parameter in decaying}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
    groups = [(list(decaying), weight_decay), (rest, 0.0)]
    return [{"params": parameters, "weight_decay": decay} for parameters, decay in groups if parameters]


def weights_of(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """All parameters that are not biases."""
    return [parameter for name, parameter in model.named_parameters() if not name.endswith("bias")]
