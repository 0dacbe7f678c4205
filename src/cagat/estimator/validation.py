"""What users pass to the classifier, checked before anything is computed."""

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from torch import Tensor

from cagat.configs import card
from cagat.errors import NO_LIMIT, ConfigError, DatasetError, NonFiniteError, expected_number, wrong_value
from cagat.estimator.features import STANDARD
from cagat.estimator.fitting import AUTO
from cagat.settings import CONSISTENT, SETTINGS, FitOptions, checked
from cagat.training.problem import class_weight

LARGEST_WEIGHT = 1_000_000
"""Of a class in the loss."""


class Parameters(NamedTuple):
    """The classifier's parameters with nothing left open, by who takes them."""

    network: dict[str, Any]
    options: FitOptions
    feature_norm: str
    class_weight: str | Mapping[Any, float]


def resolve_parameters(parameters: Mapping[str, Any], *, measured: bool) -> Parameters:
    """Check the classifier's parameters, and take those that are None from their preset.

    Dense points without a graph are measurements of any scale (`measured`), not the bags of words that the presets were
    made for, so their default is to be standardised.
    """
    fraction, count = parameters["validation_fraction"], parameters["n_neighbors"]
    known_word = isinstance(fraction, str) and fraction == AUTO
    if not known_word and not (isinstance(fraction, Real) and 0 <= float(fraction) < 1):
        raise ConfigError(
            f'validation_fraction must be "{AUTO}", or at least 0 and less than 1, but is {fraction!r:.80}.'
        )
    if not isinstance(count, Integral) or isinstance(count, bool) or int(count) < 1:
        raise ConfigError(f"{wrong_value('n_neighbors', expected_number(int, 1, NO_LIMIT), count)}.")
    known = card("cagat")
    preset = known.preset(parameters["preset"])
    asked = ((name, parameters.get(name)) for name in (*known.settings, "objective", *CONSISTENT))
    given = {name: value for name, value in asked if value is not None}
    norm = given.pop("feature_norm", STANDARD if measured else preset["feature_norm"])
    if norm not in (norms := (*SETTINGS["feature_norm"].choices, STANDARD)):
        raise ConfigError(f"feature_norm must be one of {', '.join(norms)}, but is {norm!r:.80}.")
    values = {**preset, **{name: checked(name, value) for name, value in given.items()}}
    options = FitOptions(**{field.name: values[field.name] for field in fields(FitOptions) if field.name in values})
    network = {key: values[key] for key in known.network.hyperparameters if key in values}
    return Parameters(network, options, norm, _checked_class_weight(parameters["class_weight"]))


def _checked_class_weight(given: Any) -> str | Mapping[Any, float]:
    if not isinstance(given, Mapping):
        return str(checked("class_weight", SETTINGS["class_weight"].default if given is None else given))
    for name, weight in given.items():
        if not isinstance(weight, Real) or isinstance(weight, bool) or not 0 <= float(weight) <= LARGEST_WEIGHT:
            expected = expected_number(float, 0, LARGEST_WEIGHT)
            raise ConfigError(f"{wrong_value(f'class_weight[{name!r:.80}]', expected, weight)}.")
    return given


def weight_of_classes(
    choice: str | Mapping[Any, float], classes: NDArray[Any], numbers: NDArray[np.int64]
) -> Tensor | None:
    """How much each class weighs in the loss, if not all the same; one that a mapping does not name weighs 1."""
    if isinstance(choice, str):
        return class_weight(torch.from_numpy(numbers[numbers >= 0]), len(classes), choice)
    names = classes.tolist()
    unknown = [name for name in choice if name not in names]
    if unknown:
        raise ConfigError(f"class_weight has a weight for {unknown[0]!r:.80}, but no row is labelled so.")
    weights = torch.tensor([float(choice.get(name, 1)) for name in names])
    if not weights.any():
        raise ConfigError("class_weight is 0 for every class, so nothing would be learnt. Give some class a weight.")
    return weights


def checked_points(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """X in single precision, dense or CSR, as scikit-learn checks it; with y=None, it says that y is missing."""
    try:
        return validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float32, **options)
    except ValueError as error:
        if "infinity" not in str(error):
            raise
        # Scikit-learn's message, which its users know, does not say what to do.
        raise NonFiniteError(f"{error} Remove or replace it, as by numpy.nan_to_num, or scale X.") from error


def checked_labels(y: Any, X: Any) -> NDArray[Any]:
    """The labels as a vector as long as X; scikit-learn's own errors, which its users know, if they are not."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    if len(labels) != X.shape[0]:
        raise DatasetError(
            f"y has {len(labels)} labels, but X has {X.shape[0]} rows. Give one label per row, -1 where there is none."
        )
    return labels


def is_unlabelled(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries say that a node has no label.

    That is -1 in numbers; the text "-1" in texts, which is what NumPy makes of -1 among texts; and in an array of
    objects any of these, None or NaN, as pandas writes what is missing.
    """
    if y.dtype.kind in "US":
        return np.asarray(y.astype(np.str_) == "-1")
    if y.dtype.kind != "O":
        return np.asarray(y == -1)
    # pandas.NA compares to nothing, and cannot be imported where there is no pandas.
    absent = (value is None or type(value).__name__ == "NAType" for value in y)
    return np.array([gone or value != value or value in (-1, "-1") for gone, value in zip(absent, y, strict=True)])


def numbered(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes in order, and for each node the number of its class, or -1 for none.

    If they are no classes, that is scikit-learn's own error, which its users know.
    """
    labelled = ~is_unlabelled(y)
    if not labelled.any():
        raise DatasetError(
            f"None of the {len(y)} nodes has a label: all of y is -1. Give some nodes of each class their label."
        )
    known = plain(y[labelled])
    check_classification_targets(known)
    classes, numbers = np.unique(known, return_inverse=True)
    if len(classes) < 2:
        raise DatasetError(
            f"All labelled nodes are of one class, {classes[0]!s}, so there is nothing to tell apart. Label nodes of "
            "at least two classes; -1 is no class but means unlabelled."
        )
    every = np.full(len(y), -1, dtype=np.int64)
    every[labelled] = numbers
    return classes, every


def plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels without unlabelled ones in their natural type: numbers among None are objects only because of the None."""
    return np.array(labels.tolist()) if labels.dtype.kind == "O" and len(labels) else labels
