"""Coefficients that are constants, or learnt for each head."""

import math
from typing import Any

import torch
from torch.nn import Parameter
from torch.nn import functional as F

from cagat.diffusion import Coefficients


class LearnableCoefficients(torch.nn.Module):
    r"""The coefficients :math:`\alpha, \lambda \in [0, 1]` and :math:`\xi \ge 0`, fixed, or one per head and learnt.

    A learnt coefficient is kept in its range by its form, :math:`\sigma(\sigma^{-1}(\alpha_0) + o)` and
    :math:`\xi_0 (1 + \mathrm{elu}(o))`, where the offset :math:`o` is what is learnt. It starts at zero, so that the
    coefficient starts at the value given, and weight decay draws it back there. A coefficient that is given at an end
    of its range is switched off or fully on, and is not learnt.
    """

    def __init__(self, alpha: float, lam: float, xi: float, heads: int, learn: bool = False) -> None:
        super().__init__()
        self.start = Coefficients(float(alpha), float(lam), float(xi))
        for name, value, end in (("alpha", alpha, 1), ("lam", lam, 1), ("xi", xi, math.inf)):
            learnt = learn and 0 < value < end
            self.register_parameter(f"{name}_offset", Parameter(torch.empty(heads)) if learnt else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Go back to the values given."""
        for offset in self.parameters():
            torch.nn.init.zeros_(offset)

    def forward(self) -> Coefficients:
        """The coefficients as they are now: numbers, or tensors of shape ``(heads,)`` where they are learnt."""
        values: dict[str, Any] = {}
        for name, start in zip(Coefficients._fields, self.start, strict=True):
            offset = getattr(self, f"{name}_offset")
            if offset is None:
                values[name] = start
            elif name == "xi":
                values[name] = start * (1 + F.elu(offset))
            else:
                values[name] = torch.sigmoid(math.log(start / (1 - start)) + offset)
        return Coefficients(**values)
