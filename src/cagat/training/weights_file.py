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
