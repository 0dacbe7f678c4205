"""Make the tables of a synthetic graph of any size in blocks, so that the graph is never whole in memory.

    python tools/large_graph.py OUT --nodes 10000000 --edges 100000000

Nodes stand in communities of a thousand, whose classes are drawn; four of five edges stay within a community, and nodes
are numbered so that neighbours are not near each other. Features are normal noise around a mean of the class.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

_BLOCK = 2**20
_COMMUNITY = 1000
_WITHIN = 0.8


def main() -> None:
    """Make what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--classes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    _write_edges(given.out / "edges.parquet", given.nodes, given.edges, given.seed)
    _write_nodes(given.out, given.nodes, given.features, given.classes, given.seed)
    print(json.dumps({key: str(value) if isinstance(value, Path) else value for key, value in vars(given).items()}))


def _number(place: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The number of the node at a place; a step that shares no factor with the count reaches all."""
    step = round(nodes * 0.618)
    while np.gcd(step, nodes) != 1:
        step += 1
    return place * step % nodes


def _write_edges(path: Path, nodes: int, edges: int, seed: int) -> None:
    schema = pa.schema([("source", pa.int32()), ("target", pa.int32())])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for block, start in enumerate(range(0, edges, _BLOCK)):
            random = np.random.default_rng([seed, 1, block])
            count = min(_BLOCK, edges - start)
            source = random.integers(0, nodes, count)
            first = source - source % _COMMUNITY
            near = first + random.integers(0, _COMMUNITY, count) % np.minimum(_COMMUNITY, nodes - first)
            target = np.where(random.random(count) < _WITHIN, near, random.integers(0, nodes, count))
            ends = [_number(end, nodes).astype(np.int32) for end in (source, target)]
            writer.write_table(pa.table(ends, schema=schema))


def _write_nodes(out: Path, nodes: int, features: int, classes: int, seed: int) -> None:
    shared = np.random.default_rng([seed, 2])
    of_community = shared.integers(0, classes, -(-nodes // _COMMUNITY))
    means = shared.normal(0, 0.3, (classes, features)).astype(np.float32)
    columns = [("node", pa.int32()), *((f"x{number}", pa.float32()) for number in range(features))]
    labels_schema = pa.schema([("node", pa.int32()), ("label", pa.int32())])
    with (
        pyarrow.parquet.ParquetWriter(out / "features.parquet", pa.schema(columns)) as rows,
        pyarrow.parquet.ParquetWriter(out / "labels.parquet", labels_schema) as labels,
    ):
        for block, start in enumerate(range(0, nodes, _BLOCK)):
            random = np.random.default_rng([seed, 3, block])
            place = np.arange(start, min(start + _BLOCK, nodes))
            node, label = _number(place, nodes).astype(np.int32), of_community[place // _COMMUNITY]
            x = means[label] + random.normal(0, 1, (len(place), features)).astype(np.float32)
            rows.write_table(pa.table([node, *x.T], schema=pa.schema(columns)))
            labels.write_table(pa.table([node, label.astype(np.int32)], schema=labels_schema))


if __name__ == "__main__":
    main()
