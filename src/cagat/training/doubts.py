"""Labels that may be wrong: labelled nodes that a model which was not trained on them takes for another class."""

import io
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from cagat.errors import DamagedFileError
from cagat.files import read_bounded
from cagat.training.predictions import unguarded, write_table
from cagat.training.run_directory import RunDirectory, RunError

_LARGEST = 2**31
_PREFIX = "probability_"


@dataclass(frozen=True)
class OutOfFold:
    """What models that were not trained on them say about the labelled nodes.

    Attributes:
        nodes: The names of the nodes.
        labels: The class of each, as a number.
        classes: What the classes are called.
        probabilities: Of each class for each node.
    """

    nodes: list[str]
    labels: npt.NDArray[np.int64]
    classes: list[str]
    probabilities: npt.NDArray[np.float64]

    @classmethod
    def read(cls, directory: RunDirectory) -> "OutOfFold":
        """Read what a run with folds wrote.

        Raises:
            RunError: The run has no folds.
            DamagedFileError: The file is not what was written.
        """
        path = directory.out_of_fold
        if not path.exists():
            raise RunError(
                f"{directory.path}: the run has no predictions of labelled nodes by models that were not trained on "
                "them. Train with folds, which takes at least 5 labels in a class: cagat train --protocol all"
            )
        try:
            words = {name: pa.string() for name in ("node", "label", "predicted")}
            table = pyarrow.csv.read_csv(
                io.BytesIO(read_bounded(path, _LARGEST)),
                convert_options=pyarrow.csv.ConvertOptions(column_types=words),
            )
            named = [name for name in table.column_names if name.startswith(_PREFIX)]
            shares = np.column_stack([table[name].to_numpy().astype(np.float64) for name in named])
            classes = [name.removeprefix(_PREFIX) for name in named]
            number = {name: index for index, name in enumerate(classes)}
            labels = np.array([number[unguarded(label)] for label in table["label"].to_pylist()], dtype=np.int64)
            nodes = [unguarded(node) for node in table["node"].to_pylist()]
        except (OSError, ValueError, KeyError, TypeError) as error:
            remedy = f"Write it anew with: cagat train --resume {directory.path}"
            raise DamagedFileError(f"{path}: cannot be read ({error}). {remedy}") from error
        return cls(nodes, labels, classes, shares)

    def write(self, directory: RunDirectory) -> None:
        """Write one row per node: node, label, predicted, probability_CLASS of each class."""
        called = self.probabilities.argmax(axis=1)
        words = {"node": self.nodes}
        for name, numbers in (("label", self.labels), ("predicted", called)):
            words[name] = [self.classes[number] for number in numbers.tolist()]
        shares = {f"{_PREFIX}{name}": self.probabilities[:, number] for number, name in enumerate(self.classes)}
        write_table(pa.table({**words, **shares}), directory.out_of_fold)


class Doubt(NamedTuple):
    """A label that may be wrong.

    Attributes:
        node: The name of the node.
        label: The class that it was given.
        predicted: The class that held-out models take it for.
        label_probability: How likely they think the label (self-confidence).
        predicted_probability: How likely they think the other class.
        margin: The difference of both scaled to 0..1 (normalised margin); 0 is the gravest doubt.
    """

    node: str
    label: str
    predicted: str
    label_probability: float
    predicted_probability: float
    margin: float


def find_doubts(found: OutOfFold) -> list[Doubt]:
    r"""The labels that out-of-fold predictions contradict, the gravest first.

    They are ranked by the normalised margin of `"Confident Learning" <https://arxiv.org/abs/1911.00068>`_,
    :math:`(p_{label} - \max_{k \ne label} p_k + 1) / 2`, and of equal margins by the probability of the label.
    """
    everyone = np.arange(len(found.nodes))
    own = found.probabilities[everyone, found.labels]
    others = found.probabilities.copy()
    others[everyone, found.labels] = -np.inf
    called, most = others.argmax(axis=1), others.max(axis=1, initial=-np.inf)
    margin = (own - most + 1) / 2
    order = np.lexsort((own, margin))
    return [
        Doubt(
            found.nodes[node],
            found.classes[found.labels[node]],
            found.classes[called[node]],
            float(own[node]),
            float(most[node]),
            float(margin[node]),
        )
        for node in order.tolist()
        if own[node] < most[node]
    ]


def doubts_table(doubts: list[Doubt]) -> pa.Table:
    """One row per doubt, under the names of its fields."""
    words, numbers = Doubt._fields[:3], Doubt._fields[3:]
    columns = {name: pa.array([getattr(doubt, name) for doubt in doubts], pa.string()) for name in words}
    values = {name: pa.array([getattr(doubt, name) for doubt in doubts], pa.float64()) for name in numbers}
    return pa.table(columns | values)
