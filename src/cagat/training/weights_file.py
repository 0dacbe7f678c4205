"""Trained weights as a file that describes itself."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from cagat.models import NodeClassifier, create
from cagat.training.checkpoint import DamagedFileError
from cagat.whole_file import written_whole


@dataclass(frozen=True)
class Description:
    """What must be known to use trained weights.

    Attributes:
        model: The name of the model.
        hyperparameters: Those it was made with.
        in_channels: The number of features.
        classes: The names of the classes.
        features: The names of the features, if they have any.
        feature_norm: How features are scaled.
    """

    model: str
    hyperparameters: dict[str, Any]
    in_channels: int
    classes: list[str]
    features: list[str] | None
    feature_norm: str


def write_weights(path: Path, model: NodeClassifier, description: Description) -> None:
    """Write the weights of a model, and its description in the file's own head."""
    tensors = {name: weight.detach().cpu().contiguous() for name, weight in model.state_dict().items()}
    # One key only: safetensors writes several in no fixed order, and the same weights shall be the same bytes.
    content = safetensors.torch.save(tensors, {"cagat": json.dumps(asdict(description))})
    written_whole(path, lambda stream: stream.write(content))
    digest = hashlib.sha256(content).hexdigest()
    # In the form that `sha256sum --check` reads.
    written_whole(_checksum(path), lambda stream: stream.write(f"{digest}  {path.name}\n".encode()))


def read_weights(path: Path) -> tuple[NodeClassifier, Description]:
    """Make the model that a file describes, with its weights, ready to predict.

    Raises:
        DamagedFileError: The file is not what was written, by its checksum or by its form.
    """
    try:
        content = path.read_bytes()
        known = _checksum(path).read_text(encoding="ascii", errors="replace").split()[:1]
    except OSError as error:
        raise DamagedFileError(f"{error.filename}: cannot be read ({error.strerror}). {_REMEDY}") from error
    if [hashlib.sha256(content).hexdigest()] != known:
        raise DamagedFileError(f"{path}: is damaged, its sha256 is not the one in {_checksum(path).name}. {_REMEDY}")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            description = Description(**json.loads(file.metadata()["cagat"]))
            weights: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DamagedFileError(f"{path}: holds no weights of cagat ({error}). {_REMEDY}") from error
    # Making the model draws weights that are thrown away; the caller's random numbers shall not notice.
    with torch.random.fork_rng(devices=[]):
        model = create(
            description.model, description.in_channels, len(description.classes), **description.hyperparameters
        )
    model.load_state_dict(weights)
    model.eval()
    return model, description


def _checksum(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


_REMEDY = "Write it anew from the run's checkpoint with: cagat train --resume RUN"
