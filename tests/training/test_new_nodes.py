"""Graphs that a model was not trained on."""

import pytest
import torch

from cagat.data import from_frames, load
from cagat.data.features import lacks_features, structural_features
from cagat.errors import DatasetError
from cagat.training import Run, TrainConfig, TrainedRun
from cagat.training.new_nodes import joined_to_known, require_known_features, with_features
from cagat.training.problem import load_graph

pd = pytest.importorskip("pandas")


def graph_of(pairs, rows=None, labels=None, weights=None, sparse=True):
    """A graph by names of nodes; rows are features of some of them."""
    edges = pd.DataFrame(pairs, columns=["source", "target"])
    if weights is not None:
        edges["weight"] = weights
    features = None if rows is None else pd.DataFrame([[node, *row] for node, row in rows.items()])
    if features is not None:
        features.columns = ["node", *(f"f{place}" for place in range(features.shape[1] - 1))]
    given = None if labels is None else pd.DataFrame(labels.items(), columns=["node", "label"])
    return from_frames(edges, features, given, sparse=sparse)


KNOWN = {"a": [1, 0, 2], "b": [0, 3, 0], "c": [4, 0, 0]}


@pytest.mark.parametrize("sparse", [True, False])
def test_new_rows_join_the_known_graph(sparse):
    known = graph_of([("a", "b"), ("b", "c")], KNOWN, {"a": "x", "c": "y"}, sparse=sparse)
    new = graph_of([("d", "a"), ("d", "e"), ("b", "a")], {"d": [7, 8, 9]}, {"d": "y", "e": "z"}, sparse=sparse)
    joined = joined_to_known(new, known, structural=False)
    assert joined.node_names == ["a", "b", "c", "d", "e"]
    rows = [[1, 0, 2], [0, 3, 0], [4, 0, 0], [7, 8, 9], [0, 0, 0]]
    assert joined.x.to_dense().tolist() == rows
    assert joined.x.layout == known.x.layout
    assert joined.y.tolist() == [0, -1, 1, 1, -1]
    pairs = {(joined.node_names[s], joined.node_names[t]) for s, t in joined.edge_index.T.tolist()}
    assert pairs == {tuple(pair) for pair in ("ab", "ba", "bc", "cb", "ad", "da", "de", "ed")}
    assert joined.edge_index.shape[1] == 8


def test_new_rows_may_have_nothing_that_the_model_knows(caplog):
    known = graph_of([("a", "b"), ("b", "c")], KNOWN)
    new = with_features(graph_of([("d", "a"), ("d", "typo")], {"d": [1, 1, 1]}), ["p", "q"], 2)
    assert new.x.shape == (3, 2)
    assert "3 of 3 features are ignored" in caplog.text
    known.x = known.x.to_dense()[:, :2].to_sparse_csr()
    joined = joined_to_known(new, known, structural=False)
    assert joined.node_names == ["a", "b", "c", "d", "typo"]
    assert joined.x.to_dense().tolist() == [[1, 0], [0, 3], [4, 0], [0, 0], [0, 0]]
    assert "not in the graph trained on count as nodes without features: 'typo'. Add rows" in caplog.text


def test_a_graph_that_shares_neither_features_nor_nodes_is_refused():
    graph = graph_of([("x", "y"), ("y", "gap")], {"x": [1, 1, 1], "y": [2, 2, 2]})
    with pytest.raises(DatasetError, match=r"none of the features .* the model knows 'p', 'q'\. Name them alike"):
        require_known_features(graph.name, list(graph.feature_names), ["p", "q"])
    require_known_features(graph.name, list(graph.feature_names), ["p", "f0"])


def test_what_the_new_graph_says_about_a_known_node_wins():
    known = graph_of([("a", "b"), ("b", "c")], KNOWN, weights=[2.0, 3.0])
    new = graph_of([("b", "a"), ("d", "c")], {"a": [9, 9, 9], "d": [1, 1, 1]}, weights=[5.0, 7.0])
    joined = joined_to_known(new, known, structural=False)
    assert joined.x.to_dense().tolist() == [[9, 9, 9], [0, 3, 0], [4, 0, 0], [1, 1, 1]]
    weight = dict(zip(map(tuple, joined.edge_index.T.tolist()), joined.edge_weight.tolist(), strict=True))
    assert weight == {(0, 1): 5, (1, 0): 5, (1, 2): 3, (2, 1): 3, (2, 3): 7, (3, 2): 7}


