from pathlib import Path

import numpy as np
import pytest
import torch
from tests.suggestions.two_stars import NOBODY, two_stars
from torch_geometric.data import Data

import cagat
from cagat import data
from cagat.errors import ConfigError, DatasetError
from cagat.suggestions import STRATEGIES, suggest, suggest_in, suggestions_table
from cagat.suggestions.node_space import NodeSpace
from cagat.training import Run, TrainConfig

GRAPH = "synthetic:nodes=120,degree=6,classes=3,features=16,seed=0"
OWN_GRAPH = Path(__file__).parents[2] / "examples" / "own-graph"


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("with_model", [False, True])
def test_the_contract(name, with_model):
    graph = data.load(GRAPH)
    space = NodeSpace(graph.x, graph.edge_index)
    labelled = np.arange(0, 120, 3)
    model = np.random.RandomState(0).dirichlet(np.ones(3), 120) if with_model else None
    asked = {"labelled": labelled, "strategy": name, "seed": 1, "probabilities": model, "num_classes": 3}
    found = suggest_in(space, 30, **asked)
    assert [one.rank for one in found] == list(range(1, 31))
    assert len({one.index for one in found}) == 30
    assert not set(labelled) & {one.index for one in found}
    assert all(one.reason and np.isfinite(one.score) for one in found)
    assert found == suggest_in(space, 30, **asked), "the same seed, the same choice"
    assert len(suggest_in(space, 80, **asked)) == 80, "all that are left"


def test_the_leaders_of_both_clubs_come_first():
    assert [one.node for one in cagat.suggest("karate", 2)] == ["33", "0"]


def test_a_published_graph_counts_as_one_without_labels_and_others_have_theirs():
    graph = data.load("karate")
    with pytest.raises(ConfigError, match="All 34 nodes have a label"):
        suggest(graph, 2)
    assert suggest(graph, 2, labelled=[]) == suggest("karate", 2)
    mask = np.zeros(34, dtype=bool)
    mask[33] = True
    assert suggest(graph, 1, labelled=mask)[0].node == suggest(graph, 1, labelled=[33, 33])[0].node == "0"


def test_names_are_those_of_the_tables():
    graph = data.load(OWN_GRAPH)
    free = [name for name, label in zip(graph.node_names, graph.y.tolist(), strict=True) if label < 0]
    found = suggest(OWN_GRAPH, len(free))
    assert sorted(one.node for one in found) == sorted(free)
    assert all(graph.node_names[one.index] == one.node for one in found)
    table = suggestions_table(found)
    assert table.column_names == ["rank", "node", "score", "reason"]
    assert table.column("node").to_pylist() == [one.node for one in found]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strategy": "pagrank"}, "no strategy 'pagrank'. Did you mean pagerank?"),
        ({"n": 0}, "must be at least 1, got 0"),
        ({"n": 2.5}, "must be at least 1, got 2.5"),
        ({"n": 33, "labelled": [0, 1]}, "33 nodes were asked for, but only 32 of 34 have no label"),
        ({"labelled": [34]}, "numbers of nodes from 0 to 33"),
        ({"labelled": [-1]}, "numbers of nodes from 0 to 33"),
        ({"labelled": ["a"]}, "numbers of nodes from 0 to 33"),
    ],
)
def test_what_cannot_be_asked_for(change, message):
    asked = {"graph": "karate", "n": 2, **change}
    with pytest.raises(ConfigError, match=message):
        suggest(**asked)


def test_no_edges_and_no_node_left():
    with pytest.raises(ConfigError, match="All 8 nodes have a label"):
        suggest_in(two_stars(), 1, labelled=np.arange(8))
    assert len(suggest_in(two_stars(), 8, labelled=NOBODY)) == 8


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("suggest") / "run"
    values = {"dataset": GRAPH, "labels": 3, "val_labels": 2, "epochs": 5, "hidden": 4, "heads": 1, "threads": 1}
    Run.start(TrainConfig.from_values({**values, "baselines": False}), path).train()
    return path


def test_a_run_knows_its_labels_and_what_it_is_unsure_of(run):
    trained = cagat.training.TrainedRun(run)
    found = suggest(GRAPH, 105, run=run)
    known = torch.cat([trained.problem.split.train, trained.problem.split.val])
    assert not {one.index for one in found} & set(known.tolist())
    assert "the model is unsure of" in found[0].reason
    with pytest.raises(ConfigError, match="only 105 of 120 have no label"):
        suggest(GRAPH, 106, run=run)
    assert "uncertainty above" in suggest(GRAPH, 1, run=run, strategy="age")[0].reason


def test_a_run_of_another_graph_is_refused(run):
    with pytest.raises(DatasetError, match=r"was trained on synthetic.*seed=0, which is not the graph to be labelled"):
        suggest(GRAPH.replace("seed=0", "seed=1"), 2, run=run)
    with pytest.raises(DatasetError, match=r"\(karate\). Give that graph, or leave the run out"):
        suggest("karate", 2, run=run)


def test_a_plain_graph_of_pyg_is_enough():
    edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    for x in (torch.eye(5)[:, :3], None):
        found = suggest(Data(x=x, edge_index=edges, num_nodes=5), 2)
        assert len({one.index for one in found}) == 2
