"""What is left when labelling is done: predictions for all nodes, and a report on them."""

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from cagat.labelling.fitting import final
from cagat.labelling.store import LabelError
from cagat.settings import TrainConfig
from cagat.style import Section, Table, write_report
from cagat.training.estimate import Estimate, judged_nodes
from cagat.training.evidence import find_evidence
from cagat.training.predictions import Predictions

UNSURE_SHOWN = 20


def write_results(
    graph: Data, labels: Mapping[int, str], config: TrainConfig, directory: Path, command: str
) -> list[Path]:
    """Fit a model as `cagat train` does, and write `predictions.csv`, `report.html` and `report.md`; these files.

    Args:
        graph: The graph.
        labels: The labels by the numbers of their nodes.
        config: How to fit.
        directory: Where to write.
        command: The command that does the same.
    """
    if len(set(labels.values())) < 2:
        raise LabelError("There is no model without labels of two classes. Label some more nodes first.")
    problem, trainer, temperature = final(graph, labels, config)
    logits = trainer.logits()
    assert logits is not None
    evidence = find_evidence(trainer.model, trainer.plan.inputs, logits.argmax(dim=1), problem.split.train)
    classes = problem.graph.class_names
    predictions = Predictions.from_logits(logits, graph, classes, problem.split, temperature, evidence)
    path = directory / "predictions.csv"
    predictions.write(path)
    judged = judged_nodes(problem, trainer, logits)
    note = estimate_text(None if judged is None else Estimate.of(judged))
    reports = write_report(
        directory / "report", f"Labels of {graph.name}", _sections(predictions, labels), command, note
    )
    return [path, *reports]


def estimate_text(estimate: Estimate | None) -> str:
    """How right the model is, as far as that can be said."""
    if estimate is None:
        return "There are too few labels to estimate how right the predictions are: half of the classes need five."
    low, high, share = (100 * value for value in (estimate.low, estimate.high, estimate.accuracy))
    return (
        f"About {share:.0f} % of the predictions are right (95 % interval {low:.0f} to {high:.0f} %): so many of the "
        f"{estimate.nodes} labelled nodes were predicted right by models that had not seen their labels. These nodes "
        "were chosen, not drawn at random, so that the rest of the graph may be easier or harder."
    )


def _sections(predictions: Predictions, labels: Mapping[int, str]) -> list[Section]:
    confidence, predicted = (part.numpy() for part in predictions.probabilities.max(dim=1))
    given = Counter(labels.values())
    rows = []
    for number, name in enumerate(predictions.classes):
        members = predicted == number
        mean = f"{100 * confidence[members].mean():.0f} %" if members.any() else ""
        rows.append((name, str(given[name]), str(int(members.sum())), mean))
    known = np.isin(np.arange(len(predicted)), list(labels))
    unsure = [node for node in np.argsort(confidence, kind="stable").tolist() if not known[node]][:UNSURE_SHOWN]
    nodes = [
        (predictions.nodes[node], predictions.classes[predicted[node]], f"{100 * confidence[node]:.0f} %")
        for node in unsure
    ]
    return [
        Section(
            Table(("class", "labels", "predicted nodes", "mean confidence"), rows),
            "Classes",
            f"{len(labels)} of {len(predicted)} nodes are labelled.",
        ),
        Section(
            Table(("node", "predicted", "confidence"), nodes, words=2),
            "Least sure",
            "The nodes without a label whose prediction is least sure: look at these first.",
        ),
    ]


def same_command(graph: str, labels: Path, reading: Mapping[str, str], *, trains: bool) -> str:
    """The command that makes the same predictions from the file of labels."""
    words = ["train", "--dataset", graph, "--protocol", "all"]
    if not trains:
        words = ["label", graph, "--labels", str(labels), "--finish"]
    return shlex.join(["cagat", *words, *(word for name, value in reading.items() for word in (f"--{name}", value))])
