"""Measure graphs in parts: cutting, training out of core and by processes, predicting; memory and seconds of each.

    python tools/measure_parts.py --nodes 1000000 --edges 10000000 --parts 8
    python tools/measure_parts.py --nodes 10000000 --edges 100000000 --parts 16 --heads 1 --processes --work DIR
    python tools/measure_parts.py --cuts

writes benchmarks/results/parts.json, one entry for each size, with a log beside it, and the edges that either method
cuts (which looks for PubMed in CAGAT_DATA). Memory is what Linux tells of a process: `anonymous` is what only this
process has, `peak` also holds what lies in files that are mapped, which the system may take back. `disk` is by how
much less of it was free while a step ran.
"""

import argparse
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GRAPHS = ("cora", "pubmed", "synthetic:nodes=20000,degree=10,classes=8,features=64,seed=0")
RESULTS = ROOT / "benchmarks" / "results" / "parts.json"
_OPENING = """
import json, sys, time
from pathlib import Path
import torch
from cagat.distributed import World
from cagat.memory import peak_memory
from cagat.parts import open_parts
import cagat.training
before, started = peak_memory(), time.perf_counter()
parts = open_parts(Path(sys.argv[1]), World(int(sys.argv[2]), int(sys.argv[3])))
graph = parts.graph("row", torch.float32)
halo = graph.halo.nodes.numel()
seconds = time.perf_counter() - started
print(json.dumps({"seconds": seconds, "nothing_bytes": before, "halo": halo, "nodes": graph.num_nodes}))
"""


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 2, 4], help="numbers of processes to compare")
    parser.add_argument("--work", type=Path, help="where files are put (default: a temporary directory)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--cuts", action="store_true", help="only cut published graphs, by either method")
    given = parser.parse_args()
    if given.cuts:
        with tempfile.TemporaryDirectory() as work:
            _write(given.out, "cuts", [_cut(name, parts, Path(work)) for name in GRAPHS for parts in (2, 8)])
    elif given.work is None:
        with tempfile.TemporaryDirectory() as work:
            _measure(given, Path(work))
    else:
        given.work.mkdir(parents=True, exist_ok=True)
        _measure(given, given.work)


def _measure(given: argparse.Namespace, work: Path) -> None:
    tables, parts = work / "tables", work / "parts"
    log = given.out.with_name(f"{given.out.stem}_{given.nodes}.log")
    log.unlink(missing_ok=True)
    found: dict[str, Any] = {
        key: value for key, value in vars(given).items() if key not in ("work", "processes", "cuts", "out")
    }
    found |= {"cores": os.cpu_count(), "measured": time.strftime("%Y-%m-%d"), "load_before": os.getloadavg()[0]}
    words = (ROOT / "tools" / "large_graph.py", tables, "--nodes", given.nodes, "--edges", given.edges)
    found["tables"] = _measured(words, work, log)[0]
    cut = ("data", "partition", tables, parts, "--parts", given.parts, "--method", "stream", "--json")
    found["partition"] = _cagat(*cut, work=work, log=log)
    settings = ("--rounds", given.rounds, "--steps", given.steps, "--heads", given.heads, "--epochs", given.epochs)
    train = ("train", "--dataset", parts, *settings, "--json")
    run = work / "out_of_core"
    found["out_of_core"] = _cagat(*train, "--out-of-core", "--out", run, work=work, log=log)
    predict = ("predict", run, "--out-of-core", "--out", work / "predictions.parquet")
    found["predict"] = _cagat(*predict, work=work, log=log)
    found["processes"] = {}
    for size in given.processes:
        run = work / f"processes_{size}"
        launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", size, "-m", "cagat")
        _python(*launch, *train, "--parallel", "graph", "--out", run, environment={"OMP_NUM_THREADS": "1"})
        ranks = json.loads((run / "parallel.json").read_text())["ranks"]
        result = json.loads((run / "result.json").read_text())
        opening = [_opening(parts, rank, size) for rank in range(size)]
        found["processes"][size] = {"ranks": ranks, "opening": opening, "seconds": result["seconds"]}
        found["processes"][size]["val_loss"] = result["val_loss"]
    _write(given.out, f"{given.nodes} nodes", found)


def _cut(name: str, parts: int, work: Path) -> dict[str, Any]:
    """The share of edges that each method cuts."""
    shares = {}
    for method in ("metis", "stream"):
        out = work / f"{name.partition(':')[0]}-{parts}-{method}"
        words = ("data", "partition", name, out, "--parts", parts, "--method", method, "--json")
        cut = _cagat(*words, work=work, log=work / "log")
        shares[method] = cut["result"]["cut"]
    return {"graph": name, "parts": parts, **shares}


def _write(out: Path, key: str, found: Any) -> None:
    known = json.loads(out.read_text()) if out.exists() else {}
    out.write_text(json.dumps({**known, key: found}, indent=1) + "\n")


def _opening(parts: Path, rank: int, size: int) -> dict[str, float]:
    """What it takes to open the parts of one process, and what a process has before it opens any."""
    words = [sys.executable, "-c", _OPENING, str(parts), str(rank), str(size)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    opened: dict[str, float] = json.loads(done.stdout)
    return opened


def _python(*words: object, environment: dict[str, str] | None = None) -> None:
    subprocess.run([sys.executable, *map(str, words)], check=True, env=os.environ | (environment or {}))


def _cagat(*words: object, work: Path, log: Path) -> dict[str, Any]:
    """Run a command, and read the JSON that it prints."""
    measured, text = _measured(("-m", "cagat", *words), work, log)
    lines = text.splitlines()
    result = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    return {**measured, "result": {key: value for key, value in result.items() if key not in ("run_dir", "dataset")}}


def _measured(words: Sequence[object], work: Path, log: Path) -> tuple[dict[str, Any], str]:
    """Run Python, look at its memory and the disk every tenth of a second, and log what it says."""
    command = [sys.executable, *map(str, words)]
    started, cpu, peak, anonymous, disk = time.perf_counter(), _cpu_seconds(), 0, 0, 0
    free = shutil.disk_usage(work).free
    with tempfile.TemporaryFile("w+") as said, log.open("a") as told:
        told.write(f"{time.strftime('%H:%M:%S')} {shlex.join(['python', *command[1:]]).replace(str(work), 'WORK')}\n")
        told.flush()
        process = subprocess.Popen(command, stdout=said, stderr=told)
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            sizes = {line.partition(":")[0]: line.split()[1] for line in status.splitlines() if line.startswith(_SIZES)}
            peak = max(peak, 1024 * int(sizes.get("VmRSS", 0)))
            anonymous = max(anonymous, 1024 * int(sizes.get("RssAnon", 0)))
            disk = max(disk, free - shutil.disk_usage(work).free)
            time.sleep(0.1)
        said.seek(0)
        text = said.read()
        found = {
            "seconds": round(time.perf_counter() - started, 1),
            "cpu_seconds": round(_cpu_seconds() - cpu, 1),
            "peak_bytes": peak,
            "anonymous_bytes": anonymous,
            "disk_bytes": disk,
        }
        told.write(f"{text.replace(str(work), 'WORK')}{time.strftime('%H:%M:%S')} {json.dumps(found)}\n")
    if process.returncode:
        raise SystemExit(f"{shlex.join(command)}: ended with {process.returncode}, see {log}")
    return found, text


def _cpu_seconds() -> float:
    """What all processes took that have been started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


_SIZES = ("VmRSS", "RssAnon")

if __name__ == "__main__":
    main()
