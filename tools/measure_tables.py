"""How long a large graph with a table of mixed columns takes to load and encode, and how much memory.

Run: python tools/measure_tables.py > benchmarks/results/tables.json

100,000 rows with numbers, categories, dates, booleans and two columns of texts, and a million edges, in CSV files.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS, EDGES = 100_000, 1_000_000


def write_tables(folder: Path) -> None:
    """Write edges.csv, nodes.csv and target.csv."""
    import numpy as np
    import pandas as pd

    random = np.random.RandomState(0)
    words = np.array(
        [f"{one}{two}{three}" for one in "bcdfg" for two in ("ar", "el", "ino") for three in ("st", "m", "lo")]
    )
    names = [f"n{number}" for number in range(ROWS)]
    nodes = pd.DataFrame(
        {
            "id": names,
            "age": np.where(random.rand(ROWS) < 0.1, np.nan, random.randint(18, 90, ROWS)),
            "income": random.lognormal(8, 1, ROWS).round(2),
            "score": random.randn(ROWS).round(4),
            "country": random.choice([f"c{number}" for number in range(37)], ROWS),
            "city": random.choice([f"{one} {two}" for one in words for two in words], ROWS),
            "joined": pd.Timestamp("2015-01-01") + pd.to_timedelta(random.randint(0, 3000, ROWS), unit="D"),
            "active": random.choice(["true", "false"], ROWS),
            "bio": [" ".join(row) for row in words[random.randint(0, len(words), (ROWS, 12))]],
        }
    )
    nodes.to_csv(folder / "nodes.csv", index=False)
    ends = random.randint(0, ROWS, (EDGES, 2))
    pd.DataFrame({"id_1": np.array(names)[ends[:, 0]], "id_2": np.array(names)[ends[:, 1]]}).to_csv(
        folder / "edges.csv", index=False
    )
    pd.DataFrame({"id": names, "target": random.randint(0, 5, ROWS)}).to_csv(folder / "target.csv", index=False)


def measure(folder: Path) -> dict[str, object]:
    """Load the graph, in a process that does nothing else."""
    started = time.perf_counter()
    from cagat import data

    imported = time.perf_counter()
    graph = data.load(folder, sparse=True)
    loaded = time.perf_counter()
    content = graph.encoder.to_bytes()
    stored = time.perf_counter()
    return {
        "rows": ROWS,
        "edges": EDGES,
        "features": graph.x.shape[1],
        "import_seconds": round(imported - started, 1),
        "load_seconds": round(loaded - imported, 1),
        "store_seconds": round(stored - loaded, 1),
        "encoder_bytes": len(content),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "cores": os.cpu_count(),
        "columns": graph.encoder.describe(),
    }


def main() -> None:
    """Write the tables, and measure in a process of its own."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(Path(sys.argv[1])), indent=1))
        return
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder))
        subprocess.run([sys.executable, __file__, folder], check=True)


if __name__ == "__main__":
    main()
