"""Any graph by name or path; and from tables to one file."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import cagat.data
from cagat.data import convert, from_scipy, load, save, summarize
from cagat.errors import DatasetError

SPEC = {
    "cora": (2485, 5069, 1433, [285, 406, 726, 379, 214, 131, 344]),
    "citeseer": (2110, 3668, 3703, [115, 463, 388, 304, 532, 308]),
    "pubmed": (19717, 44324, 500, [4103, 7739, 7875]),
    "cora_ml": (2810, 7981, 2879, [348, 393, 440, 407, 781, 150, 291]),
}


@pytest.mark.parametrize("name", SPEC)
def test_the_paper_s_graphs(real_graphs, name):
    data = load(name, real_graphs, sparse=True)
    summary = summarize(data)
    assert tuple(summary[key] for key in ("nodes", "edges", "features", "class_sizes")) == SPEC[name]
    sums = dict(reversed(line.split()) for line in (real_graphs / "SHA256SUMS").read_text().splitlines())
    assert summary["sha256"] == sums[f"{name}.npz"]
    assert summary["source"] == f"file {real_graphs / name}.npz"
    assert data.validate()
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert len(set(data.node_names)) == data.num_nodes


def test_the_rest_of_a_published_graph_on_request(real_graphs):
    assert load("cora", real_graphs, largest_component=False).num_nodes == 2708
    with pytest.raises(DatasetError, match="cora is used undirected"):
        load("cora", directed=True)


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "sizes"),
    [
        ("karate", 34, 78, 34, [17, 17]),
        ("digits", 1797, 9929, 64, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]),
        ("breast_cancer", 569, 3440, 30, [212, 357]),
        ("synthetic:nodes=60,degree=6,classes=3,features=12", 60, 180, 12, [20, 20, 20]),
    ],
)
def test_graphs_that_are_made_here(name, nodes, edges, features, sizes):
    summary = summarize(load(name))
    assert summary["nodes"] == nodes
    assert summary["edges"] == edges
    assert summary["features"] == features
    assert summary["class_sizes"] == sizes
    assert summary["sha256"] is None


def test_a_name_wins_over_a_file(tmp_path, monkeypatch):
    (tmp_path / "karate").mkdir()
    (tmp_path / "karate" / "edges.csv").write_text("1,2\n")
    monkeypatch.chdir(tmp_path)
    assert load("karate").num_nodes == 34
    assert load("./karate").num_nodes == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("coraa", "Did you mean cora"),
        ("nowhere/at/all", "Choose one of cora, .*, digits, breast_cancer, karate, synthetic. Or give a path"),
        ("x" * 5000, "no file called .xxx.*Choose one of"),
        ("a\0b", "no file called"),
        ("synthetic:nodes=ten", "'nodes=ten' is not one of nodes=NUMBER"),
        ("synthetic:sides=3", "'sides=3' is not one of"),
        ("synthetic:nodes=1000000000000", "would need"),
        ("synthetic:nodes=3", "nodes=3 must be at least 8"),
        ("synthetic:degree=999", "degree=999 must be at least 1 and at most 249"),
        ("synthetic:features=2", "features=2 must be at least 4"),
        ("synthetic:seed=4294967296", "seed=4294967296"),
    ],
)
def test_what_is_not_there(name, message):
    with pytest.raises(DatasetError, match=message):
        load(name)


def test_a_single_table_leads_to_convert(tmp_path):
    (tmp_path / "edges.csv").write_text("1,2\n")
    with pytest.raises(DatasetError, match="cagat data convert --edges"):
        load(tmp_path / "edges.csv")


def test_dense_features_that_do_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 3_000_000}))
    with pytest.raises(DatasetError, match=r"2485 x 1433 dense features.*sparse=True"):
        load("cora")
    assert load("cora", sparse=True).num_nodes == 2485


def test_a_graph_is_not_saved_under_any_name(tmp_path):
    with pytest.raises(DatasetError, match=r"\.npz or \.safetensors"):
        save(load("karate"), tmp_path / "karate.pt")


def test_the_largest_component_on_request(tmp_path):
    (tmp_path / "edges.csv").write_text("5,6\n1,2\n2,3\n")
    assert load(tmp_path).num_nodes == 5
    data = load(tmp_path, largest_component=True)
    assert data.node_names == ["1", "2", "3"]
    np.testing.assert_array_equal(data.edge_index, [[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@settings(max_examples=40)
@given(
    nodes=st.integers(1, 8),
    pairs=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20),
    directed=st.booleans(),
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1), min_size=8, max_size=8, unique=True
    ),
    numbers=st.lists(st.floats(-9, 9, width=32), min_size=16, max_size=16),
)
def test_any_graph_survives_a_file(tmp_path_factory, suffix, nodes, pairs, directed, names, numbers):
    adjacency = np.zeros((nodes, nodes))
    for source, target in pairs:
        adjacency[source % nodes, target % nodes] = 1 + source
    features = np.array(numbers, dtype=np.float32)[: 2 * nodes].reshape(nodes, 2)
    labels = np.arange(nodes) % 3 - 1
    data = from_scipy(adjacency, features, labels, node_names=names[:nodes], class_names=["p", "q"], directed=directed)
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    save(data, path)
    back = load(path)
    for key in ("x", "edge_index", "y"):
        assert torch.equal(back[key], data[key]), key
    expected = data.edge_weight if "edge_weight" in data else torch.ones(data.num_edges)
    assert torch.equal(back.edge_weight if "edge_weight" in back else torch.ones(back.num_edges), expected)
    assert back.node_names == data.node_names
    assert back.class_names == data.class_names


def test_every_public_name_is_there():
    for name in cagat.data.__all__:
        assert callable(getattr(cagat.data, name))
    assert set(cagat.data.__all__) <= set(dir(cagat.data))


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "edges.tsv").write_text("source\ttarget\tweight\tkind\na\tb\t2\t1\nb\tc\t1\t0\n")
    (tmp_path / "features.csv").write_text("node,f\nc,1\na,2\n")
    (tmp_path / "labels.csv").write_text("node,label,split\na,p,train\nb,,\nc,q,test\n")
    return [tmp_path / "edges.tsv", tmp_path / "features.csv", tmp_path / "labels.csv"]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("directed", [False, True])
def test_the_file_holds_what_the_tables_hold(tmp_path, tables, suffix, directed):
    convert(tmp_path / f"out{suffix}", *tables, directed=directed)
    converted, direct = load(tmp_path / f"out{suffix}"), load(tmp_path, directed=directed)
    assert converted.directed is directed
    for key in ("x", "edge_index", "y", "edge_weight", "edge_attr", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(converted[key], direct[key]), key
    for key in ("node_names", "class_names", "feature_names"):
        assert list(converted[key]) == list(direct[key])


def test_a_wrong_ending_is_noticed_before_anything_is_read(tmp_path):
    with pytest.raises(DatasetError, match=r"out\.csv: .*\.npz or \.safetensors"):
        convert(tmp_path / "out.csv", tmp_path / "nowhere.csv")


def test_what_is_missing_is_named_and_nothing_is_left(tmp_path, tables):
    with pytest.raises(DatasetError, match=r"nowhere\.csv: there is no such file"):
        convert(tmp_path / "out.npz", tables[0], tmp_path / "nowhere.csv")
    with pytest.raises(DatasetError, match=r"a table ends in \.csv, \.tsv, \.parquet, not in '\.xls'"):
        convert(tmp_path / "out.npz", tmp_path / "edges.xls")
    assert not list(tmp_path.glob("*out*"))
