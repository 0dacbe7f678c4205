import numpy as np
import pandas
import pytest
from scipy import sparse

from cagat import CaGATClassifier
from cagat.errors import ConfigError, DatasetError, NonFiniteError
from cagat.estimator.validation import (
    checked_labels,
    checked_points,
    is_unlabelled,
    numbered,
    resolve_parameters,
)
from cagat.models import card

X = np.eye(3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"preset": "tuend"}, "no preset 'tuend'"),
        ({"alpha": 1.5}, "alpha must be a number from 0 to 1, but is 1.5"),
        ({"support": "all"}, "support must be one of full, edges, but is 'all'"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, but is 0"),
        ({"lr": "fast"}, "lr must be a number from 0 to 1000, but is 'fast'"),
        ({"hidden": 4.5}, "hidden must be a whole number .*, but is 4.5"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1, but is 0"),
        ({"feature_norm": "l3"}, "feature_norm must be one of .*, standard, but is 'l3'"),
        *(({"validation_fraction": bad}, f'"auto", or at least 0 and less than 1, but is {bad!r}') for bad in (
            -0.1, 1, 1.0, float("nan"), "some", None,
        )),
    ],
)  # fmt: skip
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ConfigError, match=message):
        CaGATClassifier(**parameters).fit(X, [0, 1, 0])


def test_what_is_none_is_the_presets():
    parameters = CaGATClassifier(preset="paper", lam=np.float32(0.5), hidden=np.int64(3)).get_params()
    preset = card("cagat").preset("paper")
    assert set(preset) <= set(parameters), "every value of a preset can be set"
    found = resolve_parameters(parameters, measured=False)
    assert {**preset, "lam": 0.5, "hidden": 3}.items() >= found.network.items()
    assert (found.options.lr, found.options.patience) == (preset["lr"], preset["patience"])
    # The presets were made for bags of words, so measurements are standardised.
    assert found.feature_norm == preset["feature_norm"]
    assert resolve_parameters(parameters, measured=True).feature_norm == "standard"
    assert resolve_parameters({**parameters, "feature_norm": "l2"}, measured=True).feature_norm == "l2"


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_infinity_comes_with_a_remedy(form, value):
    with pytest.raises(NonFiniteError, match=r"infinity or a value too large.*Remove or replace it"):
        checked_points(CaGATClassifier(), form(X * value if np.isfinite(value) else np.where(X, value, 0)))


def test_the_rest_is_scikit_learns():
    assert checked_points(CaGATClassifier(), X).dtype == np.float32
    with pytest.raises(ValueError, match=r"contains NaN\.\nCaGATClassifier does not accept missing values"):
        checked_points(CaGATClassifier(), np.where(X, np.nan, 0))
    with pytest.raises(ValueError, match="requires y to be passed"):
        checked_points(CaGATClassifier(), X, None)


@pytest.mark.parametrize(
    ("y", "numbers"),
    [
        (np.array([5, -1, 3]), [1, -1, 0]),
        (np.array([True, False, True]), [1, 0, 1]),
        (np.array(["b", "-1", "a"]), [1, -1, 0]),
        (np.array(["b", None, "a", -1, np.nan, pandas.NA, "-1"], dtype=object), [1, -1, 0, -1, -1, -1, -1]),
        (np.array([7, None, 2], dtype=object), [1, -1, 0]),
        (np.array(["", "a", "-1"]), [0, 1, -1]),  # An empty text is a text.
    ],
)
def test_classes_are_numbered_in_order(y, numbers):
    assert numbered(y)[1].tolist() == numbers
    assert (is_unlabelled(y) == (np.array(numbers) == -1)).all()


def test_as_many_labels_as_rows():
    with pytest.raises(DatasetError, match=r"y has 2 labels, but X has 3 rows\. Give one label per row"):
        checked_labels([0, 1], np.ones((3, 1)))


def test_measurements_are_no_classes():
    with pytest.raises(ValueError, match="Unknown label type"):
        numbered(np.array([0.5, 1.25, -1]))
