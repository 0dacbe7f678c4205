"""What a trained model says about a graph."""

from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch_geometric.data import Data

from cagat.data.features import Normalization
from cagat.data.splits import Split
from cagat.errors import DatasetError
from cagat.settings import TrainConfig
from cagat.training.config_file import read_config
from cagat.training.predictions import Embeddings, Evaluation, Predictions
from cagat.training.problem import Problem, inputs_for, load_graph, with_features
from cagat.training.run_directory import RunDirectory, RunError
from cagat.training.weights_file import read_weights


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
            remedy = f"Go on with: cagat train --resume {path}" if exists else f"Train one: cagat train --out {path}"
            raise RunError(f"{path}: there is no trained model. {remedy}")
        self.config = TrainConfig.from_values(read_config(self.directory.config))
        self.model, self.description = read_weights(self.directory.model)

    @cached_property
    def problem(self) -> Problem:
        """The graph that the model was trained on, and its split."""
        problem = Problem.load(self.config)
        if problem.fingerprint() != self.description.graph:
            raise RunError(
                f"{self.config.dataset}: is no longer the graph that the run in {self.directory.path} was trained on. "
                f"Bring that back; or label the new one with: cagat predict RUN --dataset {self.config.dataset}"
            )
        return problem

    def inputs(self, graph: Data) -> tuple[Any, ...]:
        """What the model takes of a graph: scaled features, edges, and their weights if there are any."""
        norm = cast("Normalization", self.description.feature_norm)
        return inputs_for(self.model, graph, norm, torch.device("cpu"))

    @torch.no_grad()
    def logits(self, graph: Data) -> Tensor:
        """The logits of all nodes of a graph with the same features as the one trained on."""
        logits: Tensor = self.model(*self.inputs(graph))
        return logits

    @torch.no_grad()
    def embed(self, dataset: str | None = None) -> Embeddings:
        """The hidden representation of all nodes, of the graph trained on or of another."""
        graph = self._graph(dataset)[0]
        return Embeddings(list(graph.node_names), self.model.embed(*self.inputs(graph)))

    def predict(self, dataset: str | None = None) -> Predictions:
        """Label all nodes, of the graph trained on or of another.

        Raises:
            DatasetError: The other graph has other features, or the model labels only the graph it was trained on.
        """
        graph, split = self._graph(dataset)
        return Predictions.from_logits(self.logits(graph), graph, self.description.classes, split)

    def evaluate(self) -> Evaluation:
        """How right the model is on its own graph."""
        problem = self.problem
        return Evaluation.of(self.logits(problem.graph), problem.graph, problem.split)

    def _graph(self, dataset: str | None) -> tuple[Data, Split | None]:
        if dataset is None:
            return self.problem.graph, self.problem.split
        if not self.model.inductive:
            raise DatasetError(
                f"The model {self.description.model} labels only the graph it was trained on. Leave --dataset out, or "
                "train another model."
            )
        graph = load_graph(dataset, self.config.data_dir)
        return with_features(graph, self.description.features, self.description.in_channels), None
