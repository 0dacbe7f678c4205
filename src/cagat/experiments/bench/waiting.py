"""How long people wait for `cagat suggest` and for the page of `cagat label`, started as people start them."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cagat import data
from cagat.errors import CagatError
from cagat.experiments.bench.measurement import Measurement, amount_row

_LARGE = "synthetic:nodes=1000000,degree=10,classes=8,features=64,seed=0"

CLICKS = 20
"""Labels that are given in haste, while models are fitted."""

FITS = 5
"""Labels after each of which the model is waited for."""


def measure_suggestions() -> Iterator[Measurement]:
    """The whole command, with all that is imported: on PubMed, and on a million nodes."""
    for graph, name, most in (("pubmed", "pubmed", 10.0), (_LARGE, "1 million nodes, 10 million edges", 600.0)):
        seconds, memory = _suggest(graph)
        case = f"cagat suggest, 100 nodes, {name}"
        yield amount_row(case, _cores(), [1000 * seconds], seconds, "s", most)
    yield amount_row(f"{case}, peak memory", _cores(), [1000 * seconds], memory, "GiB", 12.0)


def _suggest(graph: str) -> tuple[float, float]:
    """Seconds and GiB that the command takes."""
    if not hasattr(os, "wait4"):
        raise CagatError("cagat suggest: this system does not say how much memory a process had.")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "cagat", "suggest", graph, "--budget", "100", "--out", f"{folder}/found.csv"]
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: S603
        assert process.stderr is not None
        said = process.stderr.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        seconds, process.returncode = time.perf_counter() - started, os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise CagatError(f"cagat suggest on {graph} ended with code {process.returncode}: {said.strip()[-500:]}")
    return seconds, used.ru_maxrss / 2**20


def measure_labelling(graph: str, next_ms: float, model_s: float) -> Iterator[Measurement]:
    """From a click to the next suggestion, and to the model that knows the label; the slowest of several.

    Args:
        graph: The graph; its own labels answer.
        next_ms: What the first should be at most, in milliseconds,
        model_s: and the second, in seconds.
    """
    with tempfile.TemporaryDirectory() as folder, Page(graph, Path(folder)) as page:
        models = [page.wait_for_model(page.label()[1]) for _ in range(FITS)]
        clicks = [page.label()[0] for _ in range(CLICKS)]
    case, cores = "cagat label, from a click to", _cores()
    worst = max(clicks)
    yield amount_row(f"{case} the next suggestion, slowest of {CLICKS}, {graph}", cores, clicks, worst, "ms", next_ms)
    worst = max(models) / 1000
    yield amount_row(f"{case} the refitted model, slowest of {FITS}, {graph}", cores, models, worst, "s", model_s)


class Page:
    """A `cagat label` that serves, and somebody who asks it as the page does."""

    def __init__(self, graph: str, folder: Path) -> None:
        self._graph, labels = data.load(graph, sparse=True), str(folder / "labels.csv")
        command = [sys.executable, "-m", "cagat", "label", graph, "--no-browser", "--labels", labels]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)  # noqa: S603

    def __enter__(self) -> "Page":
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        for line in self._process.stdout:
            if line.startswith("Page:"):
                self._address = line.split()[1]
                break
        else:
            raise CagatError(f"cagat label ended: {self._process.stderr.read().strip()[-500:]}")
        self._state = self._ask("state")
        for _ in range(2 * len(self._graph.class_names)):  # A model needs two classes, and the first fit compiles.
            self.label()
        self.wait_for_model(time.perf_counter())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def label(self) -> tuple[float, float]:
        """Label what is suggested: the milliseconds until the next suggestion is there, and when it was clicked."""
        node = self._state["suggested"]["index"]
        name = self._graph.class_names[int(self._graph.y[node])]
        clicked = time.perf_counter()
        self._state = self._ask("label", {"node": node, "label": name})["state"]
        taken = 1000 * (time.perf_counter() - clicked)
        if self._state["suggested"]["index"] == node:
            raise CagatError("cagat label suggests the same node again.")
        return taken, clicked

    def wait_for_model(self, clicked: float) -> float:
        """The milliseconds from a click to the model that knows all labels."""
        while (self._state["model"] or {}).get("labels") != self._state["labelled"]:
            time.sleep(0.02)
            self._state = self._ask("state")
        return 1000 * (time.perf_counter() - clicked)

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, sent, {"content-type": "application/json"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=600) as reply:  # noqa: S310  The address is our own server's.
            return json.load(reply)


def _cores() -> int:
    return os.cpu_count() or 1
