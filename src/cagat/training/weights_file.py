"""Trained weights as a file that describes itself."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from cagat.errors import DamagedFileError
from cagat.files import atomic_write
from cagat.memory import OutOfMemoryError
from cagat.models import NodeClassifier, create
from cagat.safetensors_file import read_tensors, write_tensors


@dataclass(frozen=True)
class Description:
    """What must be known to use trained weights."""

    model: str
    hyperparameters: dict[str, Any]
    in_channels: int
    classes: list[str]
    features: list[str] | None
    feature_norm: str
    graph: str


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
        description = Description(**metadata)
        _require_tensors_of(description, {name: tensor.shape for name, tensor in tensors.items()})
        # Making the model draws weights that are thrown away; the caller's random numbers shall not notice.
        with torch.random.fork_rng(devices=[]):
            model = _made(description)
        model.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in tensors.items()})
    except OutOfMemoryError:
        raise
    except DamagedFileError as error:
        raise DamagedFileError(f"{error} {remedy}") from error
    except Exception as error:  # Whatever a description of another form than ours makes torch and Python raise.
        raise DamagedFileError(f"{path}: holds no weights of cagat ({error}). {remedy}") from error
    model.eval()
    return model, description


def _require_tensors_of(description: Description, shapes: dict[str, tuple[int, ...]]) -> None:
    """Raise unless the described model has these tensors.

    The model is made without any memory for that, so that no description can ask for more than the file has.
    """
    if description.hyperparameters.get("layers", 1) > max(1, len(shapes)):
        raise ValueError(f"it says that the model has {description.hyperparameters['layers']} layers")
    with torch.device("meta"):
        planned = {name: tuple(tensor.shape) for name, tensor in _made(description).state_dict().items()}
    # What is empty in a new model, such as the labels to be propagated, is as long as was saved.
    empty = {name for name, shape in planned.items() if 0 in shape}
    if planned.keys() != shapes.keys() or any(planned[name] != shapes[name] for name in planned.keys() - empty):
        raise ValueError("its tensors are not those of the model that it describes")


def _made(description: Description) -> NodeClassifier:
    classes = len(description.classes)
    return create(description.model, description.in_channels, classes, **description.hyperparameters)
