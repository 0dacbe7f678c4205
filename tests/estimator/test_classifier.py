import doctest
import warnings

import joblib
import networkx
import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

import cagat
import cagat.estimator.classifier
from cagat import CaGATClassifier, data
from cagat.errors import ConfigError, DatasetError
from cagat.estimator import fitting
from cagat.estimator.fitting import hold_out
from cagat.settings import SETTINGS, TrainConfig

FAST = {"rounds": 1, "steps": 1, "heads": 2, "hidden": 4, "lr": 0.3, "epochs": 4, "random_state": 0}
EXPECTED_FAILURES = {
    "check_classifiers_classes": "the check's classes are -1 and 1, but -1 means unlabelled, as in scikit-learn's own "
    "semi-supervised classifiers, which the check leaves out by their names",
}


def small(**parameters):
    return CaGATClassifier(**{**FAST, **parameters})


def blobs(unlabelled=0.5, features=3):
    X, y = make_blobs(60, features, centers=3, cluster_std=1.0, random_state=1)
    few = np.where(np.random.RandomState(0).rand(60) < unlabelled, -1, y)
    return X, y, few


@pytest.fixture(scope="module")
def fitted():
    X, y, few = blobs()
    return small().fit(X, few), X, y, few


@pytest.fixture(scope="module")
def karate():
    graph = data.load("karate")
    X, y = np.random.RandomState(0).rand(34, 5), graph.y.numpy()
    return graph.edge_index, X, np.where(np.arange(34) % 2, y, -1)


