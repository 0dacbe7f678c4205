"""Trained weights as a file that describes itself."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

from cagat.models import NodeClassifier, create
from cagat.training.checkpoint import DamagedFileError
from cagat.whole_file import put_whole


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
        graph: The digest of what it was trained on.
    """

    model: str
    hyperparameters: dict[str, Any]
    in_channels: int
    classes: list[str]
    features: list[str] | None
    feature_norm: str
    graph: str


def write_weights(path: Path, model: NodeClassifier, description: Description) -> None:
    """Write the weights of a model, and its description in the file's own head."""
    tensors = {name: weight.detach().cpu().contiguous() for name, weight in model.state_dict().items()}
    # One key only: safetensors writes several in no fixed order, and the same weights shall be the same bytes.
    content = safetensors.torch.save(tensors, {"cagat": json.dumps(asdict(description))})
    put_whole(path, content)
    digest = hashlib.sha256(content).hexdigest()
    # In the form that `sha256sum --check` reads.
    put_whole(_checksum(path), f"{digest}  {path.name}\n")


def read_weights(path: Path) -> tuple[NodeClassifier, Description]:
    """Make the model that a file describes, with its weights, ready to predict.

    Raises:
        DamagedFileError: The file is not what was written, by its checksum or by its form.
    """
    try:
        content = path.read_bytes()
        known = _checksum(path).read_text(encoding="ascii", errors="replace").split()[:1]
    except OSError as error:
        raise DamagedFileError(f"{error.filename}: cannot be read ({error.strerror}). {_remedy(path)}") from error
    if [hashlib.sha256(content).hexdigest()] != known:
        raise DamagedFileError(
            f"{path}: is damaged, its sha256 is not the one in {_checksum(path).name}. {_remedy(path)}"
        )
    try:
        weights = safetensors.torch.load(content)
        description = Description(**json.loads(_head(content)["__metadata__"]["cagat"]))
        # Making the model draws weights that are thrown away; the caller's random numbers shall not notice.
        with torch.random.fork_rng(devices=[]):
            model = create(
                description.model, description.in_channels, len(description.classes), **description.hyperparameters
            )
        model.load_state_dict(weights)
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DamagedFileError(f"{path}: holds no weights of cagat ({error}). {_remedy(path)}") from error
    model.eval()
    return model, description


def weights_are_whole(path: Path) -> bool:
    """Whether a file of weights is there and has the digest that is written beside it."""
    try:
        known = _checksum(path).read_text(encoding="ascii", errors="replace").split()[:1]
        return [hashlib.sha256(path.read_bytes()).hexdigest()] == known
    except OSError:
        return False


def _head(content: bytes) -> dict[str, Any]:
    """The head of a safetensors file: its length in eight bytes, then JSON."""
    length = int.from_bytes(content[:8], "little")
    head: dict[str, Any] = json.loads(content[8 : 8 + length])
    return head


def _checksum(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _remedy(path: Path) -> str:
    return f"Write it anew from the run's checkpoint with: cagat train --resume {path.parent}"
