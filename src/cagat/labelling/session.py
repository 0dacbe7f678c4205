"""A graph that is being labelled: what to label next, what is known of each node, and what goes on."""

import logging
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from cagat.errors import CagatError
from cagat.labelling.fitting import BackgroundFit, Fitted
from cagat.labelling.node_view import NodeColumns
from cagat.labelling.results import write_results
from cagat.labelling.store import LabelError, LabelStore
from cagat.settings import TrainConfig
from cagat.suggestions.coverage import RESTART, STEPS, UNSURE
from cagat.suggestions.node_space import NodeSpace, unit_rows
from cagat.suggestions.suggest import suggest_in
from cagat.training.evidence import percent

_logger = logging.getLogger(__name__)

AHEAD = 64
"""Suggestions that are known in advance."""

LABELS_FOR_A_SAY = 2
"""Labels per class from which on what the model is unsure of has a say in what is suggested."""

MOST_NEIGHBOURS = 24
MOST_FOUND = 12
MOST_ON_THE_MAP = 20_000


class Session:
    """One graph, its labels on disk and a model in the background. All methods may be called by any thread.

    Args:
        graph: The graph; its own labels do not count, but for those in the store.
        store: The labels.
        config: How models are fitted.
        columns: What describes each node.
        directory: Where results are written.
        command: The command that makes the same results.
    """

    def __init__(
        self, graph: Data, store: LabelStore, config: TrainConfig, columns: NodeColumns, directory: Path, command: str
    ) -> None:
        self.graph, self.store, self.config, self.columns = graph, store, config, columns
        self.directory, self.command = directory, command
        self.names: list[str] = list(graph.node_names)
        self._number = {name: number for number, name in enumerate(self.names)}
        self._lock = threading.RLock()
        self.version = 0
        self._space = NodeSpace(graph.x, graph.edge_index, getattr(graph, "edge_weight", None))
        self._z = unit_rows(self._space.smoothed(STEPS, RESTART))
        self._places = _places(self._z)
        random = np.random.default_rng(0)
        many = len(self.names) > MOST_ON_THE_MAP
        everyone = np.arange(len(self.names))
        self._on_map = np.sort(random.permutation(everyone)[:MOST_ON_THE_MAP]) if many else everyone
        self._order: list[int] = []
        self._counted: set[int] = set()
        self._nearest = np.full(len(self.names), -np.inf, dtype=np.float32)
        self._finish: dict[str, Any] | None = None
        self._suggest_more(None)
        self.background = BackgroundFit(graph, config, self._changed, self._with_model)
        if self.labels:
            self.background.ask(self.labels)

    @property
    def labels(self) -> dict[int, str]:
        """The labels by the numbers of their nodes."""
        return {self._number[node]: label for node, label in self.store.labels.items()}

    def close(self) -> None:
        """End the background fit and let others write labels."""
        self.background.close()
        self.store.close()

    # What people do. Each returns what is to be said, when it is on the disk.

    def label(self, node: int, label: str) -> str:
        """Give a node a label."""
        with self._lock:
            name = self._name(node)
            self.store.label(name, label)
            self._asked()
            return f"{name} is {label}."

    def skip(self, node: int) -> str:
        """Suggest a node no more."""
        with self._lock:
            name = self._name(node)
            self.store.skip(name)
            self._changed()
            return f"{name} is skipped."

    def add_class(self, name: str) -> str:
        """Add a class."""
        with self._lock:
            added = self.store.add_class(name)
            self._changed()
            return f"There is a class {added}."

    def undo(self) -> tuple[str, int | None]:
        """Undo what was done last; and the node that it was about."""
        with self._lock:
            last = self.store.undo()
            if last is None:
                return "There is nothing to undo.", None
            if last.do == "label":
                self._asked()
            else:
                self._changed()
            done = {"label": f"the label {last.label} of {last.node}", "skip": f"skipping {last.node}"}
            what = done.get(last.do, f"the class {last.label}")
            return f"Undone: {what}.", self._number.get(last.node)

    def finish(self) -> str:
        """Have the results written in the background."""
        with self._lock:
            if self.store.read_only:
                raise LabelError(self.store.read_only)
            if self._finish is not None and self._finish["running"]:
                return "Predictions and report are being written already."
            labels = self.labels
            if len(set(labels.values())) < 2:
                raise LabelError("There is no model without labels of two classes. Label some more nodes first.")
            self._finish = {"running": True}
        self.background.run(lambda: self._write(labels))
        self._changed()
        return "Writing predictions and report ..."

    def _write(self, labels: dict[int, str]) -> None:
        try:
            files = write_results(self.graph, labels, self.config, self.directory, self.command)
            found: dict[str, Any] = {"files": [str(path) for path in files], "command": self.command}
        except CagatError as error:
            found = {"error": str(error)}
        with self._lock:
            self._finish = {"running": False, "labels": len(labels), **found}
        self._changed()

    # What is shown.

    def state(self) -> dict[str, Any]:
        """All but the map and single nodes."""
        with self._lock:
            store, background, found = self.store, self.background, self.background.fitted
            counts = Counter(store.labels.values())
            predicted = Counter[str]()
            if found is not None:
                numbers = np.bincount(found.probabilities.argmax(axis=1), minlength=len(found.classes)).tolist()
                predicted.update(dict(zip(found.classes, numbers, strict=True)))
            suggested = self.suggested()
            return {
                "version": self.version,
                "graph": str(self.graph.name),
                "nodes": len(self.names),
                "labelled": sum(counts.values()),
                "skipped": len(store.skipped),
                "readOnly": store.read_only,
                "file": str(store.path),
                "classes": [
                    {"name": name, "labels": counts[name], "predicted": predicted[name] if found else None}
                    for name in store.classes
                ],
                "status": background.status,
                "busy": background.busy,
                "model": None if found is None else {"labels": found.labels, "calibrated": found.calibrated},
                "curve": [one._asdict() for one in background.curve],
                "gain": None if background.gain is None else background.gain._asdict(),
                "suggested": None if suggested is None else self.node(suggested),
                "finish": self._finish,
            }

    def suggested(self) -> int | None:
        """The node to label next; none if all are labelled or skipped."""
        with self._lock:
            done = self.labels.keys() | {self._number[name] for name in self.store.skipped if name in self._number}
            if len(done) == len(self.names):
                return None
            if all(node in done for node in self._order):
                self._suggest_more(None)
            return next(node for node in self._order if node not in done)

    def node(self, node: int) -> dict[str, Any]:
        """All that is known of a node."""
        name = self._name(node)
        with self._lock:
            found, labels = self.background.fitted, self.labels
            neighbours = np.unique(self._space.neighbours(np.array([node])))
            neighbours = neighbours[neighbours != node]
            # Labelled ones first: they tell most.
            listed = sorted(neighbours.tolist(), key=lambda one: (one not in labels, one))
            return {
                "index": node,
                "name": name,
                "label": labels.get(node),
                "skipped": name in self.store.skipped,
                "columns": self.columns(node),
                "neighbours": [self._brief(one, labels, found) for one in listed[:MOST_NEIGHBOURS]],
                "neighbourCount": len(listed),
                "guess": self._guess(node, found),
                "because": self._because(node, found, labels),
                "reason": self._reason(node, labels, found),
            }

    def search(self, text: str) -> list[dict[str, Any]]:
        """Nodes whose names contain a text; those that begin with it come first."""
        wanted = text.casefold().strip()
        if not wanted:
            return []
        starts, others = list[int](), list[int]()
        for node, name in enumerate(self.names):
            position = name.casefold().find(wanted)
            if position >= 0:
                (others if position else starts).append(node)
            if len(starts) >= MOST_FOUND:
                break
        found = sorted(starts, key=lambda node: (len(self.names[node]), node)) + others
        return [{"index": node, "name": self.names[node]} for node in found[:MOST_FOUND]]

    def map(self) -> dict[str, Any]:
        """The nodes in the plane, what the model takes them for and how sure it is; labels count as sure."""
        with self._lock:
            found, labels, nodes = self.background.fitted, self.labels, self._on_map
            number = {name: index for index, name in enumerate(self.store.classes)}
            predicted, sure = np.full(len(self.names), -1), np.zeros(len(self.names))
            if found is not None:
                class_of = np.array([number.get(name, -1) for name in found.classes])
                predicted = class_of[found.probabilities.argmax(axis=1)]
                sure = found.probabilities.max(axis=1)
            is_labelled = np.zeros(len(self.names), dtype=bool)
            for node, label in labels.items():
                predicted[node], sure[node], is_labelled[node] = number[label], 1.0, True
            return {
                "index": nodes.tolist(),
                "x": self._places[nodes, 0].round(4).tolist(),
                "y": self._places[nodes, 1].round(4).tolist(),
                "predicted": predicted[nodes].tolist(),
                "sure": np.rint(100 * sure[nodes]).astype(int).tolist(),
                "labelled": is_labelled[nodes].astype(int).tolist(),
            }

    # How it works.

    def _name(self, node: int) -> str:
        if not 0 <= node < len(self.names):
            raise LabelError(f"There is no node with the number {node}.")
        return self.names[node]

    def _changed(self) -> None:
        with self._lock:
            self.version += 1

    def _asked(self) -> None:
        self.background.ask(self.labels)
        self._changed()

    def _with_model(self, found: Fitted) -> None:
        """Called by the background with a new model."""
        enough = found.labels >= LABELS_FOR_A_SAY * max(2, len(self.store.classes))
        with self._lock:
            left = len(set(self._order) - self.labels.keys())
        if enough or left < AHEAD // 2:
            self._suggest_more(found if enough else None)

    def _suggest_more(self, found: Fitted | None) -> None:
        with self._lock:
            labelled = np.array(sorted(self.labels), dtype=np.int64)
            skipped = len(self.store.skipped)
        left = len(self.names) - len(labelled)
        if left:
            order = suggest_in(
                self._space,
                min(left, AHEAD + skipped),
                labelled=labelled,
                probabilities=None if found is None else found.probabilities,
                num_classes=max(2, len(self.store.classes)),
            )
            self._order = [one.index for one in order]

    def _brief(self, node: int, labels: dict[int, str], found: Fitted | None) -> dict[str, Any]:
        guess = None if found is None or node in labels else self._guess(node, found)
        best = None if guess is None else guess[0]
        return {"index": node, "name": self.names[node], "label": labels.get(node), "guess": best}

    def _guess(self, node: int, found: Fitted | None) -> list[dict[str, Any]] | None:
        """The three most probable classes."""
        if found is None:
            return None
        shares = found.probabilities[node]
        return [{"class": found.classes[one], "probability": float(shares[one])} for one in np.argsort(-shares)[:3]]

    def _because(self, node: int, found: Fitted | None, labels: dict[int, str]) -> list[dict[str, Any]]:
        if found is None or found.evidence is None:
            return []
        pairs = zip(found.evidence.nodes[node].tolist(), found.evidence.shares[node].tolist(), strict=True)
        return [
            {"index": one, "name": self.names[one], "label": labels.get(one), "share": percent(share)}
            for one, share in pairs
            if one >= 0
        ]

    def _reason(self, node: int, labels: dict[int, str], found: Fitted | None) -> str:
        """How many nodes it stands for that no labelled node is nearer to, and how many of them the model knows."""
        if node in labels:
            return ""
        stands = self._z @ self._z[node] >= self._covered(labels)
        stands[[node, *labels]] = [True, *[False] * len(labels)]
        count = int(stands.sum())
        text = f"It stands for {count} node{'s' * (count != 1)} that no labelled node is nearer to"
        if found is None:
            return f"{text}."
        unsure = int((found.probabilities[stands].max(axis=1) < UNSURE).sum())
        return f"{text}; the model is unsure of {unsure} of them."

    def _covered(self, labels: dict[int, str]) -> NDArray[np.float32]:
        """How similar the most similar labelled node is to each node; kept, as labels come in one by one."""
        new = labels.keys() - self._counted
        if self._counted - labels.keys():
            new, self._nearest = set(labels), np.full(len(self.names), -np.inf, dtype=np.float32)
        for node in new:
            np.maximum(self._nearest, self._z @ self._z[node], out=self._nearest)
        self._counted = set(labels)
        return self._nearest


def _places(z: NDArray[np.float32]) -> NDArray[np.float64]:
    """Places in the plane from 0 to 1: by rank along the two directions in which the nodes differ most."""
    centred = z.astype(np.float64) - z.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    found = centred @ directions[:, ::-1][:, :2]
    if found.shape[1] < 2:
        found = np.column_stack([found, np.zeros((len(z), 2 - found.shape[1]))])
    ranks = found.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    return np.asarray(ranks / max(1, len(z) - 1))
