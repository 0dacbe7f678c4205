"""Telling why a result is not finite, before it spreads."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from cagat.errors import NonFiniteError
from cagat.nn.sparse_features import SparseFeatures


def require_finite(
    result: Tensor, x: Tensor | SparseFeatures, edge_attr: Tensor | None, weights: Iterable[Tensor]
) -> None:
    """Raise if a result is infinite or not a number and the features are to blame.

    A sum tells whether anything can be wrong, which costs next to nothing; only then the reason is looked for.
    Weights that are not finite are left to whoever trains them. Nothing is looked at while a network is compiled, nor
    on other devices than the CPU, which would have to be waited for.

    Args:
        result: What a layer computed.
        x: The features of nodes that it was given.
        edge_attr: The features of edges, if it was given any.
        weights: Its parameters.

    Raises:
        NonFiniteError: It says how many features are NaN or infinite, or how large they are.
    """
    if torch.compiler.is_compiling() or result.device.type != "cpu":
        return
    with torch.no_grad():
        # As a number: torch's isfinite of one takes longer than the sum.
        if math.isfinite(result.sum().item()) or result.isfinite().all():
            return
        values = x.values if isinstance(x, SparseFeatures) else x
        for name, given in (("x", values), ("edge_attr", edge_attr)):
            wrong = 0 if given is None else int((~given.isfinite()).sum())
            if wrong:
                raise NonFiniteError(
                    f"{name} holds {wrong} values that are NaN or infinite; fill or remove them, for instance with "
                    f"torch.nan_to_num({name})"
                )
        if all(weight.isfinite().all() for weight in weights):
            largest = float(values.abs().max())
            raise NonFiniteError(
                f"the layer's result is too large for {result.dtype}, since features are up to {largest:.3g}; scale "
                "them, for instance with cagat.data.normalize_features(x), or compute in float64"
            )