@parametrize_with_checks([small()], expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_expected_failure_is_for_its_reason():
    with pytest.raises(DatasetError, match="-1 is no class but means unlabelled"):
        check_classifiers_classes("CaGATClassifier", small(epochs=1))
    # Under a name for which the check knows what -1 means, it passes.
    check_classifiers_classes("LabelSpreading", small())


def test_learns_cora_from_twenty_labels_a_class():
    graph = data.load("cora")
    y = graph.y.numpy()
    train, val, test = (part.numpy() for part in data.split(graph.y, 20, 0, seed=0))
    few = np.full_like(y, -1)
    few[train] = y[train]
    classifier = CaGATClassifier(rounds=1, lr=0.1, epochs=8, random_state=0)
    classifier.fit(sparse.csr_array(graph.x.numpy()), few, graph=graph.edge_index)
    assert len(val) == 0
    assert np.mean(classifier.transduction_[test] == y[test]) > 0.72


def test_fitted_attributes(fitted):
    classifier, _, y, few = fitted
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert classifier.n_features_in_ == 3
    assert classifier.n_iter_ == len(classifier.history_["loss"]) == FAST["epochs"]
    assert classifier.history_["loss"][-1] < classifier.history_["loss"][0]
    assert classifier.embedding_.shape == (60, 8)
    assert classifier.graph_.shape == (60, 60)
    assert (classifier.graph_ != classifier.graph_.T).nnz == 0
    assert np.mean(classifier.transduction_[few == -1] == y[few == -1]) > 0.9
    assert classifier.get_feature_names_out()[0] == "cagatclassifier0"


def test_predictions_for_fitted_rows_are_the_transduction(fitted):
    classifier, X, _, _ = fitted
    assert (classifier.predict(X) == classifier.transduction_).all()
    assert (classifier.predict(X[40:50]) == classifier.transduction_[40:50]).all()
    np.testing.assert_array_equal(classifier.predict_proba(X[::-1]), classifier.label_distributions_[::-1])
    np.testing.assert_array_equal(classifier.transform(X[7:8]), classifier.embedding_[7:8])


@pytest.mark.parametrize(
    "parameters", [{}, {"affinity": "full", "xi": 0.1}, {"support": "edges", "normalization": "row"}], ids=str
)
@pytest.mark.parametrize("method", ["predict_proba", "transform"])
def test_predictions_for_other_rows_do_not_depend_on_their_company(parameters, method):
    X, y, _ = blobs()
    classifier = small(epochs=3, **parameters).fit(X[:50], y[:50])
    found = getattr(classifier, method)(X[40:])
    np.testing.assert_allclose(found[10], getattr(classifier, method)(X[50:51])[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[10:], getattr(classifier, method)(X[50:]), rtol=1e-5, atol=1e-6)
    assert np.abs(found[10:] - found[10]).max() > 1e-3  # And they are not all alike.


def test_other_rows_are_found_well():
    X, y, few = blobs()
    classifier = small().fit(X[:40], few[:40])
    assert classifier.score(X[40:], y[40:]) > 0.9


def test_after_a_given_graph_other_rows_need_a_graph(karate):
    edge_index, X, few = karate
    classifier = small().fit(X, few, graph=edge_index)
    assert (classifier.predict(X) == classifier.transduction_).all()
    assert (classifier.predict(X, graph=edge_index) == classifier.transduction_).all()
    other = classifier.predict_proba(X[:3], graph=np.array([[0, 1], [1, 2]]))
    assert other.shape == (3, 2)
    assert not np.allclose(other, classifier.label_distributions_[:3])
    assert classifier.transform(X[:3], graph=np.empty((2, 0), dtype=int)).shape == (3, 8)
    with pytest.raises(DatasetError, match=r"these 3 rows are not the 34 rows of that graph.*Pass graph="):
        classifier.predict(X[:3])


def test_forms_of_a_graph_agree(karate):
    edge_index, X, few = karate
    source, target = edge_index.numpy()
    matrix = sparse.coo_matrix((np.ones(len(source)), (source, target)), shape=(34, 34))
    upside_down = networkx.Graph()
    upside_down.add_nodes_from(reversed(range(34)))
    upside_down.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    wanted = small(epochs=3).fit(X, few, graph=edge_index).label_distributions_
    for graph in (edge_index.numpy(), matrix, sparse.csr_array(matrix), sparse.triu(matrix), upside_down):
        found = small(epochs=3).fit(X, few, graph=graph).label_distributions_
        np.testing.assert_array_equal(found, wanted)


def test_sparse_and_dense_features_agree():
    X, _, few = blobs()
    X[:, 1] = np.where(X[:, 1] > 0, X[:, 1], 0)  # The other columns keep rows distinct, and so the neighbours certain.
    parameters = {"feature_norm": "l2", "dropout": 0.0, "epochs": 5}
    dense, thin = (small(**parameters).fit(form[:50], few[:50]) for form in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(dense.label_distributions_, thin.label_distributions_, rtol=1e-4)
    for form in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(dense.predict_proba(form), thin.predict_proba(form), rtol=1e-4)


def test_the_objective_has_its_settings():
    X, _, few = blobs(unlabelled=0.9)
    plain = small(validation_fraction=0).fit(X, few)
    for name, value in {"samples": 3, "consistency": 0.5, "ramp": 1, "sharpening": 0.9, "alignment": 0.0}.items():
        other = small(validation_fraction=0, **{name: value}).fit(X, few)
        assert not np.array_equal(other.history_["loss"], plain.history_["loss"]), name
        with pytest.raises(ConfigError, match=name):
            small(**{name: -1}).fit(X, few)


def test_the_docstring_tells_of_every_parameter():
    for name in CaGATClassifier().get_params():
        assert f"\n        {name}: " in CaGATClassifier.__doc__
    assert f"alpha: {SETTINGS['alpha'].text} (a number from 0 to 1)\n" in CaGATClassifier.__doc__


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["ham", "spam", "eggs"], "-1"),
        (np.array(["ham", "spam", "eggs"], dtype=object), -1),
        (np.array(["ham", "spam", "eggs"], dtype=object), None),
        (np.array([10, 20, 30], dtype=object), None),
        (np.array(["ham", "spam", "eggs"], dtype=object), float("nan")),
        (np.array([0.0, 1.0, 2.0]), -1.0),
    ],
)
def test_labels_of_any_kind(names, missing):
    X, y, few = blobs()
    labels = np.take(names, y)
    labels[few == -1] = missing
    classifier = small().fit(X, labels)
    assert classifier.classes_.tolist() == sorted(names)
    assert set(classifier.transduction_) == set(names)
    # Unlabelled rows do not count in the score.
    counted = np.mean(classifier.transduction_[few >= 0] == np.take(names, y)[few >= 0])
    assert classifier.score(X, labels) == counted > 0.9


def test_the_same_seed_gives_the_same_and_torch_draws_as_before(fitted):
    classifier, X, _, few = fitted
    torch.manual_seed(5)
    state = torch.get_rng_state()
    again, other = small().fit(X, few), small(random_state=1).fit(X, few)
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(again.label_distributions_, classifier.label_distributions_)
    assert not np.allclose(other.label_distributions_, classifier.label_distributions_)


def test_the_default_precision_of_torch_does_not_matter(fitted):
    classifier, X, _, few = fitted
    torch.set_default_dtype(torch.float64)
    try:
        double = small().fit(X[:50], few[:50])
        assert double.predict_proba(X).shape == (60, 3)
        assert double.embedding_.dtype == np.float32
        np.testing.assert_allclose(classifier.predict_proba(X + 1).sum(axis=1), 1)
    finally:
        torch.set_default_dtype(torch.float32)


def test_stops_when_validation_no_longer_improves():
    X, _, few = blobs()
    classifier = small(epochs=500, patience=3, lr=0.5, validation_fraction=0.2).fit(X, few)
    losses = classifier.history_["val_loss"]
    assert classifier.n_iter_ == losses.argmin() + 1 + 3 < 500


