"""A graph to be labelled, as a model takes it."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from cagat import data
from cagat.data.columns import ROLES
from cagat.data.encoding import TableEncoder
from cagat.data.features import lacks_features, structural_features
from cagat.data.loading import is_name
from cagat.data.splits import Split, small_classes
from cagat.errors import DatasetError
from cagat.models import Labelled, NodeClassifier, create
from cagat.nn import SparseFeatures
from cagat.settings import FeatureNorm, TrainConfig
from cagat.training.calibration import predicted_shares
from cagat.training.cross_fit import FOLDS, folds_of
from cagat.training.evidence import Evidence
from cagat.training.predictions import Predictions

_logger = logging.getLogger(__name__)

DEFAULT_LABELS = 20

LOPSIDED = 0.6
"""The share of labels of one class above which classes weigh the same by default."""


class Judged(NamedTuple):
    """Labelled nodes that a model did not learn from, and its logits for them."""

    logits: Tensor
    classes: Tensor

    @property
    def accuracy(self) -> float:
        """The share that is right."""
        return (self.logits.argmax(dim=1) == self.classes).double().mean().item()


@dataclass(frozen=True)
class Problem:
    """A graph and the use of its labels.

    The numbers of labels per class are ``None`` if they were not drawn. With the protocol `all` every label is for
    training, and ``folds`` holds the fold of each training node, or is ``None`` if there are too few of them.
    """

    graph: Data
    split: Split
    labels: int | None
    val_labels: int | None
    protocol: Literal["all", "split"] = "split"
    folds: Tensor | None = None
    class_weight: Tensor | None = None

    @classmethod
    def load(cls, config: TrainConfig, encoder: TableEncoder | None = None) -> "Problem":
        """Load the graph of a configuration, and decide what each label is for; a run has its encoder already."""
        graph = load_graph(config.dataset, config.data_dir, config, encoder)
        has_split = hasattr(graph, "train_mask")
        is_own = not is_name(config.dataset) and not has_split and not asks_for_split(config)
        protocol = config.protocol or ("all" if is_own and config.parallel is None else "split")
        labels, val_labels = labels_per_class(config, has_split) if protocol == "split" else (None, None)
        folds = None
        if protocol == "all":
            split = _all_labels(graph)
            folds = folds_of(graph.y[split.train], config.seed)
        elif has_split and not asks_for_split(config):
            split = data.split_given(graph)
        else:
            split = drawn_split(config, graph.y, graph.class_names)
        weight = class_weight(graph.y[split.train], len(graph.class_names), config.class_weight)
        return cls(graph, split, labels, val_labels, protocol, folds, weight)

    def part(self, name: str) -> Labelled:
        """The nodes of a part and their classes."""
        nodes = getattr(self.split, name)
        return Labelled(nodes, self.graph.y[nodes], self.class_weight if name == "train" else None)

    def trained_on(self) -> Labelled:
        """The training nodes of all processes that share the graph, by whatever number."""
        return self.part("train")

    def gathered(self, logits: Tensor, *, with_test: bool) -> "Problem":
        """The same, knowing the logits of the validation nodes of all processes, and perhaps of the test nodes."""
        return self

    def judged(self, name: str, logits: Tensor) -> Judged:
        """The nodes of a part, their classes, and what the logits of all nodes say of them."""
        nodes = getattr(self.split, name)
        return Judged(logits[nodes], self.graph.y[nodes])

    def predicted_shares(self, logits: Tensor) -> Tensor:
        """The share of each class among all nodes, as logits have it."""
        return predicted_shares(logits)

    def write_predictions(self, path: Path, logits: Tensor, temperature: float, evidence: Evidence | None) -> None:
        """Write what is predicted for each node."""
        names = list(self.graph.class_names)
        Predictions.from_logits(logits, self.graph, names, self.split, temperature, evidence).write(path)

    @property
    def num_nodes(self) -> int:
        """How many nodes the graph has."""
        return int(self.graph.num_nodes)

    @property
    def sizes(self) -> dict[str, int]:
        """How many nodes each part of the split has."""
        return {name: len(nodes) for name, nodes in self.split._asdict().items()}

    @property
    def part_counts(self) -> Sequence[Tensor]:
        """How many nodes of each class each part of the split has."""
        classes = len(self.graph.class_names)
        return [torch.bincount(self.graph.y[nodes], minlength=classes) for nodes in self.split]

    @property
    def label_counts(self) -> Tensor:
        """How many nodes are labelled with each class."""
        return torch.bincount(self.graph.y[self.graph.y >= 0], minlength=len(self.graph.class_names))

    def summary(self) -> str:
        """How many labels there are, and what each is for."""
        (train, val, test), counts = self.sizes.values(), self.label_counts
        fewest, most = int(counts.min()), int(counts.max())
        sizes = f"{fewest} to {most} nodes" if fewest < most else f"{most} nodes each"
        found = f"{int(counts.sum())} of {self.num_nodes} nodes are labelled, in {len(counts)} classes of {sizes}"
        use = f"{train} for training, {val} for validation, {test} for test"
        if self.protocol == "all":
            held_out = f" {test} test nodes are held out." if test else ""
            use = f"all {train} train the model.{held_out} "
            use += (
                f"{FOLDS} folds of them decide when to stop and estimate the accuracy"
                if self.folds is not None
                else "They are too few for folds, so training takes a fixed number of epochs"
            )
        elif val == 0:
            use += "; training takes a fixed number of epochs"
        weighted = "" if self.class_weight is None else " Rare classes weigh more (--class-weight)."
        bare = " The graph has no features, so a node is described by its neighbours."
        structural = bare if self.graph.get("structural", False) else ""
        return f"{found}: {use}.{weighted}{self._small_classes()}{structural}"

    def _small_classes(self) -> str:
        """What is to be said of classes that have fewer labels than were asked for."""
        wanted = (self.labels or 0) + (self.val_labels or 0)
        named = list(zip(self.graph.class_names, self.label_counts.tolist(), strict=True))
        single = ", ".join(repr(name) for name, count in named if count == 1)
        if self.protocol == "all" and single:
            return f" One label alone is learnt but cannot be checked: {single}. Label more of them, or join classes."
        if self.protocol == "split" and self.labels is None:
            parts = torch.stack([counts for counts in self.part_counts if counts.any()])
            lacking = (parts.amin(dim=0) == 0).tolist()
            absent = ", ".join(repr(name) for (name, _), lacks in zip(named, lacking, strict=True) if lacks)
            return f" Not every part has nodes of {absent}." if absent else ""
        return small_classes([f"{name} ({count})" for name, count in named if count <= wanted])

    def fingerprint(self) -> str:
        """A digest of all that training depends on; labels of test nodes have no part in it."""
        return graph_digest(self.graph, *self.part("train")[:2], *self.part("val")[:2])


def asks_for_split(config: TrainConfig) -> bool:
    """Whether a configuration says how many nodes train or validate."""
    return any(asked is not None for asked in (config.labels, config.val_labels, config.train_fraction))


def labels_per_class(config: TrainConfig, has_split: bool) -> tuple[int | None, int | None]:
    """How many nodes of each class are drawn for training and for validation; nothing if none are drawn so."""
    if config.train_fraction is not None or (has_split and not asks_for_split(config)):
        return None, None
    labels, val_labels = (DEFAULT_LABELS if count is None else count for count in (config.labels, config.val_labels))
    return labels, val_labels


def drawn_split(config: TrainConfig, y: Tensor, class_names: Sequence[str]) -> Split:
    """The split that a configuration draws."""
    if config.train_fraction is not None:
        return data.split_fractions(y, config.train_fraction, config.val_fraction or 0.0, config.seed, keep_small=True)
    labels, val_labels = labels_per_class(config, has_split=False)
    assert labels is not None
    assert val_labels is not None
    # The paper's graphs have no small classes, so that one there would be a mistake.
    keeps = not is_name(config.dataset)
    return data.split(y, labels, val_labels, config.seed, class_names=class_names, keep_small=keeps)


def _all_labels(graph: Data) -> Split:
    """Every label for training, but those of test nodes that the graph's own split names."""
    labelled, none = (graph.y >= 0), torch.empty(0, dtype=torch.int64)
    test = getattr(graph, "test_mask", None)
    test = torch.zeros_like(labelled) if test is None else test & labelled
    train = (labelled & ~test).nonzero().flatten()
    if len(train) == 0:
        raise DatasetError(f"{graph.name}: no node has a label to train on. Label some nodes of each class.")
    if len(torch.unique(graph.y[train])) < 2:
        name = graph.class_names[int(graph.y[train[0]])]
        raise DatasetError(f"{graph.name}: all labels are {name!r}. Label nodes of at least two classes.")
    return Split(train, none, test.nonzero().flatten())


