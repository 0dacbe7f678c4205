"""Trained weights as a file that describes itself."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

from cagat.errors import DamagedFileError
from cagat.files import atomic_write, open_regular, read_bounded, size_of
from cagat.memory import OutOfMemoryError, require_memory
from cagat.models import NodeClassifier, create

_LENGTH_BYTES = 8
# The names of half a million features; to parse a head takes forty times its length.
_LONGEST_HEAD = 2**23
_LONGEST_CHECKSUM = 10_000
_METADATA = "__metadata__"
# The file, its tensors, and the model.
_MEMORY = 3


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
    atomic_write(path, content)
    digest = hashlib.sha256(content).hexdigest()
    # In the form that `sha256sum --check` reads.
    atomic_write(_checksum(path), f"{digest}  {path.name}\n")


def read_weights(path: Path) -> tuple[NodeClassifier, Description]:
    """Make the model that a file describes, with its weights, ready to predict.

    Raises:
        DamagedFileError: The file is not what was written, by its checksum or by its form.
        OutOfMemoryError: It is too large.
    """
    try:
        head, known = _head(path), _known_digest(path)
        description = _described(head)
        content = _content(path)
        if hashlib.sha256(content).hexdigest() != known:
            raise DamagedFileError(
                f"{path}: is damaged, its sha256 is not the one in {_checksum(path).name}. {_remedy(path)}"
            )
        weights = safetensors.torch.load(content)
        # Making the model draws weights that are thrown away; the caller's random numbers shall not notice.
        with torch.random.fork_rng(devices=[]):
            model = _made(description)
        model.load_state_dict(weights)
    except OSError as error:
        raise DamagedFileError(f"{error.filename}: cannot be read ({error.strerror}). {_remedy(path)}") from error
    except (DamagedFileError, OutOfMemoryError):
        raise
    except Exception as error:  # Whatever a description of another form than ours makes torch and Python raise.
        raise DamagedFileError(f"{path}: holds no weights of cagat ({error}). {_remedy(path)}") from error
    model.eval()
    return model, description


def weights_are_whole(path: Path) -> bool:
    """Whether a file of weights is there and has the digest that is written beside it."""
    try:
        _head(path)
        return hashlib.sha256(_content(path)).hexdigest() == _known_digest(path)
    except Exception:  # Whatever a head of another form than ours makes Python raise.
        return False


def _head(path: Path) -> dict[str, Any]:
    """The head of a safetensors file: its length in eight bytes, then JSON."""
    with open_regular(path) as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
        if length > min(_LONGEST_HEAD, size_of(stream)):
            raise ValueError(f"its head says that it has {length} bytes")
        head: dict[str, Any] = json.loads(stream.read(length))
        # What follows is as long as the head says, and no longer.
        tensors = [value["data_offsets"][1] for name, value in head.items() if name != _METADATA]
        size = _LENGTH_BYTES + length + max(tensors, default=0)
        if size != size_of(stream):
            raise ValueError(f"it has {size_of(stream)} bytes, but {size} by its head")
    return head


def _described(head: dict[str, Any]) -> Description:
    """The description in the head, if the model that it describes has the tensors that the head lists.

    The model is made without any memory for that, so that no description can ask for more than the file has.
    """
    description = Description(**json.loads(head[_METADATA]["cagat"]))
    shapes = {name: tuple(value["shape"]) for name, value in head.items() if name != _METADATA}
    if description.hyperparameters.get("layers", 1) > max(1, len(shapes)):
        raise ValueError(f"it says that the model has {description.hyperparameters['layers']} layers")
    with torch.device("meta"):
        planned = {name: tuple(tensor.shape) for name, tensor in _made(description).state_dict().items()}
    # What is empty in a new model, such as the labels to be propagated, is as long as was saved.
    empty = {name for name, shape in planned.items() if 0 in shape}
    if planned.keys() != shapes.keys() or any(planned[name] != shapes[name] for name in planned.keys() - empty):
        raise ValueError("its tensors are not those of the model that it describes")
    return description


def _made(description: Description) -> NodeClassifier:
    classes = len(description.classes)
    return create(description.model, description.in_channels, classes, **description.hyperparameters)


def _content(path: Path) -> bytes:
    size = path.stat().st_size
    require_memory(_MEMORY * size, f"{path}: reading it", "Use a machine with more memory.")
    return read_bounded(path, size)


def _known_digest(path: Path) -> str:
    text = read_bounded(_checksum(path), _LONGEST_CHECKSUM).decode("ascii", errors="replace")
    return next(iter(text.split()), "")


def _checksum(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _remedy(path: Path) -> str:
    return f"Write it anew from the run's checkpoint with: cagat train --resume {path.parent}"