def test_held_out_nodes_stop_and_calibrate(monkeypatch):
    X, y, few = blobs()
    judged = []

    def twice(logits, classes):
        judged.append((logits.clone(), classes.tolist()))
        return 2.0

    monkeypatch.setattr(fitting, "fit_temperature", twice)
    classifier = small(validation_fraction=0.2).fit(X, few)
    _, val = hold_out(few, 0.2, np.random.RandomState(0))
    ((logits, classes),) = judged
    assert classes == y[val].tolist()
    assert set(classifier.history_) == {"loss", "val_loss", "val_accuracy"}
    assert classifier.stopping_ == "held-out"
    assert classifier.best_val_loss_ == classifier.history_["val_loss"].min()
    assert classifier.estimated_accuracy_ == np.mean(classifier.transduction_[val] == y[val])
    assert classifier.temperature_ == 2.0
    expected = (logits.double() / 2).softmax(dim=1).numpy()
    np.testing.assert_allclose(classifier.predict_proba(X)[val], expected, rtol=1e-6)
    np.testing.assert_allclose(classifier.predict_proba(X[val], graph=np.empty((2, 0), dtype=int)).sum(axis=1), 1)
    new = classifier.predict_proba(X + 0.1)  # Other rows are calibrated, too.
    classifier.temperature_ = 1.0
    np.testing.assert_allclose(np.log(classifier.predict_proba(X + 0.1) / new**2).std(axis=1), 0, atol=1e-6)


def test_by_default_folds_stop_and_calibrate(fitted, monkeypatch):
    _, X, y, few = fitted
    judged = []
    monkeypatch.setattr(fitting, "fit_temperature", lambda logits, classes: judged.append((logits, classes)) or 0.5)
    classifier = small().fit(X, few)
    ((logits, classes),) = judged
    assert classes.tolist() == y[few >= 0].tolist()  # Every label calibrates, by a network that has not seen it.
    assert set(classifier.history_) == {"loss", "val_loss", "val_accuracy"}
    assert classifier.stopping_ == "cross-fitting"
    assert classifier.best_val_loss_ == classifier.history_["val_loss"].min()
    assert classifier.estimated_accuracy_ == (logits.argmax(dim=1) == classes).double().mean().item()
    assert classifier.temperature_ == 0.5


def test_with_few_labels_all_are_trained_on():
    X, y, _ = blobs()
    few = np.full_like(y, -1)
    for number in range(3):
        few[np.flatnonzero(y == number)[:2]] = number
    with pytest.warns(UserWarning, match="6 labelled nodes of 3 classes are too few to hold out 0.2"):
        warned = small(validation_fraction=0.2).fit(X, few)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meant = small(validation_fraction=0).fit(X, few)
        fixed = small(epochs=10_000, patience=1, rounds=0, layers=1, validation_fraction=0).fit(X, few)
        assert fixed.n_iter_ == TrainConfig.from_values({}).fixed_epochs
        default = small().fit(X, few)
    for classifier in (warned, meant, default):
        assert set(classifier.history_) == {"loss"}
        assert classifier.n_iter_ == len(classifier.history_["loss"])
        assert classifier.stopping_ == "fixed"
        assert (classifier.best_val_loss_, classifier.estimated_accuracy_, classifier.temperature_) == (None, None, 1.0)
    np.testing.assert_array_equal(warned.transduction_, meant.transduction_)


def test_attention(fitted):
    _, X, _, few = fitted
    with pytest.raises(NotFittedError):
        CaGATClassifier().attention_  # noqa: B018
    attention = small(rounds=2, alpha=0.5).fit(X, few)
    rows = attention.model_.attention(torch.tensor(attention._features), *attention._edges, nodes=[4, 9])[
        -1
    ]  # Only the last aggregates.
    S = rows.S.mean(dim=1).numpy()
    where = (attention.graph_ + sparse.eye_array(60)).toarray()[[4, 9]] > 0
    np.testing.assert_allclose(attention.attention_.toarray()[[4, 9]], np.where(where, S, 0), rtol=1e-4, atol=1e-6)
    before = attention.attention_
    assert attention.attention_ is before
    attention.set_params(alpha=0.0).fit(X, few)
    assert not np.allclose(attention.attention_.toarray(), before.toarray())


