"""Measure what docs/data.md says of speed: loading the paper's graphs, and converting a large list of edges.

Run: python tools/time_data.py [--edges 10000000]
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from cagat.data import load
from cagat.errors import DatasetError


def seconds_to_load(name: str) -> str:
    """Return the time of the first load after import, or why there is none."""
    load("cora")  # Imports what loading imports on first use.
    started = time.perf_counter()
    try:
        load(name)
    except DatasetError as error:
        return str(error)
    return f"{time.perf_counter() - started:.3f} s"


def write_tables(folder: Path, edges: int) -> None:
    """Write edges among a tenth as many nodes with long numbers for names, and eight features and a label a node."""
    random = np.random.default_rng(0)
    names = np.arange(edges // 10) + 5_000_000_000
    ends = {end: random.choice(names, edges) for end in ("source", "target")}
    columns = {f"f{column}": random.random(len(names), dtype=np.float32).round(3) for column in range(8)}
    pyarrow.csv.write_csv(pa.table(ends), folder / "edges.csv")
    pyarrow.csv.write_csv(pa.table({"node": names, **columns}), folder / "features.csv")
    pyarrow.csv.write_csv(pa.table({"node": names, "label": names % 8}), folder / "labels.csv")


def time_convert(edges: int) -> str:
    """Return time and peak memory of `cagat data convert`, run as a user would."""
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), edges)
        tables = [f"--{table}={folder}/{table}.csv" for table in ("edges", "features", "labels")]
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "cagat", "data", "convert", *tables, f"{folder}/out.npz"], check=True)
        elapsed = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return f"{elapsed:.1f} s, {peak:.1f} GiB at its peak"


def main() -> None:
    """Print one line a measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=10_000_000, help="how many edges to convert")
    arguments = parser.parse_args()
    for name in ("cora", "pubmed"):
        print(f"load {name}: {seconds_to_load(name)}")
    print(f"convert {arguments.edges} edges: {time_convert(arguments.edges)}")


if __name__ == "__main__":
    main()
