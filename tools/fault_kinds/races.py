"""Two at work in one place, and downloads that break off."""

import hashlib
import http.server
import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cagat.errors import DatasetError
from cagat.experiments.jobs import Job, JobStore
from cagat.experiments.task import Task
from fault_kinds.fault import Fault, Outcome
from fault_kinds.forked import Forked, command
from fault_kinds.kills import digests

_GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
_TRAINING = ("train", "--dataset", _GRAPH, "--labels", "5", "--val-labels", "5", "--epochs", "50", "--threads", "1")
_CONTENT = bytes(range(256)) * 4000


def races(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Try two trainings, two workers and a broken download in turn."""
    kinds = (_two_trainings, _two_workers, _broken_download)
    alone = command(*_TRAINING, "--out", "alone", folder=folder).wait(300)
    if alone.code != 0:
        yield Outcome("a training alone", f"exit code {alone.code}: {alone.err}")
        return
    for number in range(tries):
        home = folder / str(number)
        home.mkdir()
        kind = kinds[number % len(kinds)]
        yield Outcome(kind.__name__.strip("_").replace("_", " "), kind(home, draw))


def _two_trainings(home: Path, draw: random.Random) -> str:
    both = [command(*_TRAINING, "--out", "run", folder=home) for _ in range(2)]
    ended = sorted((process.wait(300) for process in both), key=lambda one: one.code or 0)
    if [one.code for one in ended] != [0, 1]:
        return f"exit codes {[one.code for one in ended]}: {ended[-1].err}"
    loser = ended[1].err
    if "another process is at work" not in loser and "holds a run already" not in loser:
        return f"the other was not told: {loser}"
    after = command("evaluate", "run", "--json", folder=home).wait(300)
    if after.code != 0:
        return f"the run is corrupted: {after.err}"
    return "" if digests(home / "run") == digests(home.parent / "alone") else "the run is not that of one alone"


def _two_workers(home: Path, draw: random.Random) -> str:
    job = Job("mlp", "ref", Task(_GRAPH, 5, draw.randrange(100)))
    both = [Forked(_work, job, folder=home) for _ in range(2)]
    ended = [process.wait(300) for process in both]
    if any(one.code != 0 for one in ended):
        return f"exit codes {[one.code for one in ended]}: {ended[0].err}{ended[1].err}"
    lines = (home / "race.jsonl").read_text().splitlines()
    done = sum(one.out.count("did it") for one in ended)
    whole = len(lines) == 1 and "test_accuracy" in json.loads(lines[0])["found"]
    return "" if whole and done == 1 else f"{len(lines)} records, done by {done}"


def _work(job: Job) -> None:
    store = JobStore(Path(), "race")
    ran = []
    run = Job.run
    Job.run = lambda self, data_dir: ran.append(self) or run(self, data_dir)  # type: ignore[method-assign]
    store.work([job], None)
    print("did it" * len(ran))


def _broken_download(home: Path, draw: random.Random) -> str:
    from cagat.data.download import download

    target, sha256 = home / "file", hashlib.sha256(_CONTENT).hexdigest()
    with _server(draw.randrange(len(_CONTENT))) as address:
        try:
            download(f"{address}/cut", target, sha256, lambda *told: None)
        except DatasetError as error:
            left = [path.name for path in home.iterdir()]
            if left:
                return f"left behind: {left} ({error})"
        else:
            return "a cut download was taken for a whole one"
        download(f"{address}/whole", target, sha256, lambda *told: None)
    return "" if target.read_bytes() == _CONTENT else "the second download is not the file"


@contextmanager
def _server(length: int) -> Iterator[str]:
    """A server on this machine that promises a whole file and sends so many bytes of it, unless asked for /whole."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(_CONTENT)))
            self.end_headers()
            self.wfile.write(_CONTENT if self.path == "/whole" else _CONTENT[:length])

        def log_message(self, *told: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


RACES = Fault(
    "races",
    "two trainings into one run directory; two job-store workers on one job; interrupted downloads",
    "one wins, the other is told; nothing corrupted",
    tries=20,
    quick=3,
    run=races,
)