def test_pickled_clone_and_pipeline(fitted, tmp_path, karate):
    classifier, X, _, few = fitted
    new = X[:5] + 0.25
    joblib.dump(classifier, tmp_path / "classifier.joblib")
    loaded = joblib.load(tmp_path / "classifier.joblib")
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict_proba(new), classifier.predict_proba(new))
    with pytest.raises(NotFittedError):
        clone(loaded).predict(X)
    assert clone(loaded).get_params() == classifier.get_params()

    pipeline = make_pipeline(StandardScaler(), small()).fit(X, few)
    assert (pipeline.predict(X) == pipeline[-1].transduction_).all()
    edge_index, X, few = karate
    pipeline = make_pipeline(StandardScaler(), small()).fit(X, few, cagatclassifier__graph=edge_index)
    assert pipeline[-1].graph_.nnz == edge_index.size(1)
    assert (pipeline.predict(X) == pipeline[-1].transduction_).all()


def test_grid_search():
    X, y, _ = blobs()
    search = GridSearchCV(
        small(epochs=8, validation_fraction=0.2), {"alpha": [0.0, 0.4], "lam": [0.3, 0.9]}, cv=2, error_score="raise"
    )
    search.fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.9
    assert search.best_estimator_.model_.convs[0].alpha == pytest.approx(search.best_params_["alpha"])


def test_rare_classes_can_weigh_more():
    random = np.random.RandomState(0)
    X, y = random.randn(60, 2), np.repeat([0, 1], [54, 6])
    X[y == 1] += 1.0
    found = {
        str(weight): small(epochs=20, validation_fraction=0, class_weight=weight).fit(X, y).label_distributions_[:, 1]
        for weight in (None, "auto", "balanced", "none", {1: 9.0}, {0: 1, 1: 9}, {0: 9, 1: 0})
    }
    assert found["none"].mean() < 0.5 * found["balanced"].mean()
    for same in ("None", "auto"):  # Nine of ten labels are of one class.
        np.testing.assert_array_equal(found[same], found["balanced"])
    np.testing.assert_allclose(found["{1: 9.0}"], found["balanced"], atol=1e-4)  # Only the scale differs.
    np.testing.assert_array_equal(found["{1: 9.0}"], found["{0: 1, 1: 9}"])
    assert found["{0: 9, 1: 0}"].max() < 0.5


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ("even", "class_weight must be one of auto, balanced, none, but is 'even'"),
        ({0: -1}, r"class_weight\[0\] must be a number from 0 to 1000000, but is -1"),
        ({0: 0, 1: 0}, "class_weight is 0 for every class"),
        ({3: 1.0}, "class_weight has a weight for 3, but no row is labelled so"),
    ],
)
def test_wrong_class_weights_are_named(karate, weight, message):
    edge_index, X, few = karate
    with pytest.raises(ConfigError, match=message):
        small(class_weight=weight).fit(X, few, graph=edge_index)


def test_wrong_data_are_named(karate):
    edge_index, X, few = karate
    for y, message in ((np.full(34, -1), "None of the 34 nodes"), (np.where(few == 0, 0, -1), "one class, 0")):
        with pytest.raises(DatasetError, match=message):
            small().fit(X, y, graph=edge_index)
    with pytest.raises(ValueError, match="X contains NaN"):
        small().fit(np.where(X > 0.9, np.nan, X), few)
    with pytest.raises(DatasetError, match=r"All of y is -1"):
        small(epochs=1).fit(X, few).score(X, np.full(34, -1))


def test_more_neighbours_than_rows():
    X, y, _ = blobs()
    classifier = small(n_neighbors=100, epochs=1, validation_fraction=0).fit(X[:6], y[:6])
    assert classifier.graph_.nnz == 6 * 5
    assert classifier.predict(X[6:]).shape == (54,)


def test_the_example_of_the_docstring_runs():
    found = doctest.testmod(cagat.estimator.classifier)
    assert found.attempted > 5
    assert found.failed == 0


def test_iris_is_labelled_about_as_well_as_by_label_spreading():
    X, y = load_iris(return_X_y=True)
    few = np.where(np.arange(150) % 5, -1, y)
    unlabelled = few == -1
    spreading = LabelSpreading(kernel="knn", n_neighbors=10).fit(StandardScaler().fit_transform(X), few)
    wanted = np.mean(spreading.transduction_[unlabelled] == y[unlabelled])
    classifier = small(epochs=60, lr=0.1).fit(X, few)
    assert np.mean(classifier.transduction_[unlabelled] == y[unlabelled]) > wanted - 0.05


def test_suggestions_are_of_rows_without_a_label_and_know_the_network(fitted):
    classifier, _, _, few = fitted
    found = classifier.suggest(5)
    assert len({one.index for one in found}) == 5
    assert all(few[one.index] == -1 for one in found)
    assert "the model is unsure of" in found[0].reason
    assert classifier.suggest(3, strategy="random", seed=1) == classifier.suggest(3, strategy="random", seed=1)
    with pytest.raises(ConfigError, match=r"only \d+ of 60 have no label"):
        classifier.suggest(60)
    with pytest.raises(NotFittedError):
        small().suggest(1)
