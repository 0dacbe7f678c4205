"""What a trained model says about a graph in parts: each process computes its own, the first one writes."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from cagat.data.loading import is_parted
from cagat.distributed import World, take_turns
from cagat.errors import ConfigError, DatasetError
from cagat.models import CaGAT
from cagat.parts import open_parts, read_manifest
from cagat.training.compute import computing
from cagat.training.parted_problem import (
    PartedProblem,
    parted_data,
    predictions_of_all,
    split_codes,
    vectors_of_all,
)
from cagat.training.predictions import TABLE_FILES, require_suffix, write_tables
from cagat.training.run_directory import RunError
from cagat.training.trained_run import TrainedRun


class TrainedParts:
    """A trained run and a graph in parts: its own, or another with the same features.

    Args:
        path: The run directory.
        dataset: The other graph.

    Raises:
        DatasetError: The graph has other features.
        ConfigError: The model cannot be used on parts.
    """

    def __init__(self, path: Path, dataset: str | None = None) -> None:
        self.run = TrainedRun(path)
        self._is_own = dataset is None
        self.directory = Path(self.run.config.dataset if dataset is None else dataset)
        model = self.run.model
        if not isinstance(model, CaGAT) or any(conv.support != "full" for conv in model.convs):
            raise ConfigError(
                f"{path}: on a graph in parts only the model cagat with --support full predicts, but this is "
                f"{self.run.description.model}. Give it the graph that was cut."
            )
        about, known = read_manifest(self.directory), self.run.description
        names = about.feature_names or None
        if about.features != known.in_channels or (names and known.features and names != known.features):
            raise DatasetError(
                f"{self.directory}: has {about.features} features, but the model was trained on {known.in_channels}, "
                "or on others. Give the graph the same features, in the same order, before it is cut."
            )

    def predict(self, out: Path, *, out_of_core: bool = False) -> int | None:
        """Write predictions for all nodes; the first process returns how many these are.

        Under torchrun all processes must call it.
        """
        require_suffix(out, TABLE_FILES)
        return self._write(out, self._predictions, out_of_core)

    def embed(self, out: Path, *, out_of_core: bool = False) -> int | None:
        """Write the hidden representation of all nodes, likewise."""
        require_suffix(out, TABLE_FILES[1:])
        return self._write(out, self._embeddings, out_of_core)

    def _write(self, out: Path, write: Callable[[World, Path], None], out_of_core: bool) -> int | None:
        def work(world: World) -> None:
            with computing(self.run.config.threads or torch.get_num_threads(), self.run.config.deterministic):
                write(world, out)

        nodes = read_manifest(self.directory).num_nodes
        if out_of_core:
            out.parent.mkdir(parents=True, exist_ok=True)
            take_turns(read_manifest(self.directory).num_parts, out.parent, work, work)
            return nodes
        with World.joined() as world:
            work(world)
            return nodes if world.is_first else None

    def _predictions(self, world: World, out: Path) -> None:
        if self._is_own:
            # Only the run's own graph knows what its labels were for.
            problem = PartedProblem.open(self.run.config, world)
            if problem.fingerprint() != self.run.description.graph:
                raise RunError(
                    f"{self.directory}: is another partition, or has another split, than when the run in "
                    f"{self.run.directory.path} was trained. Bring that back, or label this graph as it is with: "
                    f"cagat predict {self.run.directory.path} --dataset {self.directory}"
                )
            parts, codes = problem.parts, split_codes(problem.split, problem.parts.num_nodes)
        else:
            parts = open_parts(self.directory, world)
            codes = torch.zeros(parts.num_nodes, dtype=torch.int8)
        logits = self.run.logits(parted_data(parts))
        write_tables(out, predictions_of_all(parts, logits, codes, self.run.description.temperature))

    @torch.no_grad()
    def _embeddings(self, world: World, out: Path) -> None:
        parts = open_parts(self.directory, world)
        vectors: Tensor = self.run.model.embed(*self.run.inputs(parted_data(parts)))
        write_tables(out, vectors_of_all(parts, vectors))


def in_parts(path: Path, dataset: str | None) -> bool:
    """Whether the graph that a run is to be used on is in parts."""
    return is_parted(TrainedRun(path).config.dataset if dataset is None else dataset)
