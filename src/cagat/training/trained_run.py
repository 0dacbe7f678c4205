"""Trained weights as a file that describes itself, and what the model in it says about a graph."""

import hashlib
import logging
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.splits import Split
from cagat.errors import CagatError, DamagedFileError, DatasetError
from cagat.files import atomic_write
from cagat.memory import OutOfMemoryError
from cagat.models import CaGAT, NodeClassifier, create
from cagat.safetensors_file import read_tensors, write_tensors
from cagat.settings import FeatureNorm, TrainConfig
from cagat.training.config_file import read_config
from cagat.training.doubts import OutOfFold
from cagat.training.evaluation import Evaluation
from cagat.training.evidence import find_evidence
from cagat.training.new_nodes import joined_to_known, require_known_features, with_features
from cagat.training.predictions import Embeddings, Predictions
from cagat.training.problem import Problem, inputs_for, load_graph
from cagat.training.run_directory import RunDirectory, RunError

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Description:
    """What must be known to use trained weights."""

    model: str
    hyperparameters: dict[str, Any]
    in_channels: int
    classes: list[str]
    features: list[str] | None
    feature_norm: FeatureNorm
    graph: str
    temperature: float = 1.0
    encoder: str | None = None
    structural: bool = False


def write_weights(path: Path, model: NodeClassifier, description: Description) -> None:
    """Write the weights of a model with their description, and the checksum that `sha256sum --check` reads."""
    tensors = {name: weight.detach().cpu().numpy() for name, weight in model.state_dict().items()}
    write_tensors(path, tensors, asdict(description))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    atomic_write(path.with_name(path.name + ".sha256"), f"{digest}  {path.name}\n")


def read_weights(path: Path) -> tuple[NodeClassifier, Description]:
    """Make the model that a file describes, with its weights, ready to predict."""
    remedy = f"Write it anew from the run's checkpoint with: cagat train --resume {path.parent}"
    try:
        tensors, metadata = read_tensors(path)
        about = Description(**metadata)
        # Without memory of its own: no description can ask for more than the file has.
        with torch.device("meta"):
            model = create(about.model, about.in_channels, len(about.classes), **about.hyperparameters)
        model.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in tensors.items()}, assign=True)
    except OutOfMemoryError:
        raise
    except DamagedFileError as error:
        raise DamagedFileError(f"{error} {remedy}") from error
    except Exception as error:  # Whatever a description of another form than ours makes torch and Python raise.
        raise DamagedFileError(f"{path}: holds no weights of cagat ({error}). {remedy}") from error
    return model.eval(), about