def class_weight(classes: Tensor, count: int, choice: str) -> Tensor | None:
    """As scikit-learn's ``balanced``; ``auto`` is that if most labels are of one class, which would swallow all."""
    counts = torch.bincount(classes, minlength=count)
    is_lopsided = bool(counts.max() > LOPSIDED * counts.sum())
    if choice == "none" or (choice == "auto" and not is_lopsided) or len(torch.unique(counts)) == 1:
        return None
    return counts.sum() / (torch.count_nonzero(counts) * counts.clamp(min=1)).float()


def graph_digest(graph: Data, *further: Tensor) -> str:
    """A digest of a graph's features, edges and weights, and of further tensors."""
    x = graph.x
    features = (x,) if x.layout is torch.strided else (x.crow_indices(), x.col_indices(), x.values())
    digest = hashlib.sha256()
    for tensor in (*features, graph.edge_index, getattr(graph, "edge_weight", None), *further):
        if tensor is not None:
            digest.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def load_graph(
    dataset: str, data_dir: str | None, config: TrainConfig | None = None, encoder: TableEncoder | None = None
) -> Data:
    """Load a graph whose features are sparse if most of them are zero; one without any gets structural features.

    The configuration tells what the columns of tables are called and hold, the encoder how they were encoded before.
    """
    names = {} if config is None else {role: getattr(config, role) for role in ROLES}
    columns = None if config is None or encoder is not None else config.columns
    graph = data.load(dataset, data_dir, sparse=True, names=names, columns=columns, encoder=encoder)
    if lacks_features(graph):
        return structural_features(graph)
    if graph.x.shape[1] == 0:
        raise DatasetError(f"{dataset}: the graph has no features, and models need some. Give a features table.")
    if getattr(graph, "edge_attr", None) is not None:
        _logger.info("The graph has edge features, which cagat train does not use; CaGATConv does, with edge_dim.")
    # Three bytes in four of a sparse matrix are indices, so that it must be emptier than this to be worth it.
    if graph.x.values().numel() >= 0.25 * graph.x.numel():
        graph = graph.clone()
        graph.x = graph.x.to_dense()
    return graph


