"""How right a model is. This, and nothing before it, looks at the labels of test nodes."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from torch import Tensor
from torch_geometric.data import Data

from cagat.data.graph import SPLIT_NAMES
from cagat.data.splits import Split


class ClassScore(NamedTuple):
    """A class among the test nodes: how many are of it, how many of them were found, how many called so are right."""

    name: str
    nodes: int
    recall: float | None
    precision: float | None


@dataclass(frozen=True)
class Evaluation:
    """How right a model is.

    Attributes:
        accuracy: The share of right predictions in each part that has nodes.
        sizes: The number of nodes of each part.
        classes: The test nodes, class by class.
    """

    accuracy: dict[str, float]
    sizes: dict[str, int]
    classes: list[ClassScore]

    @classmethod
    def of(cls, logits: Tensor, graph: Data, split: Split) -> "Evaluation":
        """Compare logits with labels."""
        predicted = logits.argmax(dim=1).cpu()
        right = predicted == graph.y
        nodes = {part: getattr(split, part) for part in SPLIT_NAMES if len(getattr(split, part))}
        accuracy = {part: right[members].double().mean().item() for part, members in nodes.items()}
        truth, called = graph.y[split.test], predicted[split.test]
        classes = []
        for number, name in enumerate(graph.class_names):
            hits = int(((truth == number) & (called == number)).sum())
            members, named = int((truth == number).sum()), int((called == number).sum())
            classes.append(
                ClassScore(name, members, hits / members if members else None, hits / named if named else None)
            )
        return cls(accuracy, {part: len(members) for part, members in nodes.items()}, classes)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = asdict(self)
        plain["classes"] = [score._asdict() for score in self.classes]
        return plain
