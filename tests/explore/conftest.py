"""A small trained run on a graph whose names are written to do harm."""

from pathlib import Path

import numpy as np
import pytest

from cagat.training import Run, TrainConfig, TrainedRun

CLASSES = ("<b>bold</b>", "a & b", '"></script><script>window.harmed = 1</script>')
NODES = 60


def node_name(number: int) -> str:
    return f"<i>{number}</i>" if number % 7 == 0 else f"node {number}"


def write_graph(folder: Path) -> Path:
    random = np.random.default_rng(0)
    folder.mkdir()
    classes = np.arange(NODES) % 3
    edges = {(number, (number + 3) % NODES) for number in range(NODES)}
    edges |= {tuple(random.integers(0, NODES, 2)) for _ in range(40)}
    lines = [f"{node_name(one)},{node_name(other)}" for one, other in sorted(edges) if one != other]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]) + "\n")
    x = random.normal(size=(NODES, 5)) + np.eye(3, 5)[classes]
    rows = [",".join([node_name(number), *(f"{value:.3f}" for value in x[number])]) for number in range(NODES)]
    (folder / "features.csv").write_text("\n".join(["node,a,b,c,d,e", *rows]) + "\n")
    names = ['"' + name.replace('"', '""') + '"' for name in CLASSES]
    labels = [f"{node_name(number)},{names[classes[number]]}" for number in range(NODES)]
    # Some nodes have no label.
    (folder / "labels.csv").write_text("\n".join(["node,label", *labels[:-3]]) + "\n")
    return folder


def trained(folder: Path, graph: Path, **changes) -> TrainedRun:
    values = {
        "dataset": str(graph),
        "labels": 5,
        "val_labels": 3,
        "epochs": 5,
        "threads": 1,
        "baselines": False,
    } | changes
    values = {key: value for key, value in values.items() if value is not None}
    Run.start(TrainConfig.from_values(values), folder).train()
    return TrainedRun(folder)


@pytest.fixture(scope="session")
def train():
    return trained


@pytest.fixture(scope="session")
def graph_folder(tmp_path_factory) -> Path:
    return write_graph(tmp_path_factory.mktemp("graph") / "graph")


@pytest.fixture(scope="session")
def run(tmp_path_factory, graph_folder) -> TrainedRun:
    """CaGAT with a strong affinity, so that the rounds differ."""
    return trained(
        tmp_path_factory.mktemp("runs") / "cagat",
        graph_folder,
        hidden=4,
        heads=3,
        rounds=2,
        steps=2,
        xi=0.05,
        propagation="all",
        feature_norm="none",
    )


@pytest.fixture(scope="session")
def gat_run(tmp_path_factory, graph_folder) -> TrainedRun:
    return trained(tmp_path_factory.mktemp("runs") / "gat", graph_folder, model="gat", hidden=4, heads=2)


@pytest.fixture(scope="session")
def gcn_run(tmp_path_factory, graph_folder) -> TrainedRun:
    return trained(tmp_path_factory.mktemp("runs") / "gcn", graph_folder, model="gcn", hidden=4)