def new_model(config: TrainConfig, graph: Data, device: torch.device) -> NodeClassifier:
    """A model with weights drawn from torch's generator as it stands."""
    sizes = graph.x.shape[1], len(graph.class_names)
    return create(config.model, *sizes, config.preset, **config.hyperparameters()).to(device)


def fresh_model(config: TrainConfig, graph: Data, device: torch.device) -> tuple[NodeClassifier, tuple[Any, ...]]:
    """A fresh model, and what it takes."""
    assert config.feature_norm is not None
    model = new_model(config, graph, device)
    if not model.takes_weights and getattr(graph, "edge_weight", None) is not None:
        _logger.info("The edges have weights, which %s does not use.", config.model)
    return model, inputs_for(model, graph, config.feature_norm, device)


def inputs_for(model: NodeClassifier, graph: Data, feature_norm: FeatureNorm, device: torch.device) -> tuple[Any, ...]:
    """What the model takes: scaled features, edges, and their weights if there are any."""
    x: Tensor | SparseFeatures = data.normalize_features(graph.x, feature_norm)
    assert isinstance(x, Tensor)
    if "parts" in graph:
        inputs: tuple[Any, ...] = graph.parts.inputs(x, model)
        return inputs
    weight = getattr(graph, "edge_weight", None)
    edges = (graph.edge_index.to(device), None if weight is None else weight.to(device))
    if x.layout is torch.strided:
        return x.to(device), *edges
    # Prepared here and kept, so that no epoch has to look it up.
    return (SparseFeatures.from_tensor(x.to(device)) if model.takes_sparse else x.to_dense().to(device)), *edges