class TrainedRun:
    """A run directory, to be used: its model with the best weights, on its own graph or on a new one.

    Args:
        path: The run directory.

    Raises:
        RunError: There is no trained model.
        DamagedFileError: The weights are not what was written.
    """

    def __init__(self, path: str | Path) -> None:
        self.directory = RunDirectory(Path(path))
        self.directory.require_readable()
        if not self.directory.model.exists():
            exists = self.directory.config.exists()
            remedy = f"Continue it: cagat train --resume {path}" if exists else f"Train one: cagat train --out {path}"
            raise RunError(f"{path}: there is no trained model. {remedy}")
        self.config = TrainConfig.from_values(read_config(self.directory.config))
        self.model, self.description = read_weights(self.directory.model)
        self.encoder = self.directory.read_encoder()
        if (None if self.encoder is None else self.encoder.digest) != self.description.encoder:
            wrong = "missing" if self.encoder is None else "from another run"
            raise RunError(
                f"{self.directory.encoder}: is {wrong}, but tables must be encoded as the model was trained on them. "
                "Copy the whole run again, or train anew."
            )

    @cached_property
    def problem(self) -> Problem:
        """The graph that the model was trained on, and its split."""
        problem = Problem.load(self.config, self.encoder)
        if problem.fingerprint() != self.description.graph:
            raise RunError(
                f"{self.config.dataset}: has other nodes, edges, features or labels than when the run in "
                f"{self.directory.path} was trained on it. Bring those back, train again, or label the graph as it is "
                f"with: cagat predict {self.directory.path} --dataset {self.config.dataset}"
            )
        return problem

    def inputs(self, graph: Data) -> tuple[Any, ...]:
        """What the model takes of a graph: scaled features, edges, and their weights if there are any."""
        return inputs_for(self.model, graph, self.description.feature_norm, torch.device("cpu"))

    @torch.no_grad()
    def logits(self, graph: Data) -> Tensor:
        """The logits of all nodes of a graph with the same features as the one trained on."""
        logits: Tensor = self.model(*self.inputs(graph))
        return logits

    def probabilities(self, graph: Data) -> Tensor:
        """The calibrated probability of each class, of all nodes of such a graph."""
        return (self.logits(graph).double() / self.description.temperature).softmax(dim=1)

    @torch.no_grad()
    def embed(self, dataset: str | None = None) -> Embeddings:
        """The hidden representation of all nodes, of the graph trained on or of another."""
        graph = self._graph(dataset)[0]
        return Embeddings(list(graph.node_names), self.model.embed(*self.inputs(graph)))

    def predict(self, dataset: str | None = None, *, because: bool | None = None) -> Predictions:
        """Label all nodes, of the graph trained on or of another.

        Args:
            dataset: The other graph.
            because: Whether to tell which labelled nodes the predictions of a CaGAT rest on (default: unless that takes
                minutes).

        Raises:
            DatasetError: The other graph has other features, or the model labels only the graph it was trained on.
        """
        graph, split = self._graph(dataset)
        inputs = self.inputs(graph)
        with torch.no_grad():
            logits: Tensor = self.model(*inputs)
        evidence = None
        if because is not False and isinstance(self.model, CaGAT):
            trained_on = split.train if split is not None else self._known_nodes(graph).train
            evidence = find_evidence(self.model, inputs, logits.argmax(dim=1), trained_on, always=because is True)
        about = self.description
        return Predictions.from_logits(logits, graph, about.classes, split, about.temperature, evidence)

    def evaluate(self, dataset: str | None = None) -> Evaluation:
        """How right the model is on its own graph, or on another that has labels.

        On another graph, all labelled nodes are test nodes but those of the graph trained on, which stay what they
        were there: nodes of the same name and features.
        """
        classes = self.description.classes
        if dataset is None:
            graph, split = self.problem.graph, self.problem.split
            held_out = self._out_of_fold()
            return Evaluation.of(self.probabilities(graph), graph.y, classes, split, held_out)
        graph = self._graph(dataset)[0]
        y = _renumbered(graph, classes)
        labelled = torch.nonzero(graph.y >= 0).squeeze(1)
        if not len(labelled):
            raise DatasetError(f"{graph.name}: has no labels to compare predictions with. Give some, or use: predict")
        known = self._known_nodes(graph)
        is_known = torch.isin(labelled, torch.cat([known.train, known.val]))
        train, val = (part[graph.y[part] >= 0] for part in (known.train, known.val))
        return Evaluation.of(self.probabilities(graph), y, classes, Split(train, val, labelled[~is_known]))

    def _out_of_fold(self) -> tuple[Tensor, Tensor] | None:
        if not self.directory.out_of_fold.exists():
            return None
        found = OutOfFold.read(self.directory)
        return torch.from_numpy(found.probabilities), torch.from_numpy(found.labels)

    def _known_nodes(self, graph: Data) -> Split:
        """The training and validation nodes of the run in another graph: those of the same name and features."""
        none = torch.empty(0, dtype=torch.long)
        try:
            problem = self.problem
        except CagatError as error:
            told = "Which nodes the model was trained on is not known, since its own graph is not there (%s)."
            _logger.info(told, error)
            return Split(none, none, none)
        number = {name: node for node, name in enumerate(graph.node_names)}

        def found(part: Tensor) -> Tensor:
            names = ((node, number.get(problem.graph.node_names[node])) for node in part.tolist())
            pairs = [pair for pair in names if pair[1] is not None]
            old, new = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).unbind(dim=1)
            same = (_rows(problem.graph.x, old) == _rows(graph.x, new)).all(dim=1)
            return new[same].sort().values

        return Split(found(problem.split.train), found(problem.split.val), none)

    def _graph(self, dataset: str | None) -> tuple[Data, Split | None]:
        if dataset is None:
            return self.problem.graph, self.problem.split
        if not self.model.inductive:
            raise DatasetError(
                f"The model {self.description.model} labels only the graph it was trained on. Leave --dataset out, or "
                "train another model."
            )
        graph = load_graph(dataset, self.config.data_dir, self.config, self.encoder)
        if "encoder" in graph and self.encoder is None:
            columns = "; ".join(graph.encoder.describe()[:5])
            raise DatasetError(
                f"{graph.name}: its features are not all numbers, as those were that the model was trained on "
                f"({columns}). Fill gaps, and leave out columns that the model does not know."
            )
        about = self.description
        if about.structural != graph.get("structural", False):
            has, trained = ("has", "without any") if about.structural else ("has no", "with some")
            raise DatasetError(f"{graph.name}: {has} features, but the model was trained {trained}. Make both alike.")
        given = list(graph.feature_names)
        graph = with_features(graph, about.features, about.in_channels)
        is_complete = "described" not in graph
        if about.structural:
            is_complete = set(about.features or ()) <= set(graph.node_names)
        joined = graph if is_complete else self._joined(graph)
        if joined is graph:
            require_known_features(graph.name, given, about.features)
        return joined, None

    def _joined(self, graph: Data) -> Data:
        """A graph of new nodes with the one trained on, if that is still there."""
        try:
            known = self.problem.graph
        except CagatError as error:
            _logger.warning(
                "%s: some of its nodes have no features, and the graph trained on cannot be asked for them: %s",
                *(graph.name, error),
            )
            return graph
        return joined_to_known(graph, known, structural=self.description.structural)


def _rows(x: Tensor, nodes: Tensor) -> Tensor:
    return (
        x[nodes]
        if x.layout is torch.strided
        else x.to_sparse(layout=torch.sparse_coo).index_select(0, nodes).to_dense()
    )


def _renumbered(graph: Data, classes: list[str]) -> Tensor:
    """The classes of a graph by the numbers that a model has for them; -1 for those that it does not know."""
    numbers = torch.tensor([classes.index(name) if name in classes else -1 for name in graph.class_names] + [-1])
    y = numbers[graph.y]
    if unknown := int(((y < 0) & (graph.y >= 0)).sum()):
        _logger.warning(
            "%s: %d nodes are of classes that the model does not know, and count as wrong.", graph.name, unknown
        )
    return y
