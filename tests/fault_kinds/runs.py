"""Runs that are killed, have no disk, share a directory with others, or are done again."""

import hashlib
import http.server
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import psutil

from cagat.data.published import download
from cagat.errors import DamagedFileError, DatasetError
from cagat.experiments.jobs import Job, JobStore, Task
from cagat.safetensors_file import read_tensors
from cagat.training.run_directory import RunDirectory
from fault_kinds.fault import Fault, Outcome
from fault_kinds.processes import Ended, Forked, command

_COMPARED = ("model.safetensors", "metrics.jsonl", "predictions.csv")
_MOST_KILLS_OF_A_RUN = 6
_MOST_SECONDS = 120.0
_ENDLESS = ("train", "--dataset", "cora", "--threads", "1", "--epochs", "1000000", "--patience", "1000000")
_GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
_SHORT = ("train", "--dataset", _GRAPH, "--labels", "5", "--val-labels", "5", "--epochs", "50", "--threads", "1")
_CONTENT = bytes(range(256)) * 4000
_THREADS = (1, 2, 4)


def _digests(run: Path) -> dict[str, str]:
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in _COMPARED}


def killed_runs(kills: int, draw: random.Random, folder: Path, epochs: int = 60) -> Iterator[Outcome]:
    """Kill trainings on Cora so many times in all; one outcome per kill, when the run that it hit has ended."""
    training = ["train", "--dataset", "cora", "--threads", "1", "--epochs", str(epochs)]
    for name in ("warm-up", "unbroken"):
        started = time.monotonic()
        ended = command(*training, "--out", name, folder=folder).wait()
        if ended.code != 0:
            yield Outcome("the unbroken run", f"exit code {ended.code}: {ended.err}")
            return
    length, wanted, done, runs = time.monotonic() - started, _digests(folder / "unbroken"), 0, 0
    while done < kills:
        runs += 1
        run, ways = folder / f"run-{runs}", []
        while True:
            # A run that was killed before it had a configuration left nothing to resume, and starts again.
            begun = ["train", "--resume", run.name] if (run / "config.yaml").exists() else None
            process = command(*(begun or [*training, "--out", run.name]), folder=folder)
            may_kill = done + len(ways) < kills and len(ways) < _MOST_KILLS_OF_A_RUN
            how = _killed(process, run, draw.uniform(0, 0.8 * length), draw.random() < 0.5) if may_kill else None
            if how is None:
                break
            ways.append(how)
        ended = process.wait()
        same = ended.code == 0 and _digests(run) == wanted
        for way in ways:
            yield Outcome(f"killed {way}", "" if same else f"run {runs} is not the unbroken one: {ended.err}")
        done += len(ways)


def _killed(process: Forked, run: Path, seconds: float, in_a_save: bool) -> str | None:
    """Kill a training after some seconds, or at the next save after them; how, or nothing if it ended before."""
    deadline = time.monotonic() + seconds
    while process.process.exitcode is None:
        saving = any(run.glob(".checkpoint*.part"))
        if time.monotonic() > deadline and (saving or not in_a_save):
            process.kill()
            process.wait()
            return "in a save" if saving else "between saves"
        time.sleep(0.0005)
    return None


