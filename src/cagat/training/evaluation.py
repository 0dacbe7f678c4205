"""How right a trained model is, how sure one can be of that, and how right its probabilities are."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cagat.data.graph import SPLIT_NAMES
from cagat.data.splits import Split
from cagat.files import atomic_write
from cagat.style import BLUE, GREY, ORANGE
from cagat.training.calibration import BINS, Bin, expected_calibration_error, interval, reliability

OUT_OF_FOLD = "out_of_fold"


class ClassScore(NamedTuple):
    """A class among the nodes measured on: how many are of it, how many were found, how many called so are right."""

    name: str
    nodes: int
    recall: float | None
    precision: float | None


@dataclass(frozen=True)
class Evaluation:
    """How right a model is. This, and nothing before it, looks at the labels of test nodes.

    Attributes:
        accuracy: The share of right predictions in each part of the split.
        sizes: The number of nodes of each part.
        intervals: The 95 % interval of each accuracy.
        measured_on: The part that the rest is about: test nodes, or every labelled node predicted by a model that was
            not trained on it (`out_of_fold`); ``None`` if no nodes were held out.
        classes: Recall and precision of each class.
        calibration_error: The expected calibration error in percent.
        reliability: The bins that it is made of, those that have nodes.
    """

    accuracy: dict[str, float]
    sizes: dict[str, int]
    intervals: dict[str, tuple[float, float]]
    measured_on: str | None
    classes: list[ClassScore]
    calibration_error: float | None
    reliability: list[Bin]

    @classmethod
    def of(
        cls,
        probabilities: Tensor,
        y: Tensor,
        class_names: list[str],
        split: Split,
        out_of_fold: tuple[Tensor, Tensor] | None = None,
    ) -> "Evaluation":
        """Compare probabilities with labels.

        Args:
            probabilities: Of each class for all nodes.
            y: The class of each node.
            class_names: What the classes are called.
            split: The nodes of each subset.
            out_of_fold: Probabilities and classes of labelled nodes that were held out one fold after the other.
        """
        probabilities = probabilities.detach().cpu().double()
        subsets = {name: getattr(split, name) for name in SPLIT_NAMES if len(getattr(split, name))}
        held_out = {name: (probabilities[nodes], y[nodes]) for name, nodes in subsets.items()}
        if out_of_fold is not None:
            held_out[OUT_OF_FOLD] = out_of_fold
        hits = {part: int((shares.argmax(dim=1) == truth).sum()) for part, (shares, truth) in held_out.items()}
        sizes = {part: len(truth) for part, (_, truth) in held_out.items()}
        measured_on = next((part for part in ("test", OUT_OF_FOLD) if part in held_out), None)
        shares, truth = held_out[measured_on] if measured_on else (probabilities[:0], y[:0])
        return cls(
            accuracy={part: hits[part] / size for part, size in sizes.items()},
            sizes=sizes,
            intervals={part: interval(hits[part], size) for part, size in sizes.items()},
            measured_on=measured_on,
            classes=_class_scores(shares.argmax(dim=1), truth, class_names),
            calibration_error=100 * expected_calibration_error(shares, truth) if measured_on else None,
            reliability=reliability(shares, truth),
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        classes, bins = ([one._asdict() for one in values] for values in (self.classes, self.reliability))
        return asdict(self) | {"classes": classes, "reliability": bins}


def _class_scores(called: Tensor, truth: Tensor, names: list[str]) -> list[ClassScore]:
    scores = []
    for number, name in enumerate(names):
        is_of, is_called = truth == number, called == number
        hits, members, named = (int(which.sum()) for which in (is_of & is_called, is_of, is_called))
        scores.append(ClassScore(name, members, hits / members if members else None, hits / named if named else None))
    return scores


def draw_reliability(evaluation: Evaluation, path: Path) -> None:
    """Draw how many predictions of each confidence are right, and how many there are, as PNG."""
    # Not pyplot, which has state of its own and looks for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

    figure = Figure(figsize=(5, 5.4), layout="constrained")
    shares, counts = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    bins = evaluation.reliability
    x = [one.confidence for one in bins]
    y = torch.tensor([one.accuracy for one in bins])
    ends = torch.tensor([interval(round(one.accuracy * one.nodes), one.nodes) for one in bins]).reshape(-1, 2)
    bars = torch.stack([y - ends[:, 0], ends[:, 1] - y]).clamp(min=0)
    shares.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="as sure as right")
    shares.errorbar(x, y, yerr=bars, color=BLUE, marker="o", linewidth=1.3, elinewidth=0.8, label="bins of 1/15, 95 %")
    where = "out-of-fold" if evaluation.measured_on == OUT_OF_FOLD else evaluation.measured_on
    nodes = sum(one.nodes for one in bins)
    title = f"{nodes} {where} nodes, calibration error {evaluation.calibration_error:.1f} %"
    shares.set(title=title, ylabel="right", ylim=(-0.02, 1.02))
    shares.legend(frameon=False, loc="upper left")
    counts.bar(x, [one.nodes for one in bins], width=0.8 / BINS, color=ORANGE)
    counts.set(xlabel="confidence", ylabel="nodes", xlim=(0, 1.02))
    for axes in (shares, counts):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    shares.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    atomic_write(path, FigureCanvasAgg(figure).print_png)
