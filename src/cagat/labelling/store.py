"""Labels on disk: each one is there before anybody is told so, and `kill -9` at any moment loses none.

Two files lie side by side. The journal, `labels.csv.journal`, gets a line for each thing that was done, which is on the
disk before `labels.csv`, the file that `cagat train` reads, is replaced by a new one. A line names the digest of
`labels.csv` before it, so that after a crash one knows which lines that file lacks. If `labels.csv` was edited by hand,
no line fits and the file is right.
"""

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import filelock

from cagat.data.table_files import read_table
from cagat.data.tables import MISSING
from cagat.errors import CagatError
from cagat.files import atomic_write, disk_errors, read_bounded, remove_leftovers

LONGEST_NAME = 200
"""Characters that the name of a class may have."""

_LARGEST_JOURNAL = 500_000_000


class LabelError(CagatError, ValueError):
    """A label, a class or a file of labels cannot be used."""


class Entry(NamedTuple):
    """Something that was done: `label` a node, `skip` one, or name a `class`; and what the node's label was before.

    `undo` undoes the last of these; a class that was `known` from the start is not undone.
    """

    do: str
    node: str = ""
    label: str = ""
    was: str | None = None


class LabelStore:
    """The labels of a graph's nodes, by their names, in a file of two columns.

    Args:
        path: The file, a CSV; if it is missing, it is made with the first label.
        given: Labels that the graph has already. Those in the file win.
        classes: Classes that are known before any node has them.
        nodes: What nodes are called; others in the file are an error.

    Attributes:
        read_only: Why nothing can be written, if another process has the file.

    Raises:
        LabelError: The file has further columns, which would be lost, or nodes that the graph does not have.
    """

    def __init__(
        self,
        path: Path,
        given: Mapping[str, str] | None = None,
        classes: Iterable[str] = (),
        nodes: Iterable[str] | None = None,
    ) -> None:
        if path.suffix != ".csv":
            raise LabelError(f"{path}: labels are written to a file that ends in .csv. Rename it.")
        self.path, self._journal = path, path.with_name(f"{path.name}.journal")
        self.read_only = ""
        self._lock = filelock.FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire()
            except filelock.Timeout:
                self.read_only = (
                    f"Another process is labelling into {path.name}. This one shows the labels that were there when it "
                    "started, and takes none."
                )
        try:
            self._read(given or {}, classes, nodes)
        except BaseException:
            self.close()
            raise

    def _read(self, given: Mapping[str, str], classes: Iterable[str], nodes: Iterable[str] | None) -> None:
        self._header, self._rows = ("node", "label"), {node: label for node, label in given.items() if label}
        if self.path.exists():
            self._header, rows = _read_labels(self.path)
            self._rows |= rows
        if nodes is not None and (strange := self._rows.keys() - set(nodes)):
            raise LabelError(
                f"{self.path}: the graph has no node {min(strange)!r:.80}"
                f"{f' and {len(strange) - 1} others' * (len(strange) > 1)}. These labels are of another graph; give "
                "another file with --labels."
            )
        self.classes = list(dict.fromkeys(checked_class(name) for name in classes))
        self.skipped: dict[str, None] = {}
        self._done: list[Entry] = []
        self._kept: set[str] = set()  # Classes that the journal knows.
        if not self.read_only:
            remove_leftovers(self.path)
        lines = self._journal_lines()
        digest = _digest(self.path)
        # The first line that was written when the file was as it is now: what follows may not be in the file.
        first = next((number for number, line in enumerate(lines) if line["file"] == digest), len(lines))
        for number, line in enumerate(lines):
            self._apply(line, labels=number >= first)
        for label in self._rows.values():
            if label not in MISSING and label not in self.classes:
                self.classes.append(label)
        if first < len(lines) and not self.read_only:
            self._write()

    def _journal_lines(self) -> list[dict[str, Any]]:
        """The lines of the journal; one that was not written to its end is removed."""
        if not self._journal.exists():
            return []
        with disk_errors(self._journal):
            content = read_bounded(self._journal, _LARGEST_JOURNAL)
            whole = content[: content.rfind(b"\n") + 1]
            if len(whole) < len(content) and not self.read_only:
                with self._journal.open("r+b") as stream:
                    stream.truncate(len(whole))
        try:
            lines = [json.loads(line) for line in whole.splitlines()]
            for line in lines:
                Entry(line["do"], line["node"], line["label"], line["was"])
                line["file"]
        except (ValueError, KeyError, TypeError) as error:
            raise LabelError(
                f"{self._journal}: is damaged. What is in {self.path.name} is whole: move the journal away to go on "
                "with that."
            ) from error
        return lines

    @property
    def labels(self) -> dict[str, str]:
        """The label of each node that has one."""
        return {node: label for node, label in self._rows.items() if label not in MISSING}

    def numbered(self, names: Sequence[str]) -> dict[int, str]:
        """The labels by the places of their nodes among all names."""
        labels = self.labels
        return {number: labels[name] for number, name in enumerate(names) if name in labels}

    def label(self, node: str, label: str) -> None:
        """Give a node a label; its class must be there. On return it is on the disk, as with all that follows."""
        if label not in self.classes:
            raise LabelError(f"There is no class {label!r:.80}. Add it first.")
        self._do(Entry("label", node, label, self._rows.get(node)))

    def skip(self, node: str) -> None:
        """Suggest a node no more."""
        if node not in self.skipped:
            self._do(Entry("skip", node))

    def add_class(self, name: str) -> str:
        """Add a class; its name as it is kept."""
        name = checked_class(name)
        if name in self.classes:
            raise LabelError(f"There is a class {name!r} already.")
        self._do(Entry("class", label=name))
        return name

    def undo(self) -> Entry | None:
        """Undo what was done last and is not undone, also before a restart; what it was, if there was anything."""
        if not self._done:
            return None
        last = self._done[-1]
        self._do(Entry("undo", last.node, last.label))
        return last

    def close(self) -> None:
        """Let others write."""
        if self._lock.is_locked:
            self._lock.release()

    def _do(self, entry: Entry) -> None:
        if self.read_only:
            raise LabelError(self.read_only)
        digest = _digest(self.path)
        new = [Entry("known", label=name) for name in self.classes if name not in self._kept]
        lines = [{**one._asdict(), "file": digest} for one in (*new, entry)]
        with disk_errors(self._journal), self._journal.open("ab") as stream:
            stream.write("".join(json.dumps(line) + "\n" for line in lines).encode())
            stream.flush()
            os.fsync(stream.fileno())
        for line in lines:
            self._apply(line, labels=True)
        self._write()

    def _apply(self, line: Mapping[str, Any], *, labels: bool) -> None:
        """Do what a line says; unless `labels`, the file knows what became of labels."""
        entry = Entry(line["do"], line["node"], line["label"], line["was"])
        if entry.do == "undo":
            self._undo(labels=labels)
            return
        if entry.do in ("known", "class"):
            self._kept.add(entry.label)
            if entry.label not in self.classes:
                self.classes.append(entry.label)
            if entry.do == "known":
                return
        self._done.append(entry)
        if entry.do == "skip":
            self.skipped[entry.node] = None
        elif entry.do == "label" and labels:
            self._rows[entry.node] = entry.label

    def _undo(self, *, labels: bool) -> None:
        entry = self._done.pop()
        if entry.do == "skip":
            self.skipped.pop(entry.node, None)
        elif entry.do == "class":
            # A class that nodes have by now stays.
            if entry.label in self.classes and entry.label not in self._rows.values():
                self.classes.remove(entry.label)
                self._kept.discard(entry.label)
        elif labels and self._rows.get(entry.node) == entry.label:
            if entry.was is None:
                del self._rows[entry.node]
            else:
                self._rows[entry.node] = entry.was

    def _write(self) -> None:
        if not self._rows and not self.path.exists():
            return
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self._header)
        writer.writerows(self._rows.items())
        atomic_write(self.path, text.getvalue())


def checked_class(name: str) -> str:
    """The name of a class without spaces around it, if a table of labels can hold it."""
    name = name.strip()
    if name in MISSING or len(name) > LONGEST_NAME or not name.isprintable():
        raise LabelError(
            f"{name!r:.80} cannot be the name of a class: take 1 to {LONGEST_NAME} characters that can be seen, and "
            f"not {', '.join(sorted(filter(None, MISSING)))}, which mean that there is no label."
        )
    return name


def _read_labels(path: Path) -> tuple[tuple[str, str], dict[str, str]]:
    """The names of the two columns, and the label of each node; rows without one have an empty text."""
    table = read_table(path, "labels")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        header = [cell.strip() for cell in next(csv.reader(stream))]
    if len(header) != 2:
        raise LabelError(
            f"{path}: has the columns {', '.join(header)[:80]}, and only those of node and label would be kept. Give "
            "another file with --labels."
        )
    (nodes, rows), (names, codes) = table.codes(0), table.codes(1, may_be_missing=True)
    found = [names[code] if code >= 0 else "" for code in codes]
    node, label = table.columns.names
    return (node, label), dict(zip([nodes[row] for row in rows], found, strict=True))


def _digest(path: Path) -> str:
    """Of the content of the file; of none, an empty text."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