def test_a_complete_or_a_foreign_graph_stays_as_it_is():
    known = graph_of([("a", "b"), ("b", "c")], KNOWN)
    complete = graph_of([("a", "d")], KNOWN | {"d": [0, 1, 0]})
    assert joined_to_known(complete, known, structural=False) is complete
    foreign = graph_of([("x", "y")], {"x": [1, 1, 1]})
    assert joined_to_known(foreign, known, structural=False) is foreign


def test_features_are_found_by_name_and_unknown_ones_counted(caplog):
    graph = graph_of([("a", "b"), ("b", "c")], KNOWN)
    for sparse in (True, False):
        given = graph_of([("a", "b"), ("b", "c")], KNOWN, sparse=sparse)
        found = with_features(given, ["f2", "other", "f0"], 3)
        assert found.x.to_dense().tolist() == [[2, 0, 1], [0, 0, 0], [0, 0, 4]]
        assert list(found.feature_names) == ["f2", "other", "f0"]
    assert caplog.text.count("1 of 3 features are ignored, because the model was trained without them: 'f1'") == 2
    with pytest.raises(DatasetError, match=r"none of the features .*'f0', 'f1', 'f2'; the model knows 'p'"):
        with_features(graph, ["p"], 1)
    with pytest.raises(DatasetError, match="has 3 features, but the model was trained on 5"):
        with_features(graph, None, 5)


def test_structural_features_are_rows_of_the_adjacency_matrix():
    graph = graph_of([("a", "b"), ("b", "c")])
    assert lacks_features(graph)
    assert lacks_features(graph_of([("a", "b"), ("b", "c")], sparse=False))
    assert not lacks_features(graph_of([("a", "b"), ("b", "c")], KNOWN))
    assert not lacks_features(graph_of([("a", "b"), ("b", "c")], KNOWN, sparse=False))
    found = structural_features(graph)
    assert found.x.to_dense().tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    assert list(found.feature_names) == ["a", "b", "c"]
    directed = from_frames(
        pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": [2.0, 5.0]}), directed=True, sparse=True
    )
    assert structural_features(directed).x.to_dense().tolist() == found.x.to_dense().tolist()


def test_a_graph_without_features_is_trained_and_new_nodes_are_labelled(tmp_path):
    karate = load("karate", sparse=True)
    assert load_graph("karate", None).x.values().numel() == 34 + 2 * 78
    folder, new, all_of_it = (tmp_path / name for name in ("old", "new", "all"))
    pairs = [(s, t) for s, t in karate.edge_index.T.tolist() if s < t]
    more = [("new", "0"), ("new", "33"), ("newer", "new")]
    for path, edges in ((folder, pairs), (new, more), (all_of_it, pairs + more)):
        path.mkdir()
        (path / "edges.csv").write_text("id_1,id_2\n" + "".join(f"{s},{t}\n" for s, t in edges))
    labels = "".join(f"{node},{int(label)}\n" for node, label in enumerate(karate.y))
    (folder / "nodes.csv").write_text("id,label\n" + labels)
    config = TrainConfig.from_values(
        {
            "dataset": str(folder),
            "labels": 3,
            "val_labels": 3,
            "epochs": 20,
            "threads": 1,
            "model": "gcn",
            "baselines": False,
        }
    )
    Run.start(config, tmp_path / "run").train()
    trained = TrainedRun(tmp_path / "run")
    assert trained.description.structural
    assert trained.problem.summary().endswith("no features, so a node is described by its neighbours.")
    found = trained.predict(str(new))
    expected = trained.predict(str(all_of_it))
    assert found.nodes == [*karate.node_names, "new", "newer"]
    order = [expected.nodes.index(node) for node in found.nodes]
    torch.testing.assert_close(found.probabilities, expected.probabilities[order])
    (new / "nodes.csv").write_text("id,size\nnew,1\nnewer,2\n")
    with pytest.raises(DatasetError, match="has features, but the model was trained without any"):
        trained.predict(str(new))
