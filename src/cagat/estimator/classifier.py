"""The classifier."""

import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from cagat.errors import DatasetError
from cagat.estimator.features import FeatureScaling, as_tensor, row_digests, stacked
from cagat.estimator.fitting import AUTO, fit_network
from cagat.estimator.frames import encoded, fitted_encoder, frame_digests, needs_encoder
from cagat.estimator.graphs import Edges, edges_of, nearest_neighbours, neighbour_edges, warn_of_one_way_edges
from cagat.estimator.validation import (
    checked_labels,
    checked_points,
    is_unlabelled,
    numbered,
    plain,
    resolve_parameters,
    weight_of_classes,
)
from cagat.models import CaGAT, create
from cagat.nn import CaGATConv
from cagat.settings import SETTINGS
from cagat.suggestions.node_space import NodeSpace
from cagat.suggestions.suggest import DEFAULT, Suggestion, suggest_in


class CaGATClassifier(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    ClassifierMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Labels the nodes of a graph, or points, from few labels: CaGAT as a scikit-learn classifier.

    The rows of X are the nodes. Without a graph, every row is joined to the rows nearest to it. In y, -1 means
    unlabelled. All of X is there during the fit, unlabelled rows too; what was found for them is in `transduction_`.

    The parameters from `hidden` to `patience`, and from `objective` to `emphasis`, are settings of CaGAT and its
    training (docs/reference/settings.md). One that is None has the value of the preset
    (`cagat.models.card("cagat").presets` holds them). `docs/how-to/scikit-learn.md` says what `predict` does with data
    that were not fitted.

    Args:
        feature_norm: How X is scaled: rows by `"l1"`, `"l2"`, `"binary"`, columns by `"standard"`, or `"none"`. None
            means `"standard"` if X is dense, not encoded, and there is no graph, and else the preset's value.
        validation_fraction: `"auto"` trains on all labelled nodes. When to stop then comes from cross-fitting if
            classes have at least 5 labels (the median), and else it is after `epochs` epochs, but at most the preset's
            `fixed_epochs`. A number is how much of every class is held out to decide when to stop. With 0, or (with a
            warning) if that is fewer nodes than classes, it is as with `"auto"` and few labels.
        n_neighbors: How many neighbours a row is joined to if there is no graph.
        preset: The published configuration that gives what is None; None for the default one.
        random_state: A seed, for results that can be repeated.
        columns: For a pandas frame, what some of its columns are, by name, where that is not seen from their values
            (docs/reference/data.md): `{"postcode": "category", "id": "drop"}`.
        class_weight: How much classes weigh in the loss: `"balanced"` gives all the same share, `"none"` each label;
            `"auto"`, which None means, balances if most labels are of one class. Or a dict of a weight per class.

    Attributes:
        classes_: The classes, in order.
        transduction_: The class found for each row that was fitted.
        label_distributions_: The probability of each class for each row that was fitted.
        embedding_: The last hidden layer for each row that was fitted.
        attention_: How much row i attends to its neighbour j: S of the first layer that aggregates, averaged over its
            heads, as a CSR matrix. It is computed on first use, which takes a product per row.
        graph_: The edges, as a CSR matrix; entry (i, j) is the weight of the edge from i to j.
        history_: For each epoch `loss`, and if nodes were held out, in folds or at all, `val_loss` and `val_accuracy`.
        n_iter_: How many epochs were trained.
        stopping_: What decided when to stop: `"held-out"` nodes, `"cross-fitting"`, or a `"fixed"` number of epochs.
        best_val_loss_: The lowest loss on nodes that were held out; None if none were.
        estimated_accuracy_: The accuracy on nodes that were held out, in folds or at all; a little too high, since they
            decided when to stop. None if none were.
        temperature_: By what logits are divided so that probabilities are as sure as they are right; close to 1 if few
            nodes were held out, and 1 if none were.
        encoder_: Made numbers of the columns of a pandas frame; None if they were numbers.
        model_: The trained :class:`cagat.CaGAT`.
        n_features_in_: Number of features, or columns of a frame.
        feature_names_in_: Their names, if X had any.

    Examples:
        >>> import numpy as np
        >>> from sklearn.datasets import load_wine
        >>> from cagat import CaGATClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> few = np.full_like(y, -1)
        >>> few[::6] = y[::6]
        >>> classifier = CaGATClassifier(epochs=30, lr=0.05, random_state=0).fit(X, few)
        >>> classifier.score(X[few == -1], y[few == -1]) > 0.9
        True
    """

    def __init__(
        self,
        hidden: int | None = None,
        layers: int | None = None,
        heads: int | None = None,
        dropout: float | None = None,
        attention_dropout: float | None = None,
        alpha: float | None = None,
        lam: float | None = None,
        xi: float | None = None,
        rounds: int | None = None,
        steps: int | None = None,
        support: str | None = None,
        affinity: str | None = None,
        feedback: bool | None = None,
        normalization: str | None = None,
        propagation: str | None = None,
        learn_coefficients: bool | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        feature_norm: str | None = None,
        validation_fraction: float | str = AUTO,
        n_neighbors: int = 10,
        preset: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        columns: Mapping[str, str] | None = None,
        objective: str | None = None,
        samples: int | None = None,
        consistency: float | None = None,
        ramp: int | None = None,
        sharpening: float | None = None,
        alignment: float | None = None,
        attention_weight_decay: float | None = None,
        emphasis: float | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
    ) -> None:
        # Scikit-learn's rule: every parameter is kept under its name, as it is.
        parameters = dict(locals())
        del parameters["self"]
        self.__dict__.update(parameters)

    def fit(self, X: Any, y: Any, graph: Any = None) -> "CaGATClassifier":
        """Train on the labelled rows, with all rows present.

        Args:
            X: One row per node: an array, a scipy sparse matrix, or a pandas frame with columns of any kind.
            y: One label per node, -1 for unlabelled; among texts or objects "-1", None and NaN too.
            graph: A scipy sparse matrix, whose edges count both ways and whose entries are weights; an `edge_index` of
                shape (2, edges), as tensor or array, whose edges lead from row 0 to row 1; or a networkx graph, whose
                nodes are called 0 to n - 1 or else stand in the order of the rows. Without it, nearest neighbours.
        """
        # Labels may be missing, so they are checked here; only that there are any is left to scikit-learn.
        demanded = None if y is None else "no_validation"
        self.encoder_ = fitted_encoder(self, X, demanded, self.columns) if needs_encoder(X, self.columns) else None
        X, self._rows = self._points(X, demanded, ensure_min_samples=2)
        self.classes_, numbers = numbered(checked_labels(y, X))
        self._labelled = np.flatnonzero(numbers >= 0)
        # An encoder has scaled its columns already, so that each column of the frame weighs about the same.
        measured = graph is None and self.encoder_ is None and not sparse.issparse(X)
        parameters = resolve_parameters(self.get_params(deep=False), measured=measured)
        self._scaling = FeatureScaling(X, parameters.feature_norm)
        self._features = self._scaling(X)
        self._search = nearest_neighbours(self._features, self.n_neighbors) if graph is None else None
        self._edges = neighbour_edges(self._search) if graph is None else edges_of(graph, X.shape[0])
        warn_of_one_way_edges(graph, self._edges, X.shape[0])
        # With all pairs, new rows would attend to each other, so each is predicted in a pass of its own.
        self._one_by_one = parameters.network["affinity"] == "full"

        def make() -> CaGAT:
            # The features are of single precision, whatever torch's default is.
            sizes = self._features.shape[1], len(self.classes_)
            model = create("cagat", *sizes, self.preset, **parameters.network).float()
            assert isinstance(model, CaGAT)
            return model

        inputs, random = (as_tensor(self._features), *self._edges), check_random_state(self.random_state)
        weight = weight_of_classes(parameters.class_weight, self.classes_, numbers)
        found = fit_network(make, inputs, numbers, self.validation_fraction, weight, parameters.options, random)
        self.model_, self.history_, self.stopping_ = found.model, found.history, found.stopping
        self.best_val_loss_, self.estimated_accuracy_ = found.best_val_loss, found.estimated_accuracy
        self.temperature_ = found.temperature
        self.__dict__.pop("attention_", None)
        self.n_iter_ = len(self.history_["loss"])
        self.embedding_ = self._embedded(self._features, self._edges)
        self.label_distributions_ = self._probabilities(self._features, self._edges)
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        if len(np.unique(self.transduction_)) == 1:
            warnings.warn(
                f"All {len(numbers)} rows are predicted to be of class {self.transduction_[0]!s}. Train for more "
                "epochs, label more rows of the other classes, or check that features or graph tell classes apart.",
                stacklevel=2,
            )
        return self

    def predict(self, X: Any, graph: Any = None) -> NDArray[Any]:
        """The class of each row; see :meth:`predict_proba`."""
        probabilities = self.predict_proba(X, graph)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def predict_proba(self, X: Any, graph: Any = None) -> NDArray[np.float64]:
        """The probability of each class for each row, calibrated by `temperature_`.

        Args:
            X: Rows that were fitted, or others. A row that was fitted is that node. Another is joined to the fitted
                rows nearest to it, so what is found for it does not depend on the other rows of X.
            graph: A graph on the rows of X: the trained network is then run on that graph and X alone. It is needed
                after a fit to a given graph, unless X is what was fitted, since nothing else says where rows belong.
        """
        check_is_fitted(self)
        return self._found(X, graph, self._probabilities, self.label_distributions_)

    def transform(self, X: Any, graph: Any = None) -> NDArray[np.float32]:
        """The last hidden layer for each row; X and `graph` are as in :meth:`predict_proba`."""
        check_is_fitted(self)
        return self._found(X, graph, self._embedded, self.embedding_)

    def score(self, X: Any, y: Any, sample_weight: Any = None, graph: Any = None) -> float:
        """The share of rows whose class is found; rows that are unlabelled in y do not count."""
        found = self.predict(X, graph)
        y = checked_labels(y, found)
        counted = ~is_unlabelled(y)
        if not counted.any():
            raise DatasetError("All of y is -1, so there is nothing to compare with. Give the labels of some rows.")
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, found)[counted]
        return float(accuracy_score(plain(y[counted]), found[counted], sample_weight=weight))

    def suggest(self, n: int, strategy: str = DEFAULT, seed: int = 0) -> list[Suggestion]:
        """Suggest rows to label next, in order: `index` is the row, `reason` says why.

        What the labelled rows cover counts, and what the network is unsure of. Without any label, there is
        :func:`cagat.suggest`.

        Args:
            n: How many.
            strategy: `"coverage"` or one of those that :func:`cagat.suggest` names.
            seed: Decides what is drawn at random.
        """
        check_is_fitted(self)
        return suggest_in(
            NodeSpace(as_tensor(self._features), *self._edges, seed=seed),
            n,
            labelled=self._labelled,
            strategy=strategy,
            seed=seed,
            probabilities=self.label_distributions_,
            num_classes=len(self.classes_),
        )

    @cached_property
    def attention_(self) -> Any:
        """How much each row attends to its neighbours in the first layer that aggregates; see the class."""
        check_is_fitted(self)
        inputs = self.model_.layer_inputs(as_tensor(self._features), *self._edges)
        convs = [conv for conv in self.model_.convs if isinstance(conv, CaGATConv)]
        layers = list(zip(convs, inputs, strict=True))
        conv, features = next((layer for layer in layers if layer[0].lam > 0), layers[0])
        with torch.no_grad():
            _, (edges, values) = conv(features, *self._edges, return_attention_weights=True)
        source, target = edges.numpy()
        size = len(self.transduction_)
        return sparse.csr_array((values.mean(dim=1).numpy(), (target, source)), shape=(size, size))

    @property
    def graph_(self) -> Any:
        """The edges; see the class."""
        check_is_fitted(self)
        source, target = self._edges.edge_index.numpy()
        weight = np.ones(len(source)) if self._edges.weight is None else self._edges.weight.numpy()
        size = len(self.transduction_)
        return sparse.csr_array((weight, (source, target)), shape=(size, size))

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _points(self, X: Any, y: Any = "no_validation", **options: Any) -> tuple[Any, list[bytes]]:
        """X as a matrix in single precision, and a digest of each row."""
        if self.encoder_ is None:
            matrix = checked_points(self, X, y, **options)
            return matrix, row_digests(matrix)
        options.pop("reset", None)  # What a frame has was noted when its encoder was fitted.
        return encoded(self, self.encoder_, X, **options), frame_digests(X)

    def _found(self, X: Any, graph: Any, network: Any, fitted: NDArray[Any]) -> NDArray[Any]:
        """What the network gives for rows on a graph of their own, for fitted rows, or for rows joined to these."""
        X, rows = self._points(X, reset=False)
        if graph is not None:
            return np.asarray(network(self._scaling(X), edges_of(graph, X.shape[0])))
        if rows == self._rows:
            return np.array(fitted)
        if self._search is None:
            raise DatasetError(
                f"The classifier was fitted to a given graph, and these {X.shape[0]} rows are not the "
                f"{len(self.transduction_)} rows of that graph, so nothing says to what they are joined. Pass "
                "graph=..., a graph on these rows; for some nodes of the fitted graph, take those of transduction_."
            )
        # Of equal rows the first is meant, so it is written last.
        known = {digest: row for row, digest in reversed([*enumerate(self._rows)])}
        row_of = np.array([known.get(digest, -1) for digest in rows])
        found: NDArray[Any] = fitted[row_of]
        unknown = np.flatnonzero(row_of < 0)
        for new in unknown.reshape(-1, 1 if self._one_by_one else max(1, len(unknown))):
            features = self._scaling(X[new])
            near = self._search.kneighbors(features.astype(np.float64), return_distance=False)
            edges = self._edges.joined_to(torch.from_numpy(near.astype(np.int64)), len(fitted))
            found[new] = network(stacked(self._features, features), edges)[len(fitted) :]
        return found

    @torch.no_grad()
    def _probabilities(self, features: Any, edges: Edges) -> NDArray[np.float64]:
        return np.asarray((self.model_(as_tensor(features), *edges).double() / self.temperature_).softmax(dim=1))

    @torch.no_grad()
    def _embedded(self, features: Any, edges: Edges) -> NDArray[np.float32]:
        return np.asarray(self.model_.embed(as_tensor(features), *edges))


if CaGATClassifier.__doc__:  # Python drops docstrings with -OO.
    _names = set(CaGATClassifier().get_params()) - {"feature_norm", "preset", "class_weight"}
    _shared = [setting for setting in SETTINGS.values() if setting.name in _names]
    _lines = "".join(f"        {setting.name}: {setting.text} ({setting.expected})\n" for setting in _shared)
    CaGATClassifier.__doc__ = CaGATClassifier.__doc__.replace("    Args:\n", f"    Args:\n{_lines}", 1)