def refused_saves(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Let a training run until it has a checkpoint, take the disk away, and see how it ends."""
    for number in range(tries):
        home = folder / f"home-{number}"
        home.mkdir()
        run, is_full = RunDirectory(home / "run"), number % 2 == 0
        process = command(*_ENDLESS, "--out", "run", folder=home, obeys=True)
        what, deadline = "disk full" if is_full else "permission denied", time.monotonic() + _MOST_SECONDS
        while process.process.exitcode is None and time.monotonic() < deadline and not run.checkpoint.exists():
            time.sleep(0.01)
        if not run.checkpoint.exists():
            yield Outcome(what, f"no checkpoint came: {process.wait(0).err}")
            continue
        time.sleep(draw.uniform(0, 3))
        if is_full:
            # No file may be written beyond this size: the system says EFBIG, as a full disk says ENOSPC.
            psutil.Process(process.process.pid).rlimit(psutil.RLIMIT_FSIZE, (draw.randrange(1, 100_000), -1))
        else:
            run.path.chmod(0o555)
        ended = process.wait(_MOST_SECONDS)
        run.path.chmod(0o755)
        yield Outcome(what, _wrong_end(run, ended))


def _wrong_end(run: RunDirectory, ended: Ended) -> str:
    if ended.code in (0, None) or ended.traceback or "cannot be written" not in ended.err:
        return f"exit code {ended.code}: {ended.err}"
    try:
        done = len(read_tensors(run.checkpoint)[0]["history"])
    except DamagedFileError as error:
        return f"the checkpoint is lost: {error}"
    if left := [path.name for path in run.path.glob(".*.part")]:
        return f"left behind: {left}"
    # Now that there is room, the run goes on from its checkpoint.
    folder = run.path.parent
    resumed = command("train", "--resume", "run", "--epochs", str(done + 2), folder=folder).wait(_MOST_SECONDS)
    epochs = len(run.metrics.read_text().splitlines())
    return "" if resumed.code == 0 and epochs == done + 2 else f"the run does not go on: {epochs} epochs, {resumed.err}"


def races(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Try two trainings, two workers and a broken download in turn."""
    kinds = (_two_trainings, _two_workers, _broken_download)
    alone = command(*_SHORT, "--out", "alone", folder=folder).wait(_MOST_SECONDS)
    if alone.code != 0:
        yield Outcome("a training alone", f"exit code {alone.code}: {alone.err}")
        return
    for number in range(tries):
        home, kind = folder / str(number), kinds[number % len(kinds)]
        home.mkdir()
        yield Outcome(kind.__name__.strip("_").replace("_", " "), kind(home, draw))


def _two_trainings(home: Path, draw: random.Random) -> str:
    both = [command(*_SHORT, "--out", "run", folder=home) for _ in range(2)]
    winner, loser = sorted((process.wait(_MOST_SECONDS) for process in both), key=lambda one: one.code or 0)
    said = any(words in loser.err for words in ("another process is at work", "already holds a run"))
    if (winner.code, loser.code) != (0, 1) or not said:
        return f"exit codes {winner.code} and {loser.code}: {loser.err}"
    after = command("evaluate", "run", "--json", folder=home).wait(_MOST_SECONDS)
    if after.code != 0:
        return f"the run is corrupted: {after.err}"
    return "" if _digests(home / "run") == _digests(home.parent / "alone") else "the run is not that of one alone"


def _two_workers(home: Path, draw: random.Random) -> str:
    job = Job("mlp", "ref", Task(_GRAPH, 5, draw.randrange(100)))
    ended = [process.wait(_MOST_SECONDS) for process in [Forked(_work, job, folder=home) for _ in range(2)]]
    lines, done = (home / "race.jsonl").read_text().splitlines(), sum(one.out.count("did it") for one in ended)
    whole = len(lines) == 1 and "test_accuracy" in json.loads(lines[0])["found"]
    return "" if whole and done == 1 else f"{len(lines)} records, done by {done}: {ended[0].err}{ended[1].err}"


def _work(job: Job) -> None:
    ran, run = [], Job.run
    Job.run = lambda self, data_dir: ran.append(self) or run(self, data_dir)  # type: ignore[method-assign]
    JobStore(Path(), "race").work([job], None)
    print("did it" * len(ran))


def _broken_download(home: Path, draw: random.Random) -> str:
    target, sha256 = home / "file", hashlib.sha256(_CONTENT).hexdigest()
    with _server(draw.randrange(len(_CONTENT))) as address:
        try:
            download(f"{address}/cut", target, sha256, lambda *told: None)
        except DatasetError as error:
            if left := [path.name for path in home.iterdir()]:
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


def trained_again(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Train on Cora, and again; half of the tries with other numbers of threads and `--deterministic`.

    Half of all are processes that are forked, and have the addresses and the hashes of the one they come from; the
    others are started anew, with hashes of their own.
    """
    known: dict[tuple[bool, int], str] = {}
    threads = cycle(_THREADS)
    for number in range(tries):
        deterministic, seed = number % 2 == 1, draw.randrange(2)
        options = ["--deterministic", "--threads", str(next(threads))] if deterministic else ["--threads", "2"]
        training = ["train", "--dataset", "cora", "--epochs", "5", "--seed", str(seed), *options]
        for again in range(1 if (deterministic, seed) in known else 2):
            out = f"run-{number}-{again}"
            if number % 4 < 2:
                whole = [sys.executable, "-m", "cagat", *training, "--out", out]
                environment = os.environ | {"PYTHONHASHSEED": str(number)}
                done = subprocess.run(whole, cwd=folder, env=environment, capture_output=True, text=True, check=False)
                code, said = done.returncode, done.stderr
            else:
                code, _, said = command(*training, "--out", out, folder=folder).wait()
            if code != 0:
                yield Outcome(" ".join(training), f"exit code {code}: {said}")
                return
            found = hashlib.sha256((folder / out / "model.safetensors").read_bytes()).hexdigest()
            wanted = known.setdefault((deterministic, seed), found)
        wrong = "" if found == wanted else f"sha256 {found}, but was {wanted}"
        yield Outcome(f"seed {seed}, {' '.join(options)}", wrong)


RUNS = (
    Fault(
        "kills",
        "SIGKILL at a random moment of a run on Cora, or in the next save of a checkpoint after it",
        "resumes to the sha256 of the unbroken run",
        tries=50,
        quick=4,
        run=killed_runs,
    ),
    Fault(
        "disk",
        "disk full (RLIMIT_FSIZE) and permission denied during a save",
        "the last checkpoint is intact and resumed from, the error is named, exit code not 0",
        tries=20,
        quick=2,
        run=refused_saves,
    ),
    Fault(
        "races",
        "two trainings into one run directory; two job-store workers on one job; interrupted downloads",
        "one does the work, the other exits with an error or leaves it alone; nothing is corrupted",
        tries=20,
        quick=3,
        run=races,
    ),
    Fault(
        "determinism",
        "same seed, other process; with --deterministic also another number of threads (1, 2, 4)",
        "identical sha256 of the weights",
        tries=12,
        quick=4,
        run=trained_again,
    ),
)
