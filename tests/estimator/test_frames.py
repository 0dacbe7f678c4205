import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from cagat import CaGATClassifier
from cagat.errors import ConfigError, DatasetError

FAST = {"rounds": 1, "steps": 1, "heads": 2, "hidden": 4, "lr": 0.3, "epochs": 4, "random_state": 0}


def people(count=60):
    """Columns of all kinds, gaps included, three classes that some of them tell apart, and half of the labels."""
    random = np.random.RandomState(0)
    y = random.randint(3, size=count)
    frame = pd.DataFrame(
        {
            "age": random.rand(count) + y,
            "country": np.array(["de", "fr", "it"])[np.where(random.rand(count) < 0.9, y, 0)],
            "plan": pd.Categorical.from_codes(random.randint(2, size=count), ["free", "paid"]),
            "active": random.rand(count) < 0.5,
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.randint(1000, size=count), "D"),
            "bio": [f"likes {'tea' if one else 'coffee'} and walks number {row}" for row, one in enumerate(y)],
        }
    )
    frame.loc[3, "age"] = np.nan
    frame.loc[4, "country"] = None
    frame.loc[5, "joined"] = pd.NaT
    return frame, y, np.where(np.arange(count) % 2, y, -1)


@pytest.fixture(scope="module")
def fitted():
    frame, y, few = people()
    return CaGATClassifier(**FAST).fit(frame, few), frame, y, few


def test_columns_of_any_kind(fitted):
    classifier, frame, y, few = fitted
    assert classifier.n_features_in_ == 6
    assert classifier.feature_names_in_.tolist() == list(frame)
    assert classifier.model_.convs[0].in_channels == classifier._features.shape[1] > 6
    assert classifier.get_feature_names_out().shape == (8,)
    assert np.mean(classifier.transduction_[few == -1] == y[few == -1]) > 0.7


def test_fitted_rows_are_recognised_and_others_joined(fitted):
    classifier, frame, y, _ = fitted
    np.testing.assert_array_equal(classifier.predict_proba(frame), classifier.label_distributions_)
    np.testing.assert_array_equal(classifier.predict_proba(frame[5:9]), classifier.label_distributions_[5:9])
    shuffled = frame.sample(frac=1, random_state=1)
    np.testing.assert_array_equal(classifier.predict(shuffled), classifier.transduction_[shuffled.index])
    new = frame.assign(age=frame["age"] + 0.05, country=frame["country"].where(frame.index != 7, "xx"))
    assert classifier.score(new, y) > 0.65
    np.testing.assert_allclose(classifier.predict_proba(new)[7:8], classifier.predict_proba(new[7:8]), atol=1e-5)


def test_with_a_graph_and_on_another(fitted):
    _, frame, _, few = fitted
    ring = np.stack([np.arange(60), np.roll(np.arange(60), 1)])
    classifier = CaGATClassifier(**FAST).fit(frame, few, graph=np.concatenate([ring, ring[::-1]], axis=1))
    assert classifier.predict(frame).shape == (60,)
    assert classifier.predict_proba(frame[:3], graph=np.array([[0, 1], [1, 0]])).shape == (3, 3)


def test_pickled_and_cloned(fitted):
    classifier, frame, _, _ = fitted
    new = frame.assign(age=1.5)
    loaded = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(loaded.predict_proba(new), classifier.predict_proba(new))
    assert clone(CaGATClassifier(columns={"bio": "drop"})).columns == {"bio": "drop"}
    assert not hasattr(clone(classifier), "encoder_")


def test_numbers_without_gaps_are_taken_as_they_are():
    frame, _, few = people()
    numbers = pd.DataFrame({"age": frame["age"].fillna(0), "active": frame["active"], "count": np.arange(60)})
    classifier = CaGATClassifier(**FAST).fit(numbers, few)
    assert classifier.encoder_ is None
    plain = CaGATClassifier(**FAST).fit(numbers.to_numpy(dtype=float), few)
    np.testing.assert_array_equal(classifier.label_distributions_, plain.label_distributions_)
    # What was an encoder's before is none of the next fit's.
    again = CaGATClassifier(**FAST).fit(frame, few).fit(numbers, few)
    np.testing.assert_array_equal(again.predict_proba(numbers), classifier.label_distributions_)


def test_kinds_can_be_given():
    frame, _, few = people()
    codes = pd.DataFrame({"age": frame["age"].fillna(0), "postcode": np.arange(60) % 4})
    classifier = CaGATClassifier(**FAST, columns={"postcode": "category"}).fit(codes, few)
    assert classifier.encoder_ is not None
    assert classifier._features.shape[1] > CaGATClassifier(**FAST).fit(codes, few)._features.shape[1]
    with pytest.raises(ConfigError, match="columns of a pandas frame are, but X is a ndarray"):
        CaGATClassifier(columns={"age": "number"}).fit(codes.to_numpy(), few)
    with pytest.raises(ConfigError, match="columns must say what columns are"):
        CaGATClassifier(columns=["age"]).fit(codes, few)


def test_other_columns_than_fitted_are_refused(fitted):
    classifier, frame, _, _ = fitted
    with pytest.raises(DatasetError, match="must be a frame with the same columns, but is a ndarray"):
        classifier.predict(frame.to_numpy())
    with pytest.raises(ValueError, match="yet now missing:\n- bio"):
        classifier.predict(frame.drop(columns="bio"))
    with pytest.raises(ValueError, match="must be in the same order"):
        classifier.predict(frame[frame.columns[::-1]])


def test_columns_without_names():
    frame, _, few = people()
    classifier = CaGATClassifier(**FAST).fit(frame.set_axis(range(6), axis=1), few)
    assert classifier.n_features_in_ == 6
    assert not hasattr(classifier, "feature_names_in_")
