"""A graph to be labelled, as a model takes it."""

import hashlib
import logging
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from cagat import data
from cagat.data.splits import Split
from cagat.errors import DatasetError
from cagat.models import Labelled, NodeClassifier, create
from cagat.nn import SparseFeatures
from cagat.settings import FeatureNorm, TrainConfig

_logger = logging.getLogger(__name__)

DEFAULT_LABELS = 20


@dataclass(frozen=True)
class Problem:
    """A graph and its split; the numbers of labels per class are ``None`` if the split came with the graph."""

    graph: Data
    split: Split
    labels: int | None
    val_labels: int | None

    @classmethod
    def load(cls, config: TrainConfig) -> "Problem":
        """Load the graph of a configuration, with its split or a drawn one."""
        graph = load_graph(config.dataset, config.data_dir)
        asked = config.labels is not None or config.val_labels is not None
        if not asked and hasattr(graph, "train_mask"):
            split = data.split_given(graph)
            if len(split.val) == 0:
                raise DatasetError(
                    f"The split of {graph.name} has no validation nodes, and without them training would not know when "
                    "to stop. Name some (split: val), or let a split be drawn with --labels and --val-labels."
                )
            return cls(graph, split, None, None)
        labels = DEFAULT_LABELS if config.labels is None else config.labels
        val_labels = DEFAULT_LABELS if config.val_labels is None else config.val_labels
        split = data.split(graph.y, labels, val_labels, config.seed, class_names=graph.class_names)
        return cls(graph, split, labels, val_labels)

    def part(self, name: str) -> Labelled:
        """The nodes of a part and their classes."""
        nodes = getattr(self.split, name)
        return Labelled(nodes, self.graph.y[nodes])

    def fingerprint(self) -> str:
        """A digest of all that training depends on; labels of test nodes have no part in it."""
        return graph_digest(self.graph, *self.part("train"), *self.part("val"))


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


def load_graph(dataset: str, data_dir: str | None) -> Data:
    """Load a graph whose features are sparse if most of them are zero."""
    graph = data.load(dataset, data_dir, sparse=True)
    if graph.x.shape[1] == 0:
        raise DatasetError(f"{dataset}: the graph has no features, and models need some. Give a features table.")
    if getattr(graph, "edge_attr", None) is not None:
        _logger.info("The graph has edge features, which cagat train does not use; CaGATConv does, with edge_dim.")
    # Three bytes in four of a sparse matrix are indices, so that it must be emptier than this to be worth it.
    if graph.x.values().numel() >= 0.25 * graph.x.numel():
        graph = graph.clone()
        graph.x = graph.x.to_dense()
    return graph


def fresh_model(config: TrainConfig, graph: Data, device: torch.device) -> tuple[NodeClassifier, tuple[Any, ...]]:
    """A model with weights drawn from torch's generator as it stands, and what it takes."""
    assert config.feature_norm is not None
    model = create(config.model, graph.x.shape[1], len(graph.class_names), **config.hyperparameters()).to(device)
    if not model.takes_weights and getattr(graph, "edge_weight", None) is not None:
        _logger.info("The edges have weights, which %s does not use.", config.model)
    return model, inputs_for(model, graph, config.feature_norm, device)


def inputs_for(model: NodeClassifier, graph: Data, feature_norm: FeatureNorm, device: torch.device) -> tuple[Any, ...]:
    """What the model takes: scaled features, edges, and their weights if there are any."""
    x: Tensor | SparseFeatures = data.normalize_features(graph.x, feature_norm)
    assert isinstance(x, Tensor)
    weight = getattr(graph, "edge_weight", None)
    edges = (graph.edge_index.to(device), None if weight is None else weight.to(device))
    if x.layout is torch.strided:
        return x.to(device), *edges
    # Prepared here and kept, so that no epoch has to look it up.
    return (SparseFeatures.from_tensor(x.to(device)) if model.takes_sparse else x.to_dense().to(device)), *edges


def with_features(graph: Data, names: list[str] | None, count: int) -> Data:
    """The graph with its features in the order in which a model was trained on them.

    Features that have names are found by them; one that no node of the new graph has is 0 everywhere.
    """
    given = list(graph.feature_names)
    if not names or not given:
        if graph.x.shape[1] != count:
            raise DatasetError(
                f"{graph.name}: has {graph.x.shape[1]} features, but the model was trained on {count}. Give the graph "
                "the same features, in the same order."
            )
        return graph
    if given == names:
        return graph
    column = {name: number for number, name in enumerate(names)}
    for name in given:
        if name not in column:
            raise DatasetError(
                f"{graph.name}: has a feature {name!r}, which the model was not trained with. Leave it out, or "
                "train on a graph that has it."
            )
    columns = torch.tensor([column[name] for name in given])
    graph = graph.clone()
    dense = graph.x.to_dense()
    graph.x = dense.new_zeros(dense.shape[0], count).index_copy(1, columns, dense)
    return graph
