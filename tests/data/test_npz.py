"""Graphs in .npz files: both published forms, our own additions, and files that do not fit together."""

import numpy as np
import pytest
from scipy import sparse

from cagat.data import load
from cagat.data.npz import read_npz, write_npz
from cagat.data.raw_graph import RawGraph
from cagat.errors import DatasetError

ADJACENCY = sparse.csr_matrix(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=np.float32))
FEATURES = sparse.csr_matrix(np.array([[1, 0], [0, 0], [0, 2]], dtype=np.float32))


def arrays(separator="_", adjacency=ADJACENCY, **changes):
    names = {"_": ("adj_", "attr_"), ".": ("adj_matrix.", "attr_matrix.")}[separator]
    made = {
        prefix + part: np.asarray(getattr(matrix, part))
        for prefix, matrix in zip(names, (adjacency, FEATURES), strict=True)
        for part in ("data", "indices", "indptr", "shape")
    }
    made |= {
        "labels": np.array([0, 1, -1]),
        "node_names": np.array(["a", "b\n", "c"]),
        "class_names": np.array(["p", "q"]),
    }
    return {key: value for key, value in {**made, **changes}.items() if value is not None}


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


def texts_of_codes(order, *codes):
    """Texts of one letter each, by the numbers of the letters, whether there are such letters or not."""
    return np.array(codes, dtype=f"{order}u4").view(f"{order}U1")


@pytest.mark.parametrize("separator", ["_", "."])
def test_both_published_forms(tmp_path, separator):
    graph = read_npz(saved(tmp_path / "g.npz", **arrays(separator))).check()
    assert graph.edge_index.tolist() == [[0, 1, 2], [1, 2, 0]]
    np.testing.assert_array_equal(graph.features.toarray(), FEATURES.toarray())
    assert graph.labels.tolist() == [0, 1, -1]
    assert graph.node_names == ["a", "b", "c"]
    assert graph.class_names == ["p", "q"]
    assert graph.edge_weight is None


def test_names_and_labels_may_be_missing(tmp_path):
    graph = read_npz(saved(tmp_path / "g.npz", **arrays(labels=None, node_names=None, class_names=None))).check()
    assert graph.labels.tolist() == [-1, -1, -1]
    assert graph.node_names == ["0", "1", "2"]
    assert graph.class_names == []


def test_entries_are_weights_and_zeros_no_edges(tmp_path, caplog):
    data = load(saved(tmp_path / "g.npz", **arrays(adj_data=np.array([2.0, 0.0, 1.0]))), directed=True)
    assert data.edge_index.tolist() == [[0, 2], [1, 0]]
    assert data.edge_weight.tolist() == [2, 1]
    assert "1 edge of weight 0 dropped" in caplog.text


def test_dense_features(tmp_path):
    sparse_keys = {f"attr_{part}": None for part in ("data", "indices", "indptr", "shape")}
    graph = read_npz(saved(tmp_path / "g.npz", **arrays(**sparse_keys, attr_matrix=np.eye(3))))
    np.testing.assert_array_equal(graph.features, np.eye(3))
    graph = read_npz(saved(tmp_path / "h.npz", **arrays(**sparse_keys)))
    np.testing.assert_array_equal(graph.features.toarray(), np.eye(3))


def test_everything_survives_a_round_trip(tmp_path):
    graph = RawGraph(
        edge_index=np.array([[2, 0], [0, 1]]),
        features=FEATURES,
        labels=np.array([1, -1, 0]),
        node_names=["x", "é", "z"],
        class_names=["p", "q"],
        feature_names=["f", "g"],
        edge_weight=np.array([0.5, 3], dtype=np.float32),
        edge_attr=np.array([[1, 2], [3, 4]], dtype=np.float32),
        parts=np.array([1, 0, 3], dtype=np.int8),
        directed=True,
        name="g",
    )
    write_npz(tmp_path / "g.npz", graph)
    back = read_npz(tmp_path / "g.npz")
    assert back.edge_index.tolist() == [[0, 2], [1, 0]]
    assert back.edge_weight.tolist() == [3, 0.5]
    assert back.edge_attr.tolist() == [[3, 4], [1, 2]]
    np.testing.assert_array_equal(back.features.toarray(), FEATURES.toarray())
    for key in ("node_names", "class_names", "feature_names", "directed", "name"):
        assert getattr(back, key) == getattr(graph, key)
    np.testing.assert_array_equal(back.labels, graph.labels)
    np.testing.assert_array_equal(back.parts, graph.parts)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"adj_indices": np.array([1, 2, -1])}, "holds -1"),
        ({"adj_indices": np.array([1, 2, 3])}, "holds 3"),
        ({"adj_indices": np.array([1.0, 2.0, 0.0])}, "integers"),
        ({"adj_indices": None}, "missing"),
        ({"adj_indptr": None}, "no adjacency"),
        ({"adj_indptr": np.array([0, 1, 2])}, "does not fit"),
        ({"adj_indptr": np.array([0, 2, 1, 3])}, "does not fit"),
        ({"adj_indptr": np.array([0, -1, 1, 3])}, "does not fit"),
        ({"adj_indptr": np.array([0, 1, 2, 2**40])}, "does not fit"),
        ({"adj_shape": np.array([3, 4])}, "square"),
        ({"adj_shape": np.array([2**62, 2**62])}, "does not fit"),
        ({"adj_shape": np.array([-3, 3])}, "does not fit"),
        ({"adj_shape": np.array([3])}, r"adj_shape must be integers of shape \(2\)"),
        ({"adj_data": np.array([1.0, 2.0])}, "3 entries"),
        ({"adj_data": np.array([1.0, -2.0, 1.0])}, "0 or more"),
        ({"adj_data": np.array([1.0, np.inf, 1.0])}, "NaN or infinite"),
        ({"attr_data": np.array([np.nan, 1.0])}, "1 values that are NaN"),
        ({"attr_data": np.array([1e300, 1.0])}, "infinite"),
        ({"attr_data": np.array(["1", "2"])}, "data must be numbers"),
        ({"attr_shape": np.array([2, 2])}, "does not fit"),
        ({"labels": np.array([0, 1])}, r"shape \(3\), but"),
        ({"labels": np.array([0, 1, 2])}, "label 2 is out of range"),
        ({"labels": np.array([0, 1, -2])}, "label -2 is out of range"),
        ({"labels": np.array([0.0, 1.0, np.nan])}, "integer"),
        ({"labels": np.zeros((3, 2), dtype=int)}, "integer"),
        ({"node_names": np.array(["a", "b"])}, "length 2, expected 3"),
        ({"node_names": np.array(["a", "b", "a"])}, "'a' occurs more than once"),
        ({"node_names": np.array([b"a", b"\xff", b"c"])}, "UTF-8"),
        ({"node_names": np.array(["a", "b\ud800", "c"])}, r"'b\\ud800' of node 1 \(counted from 0\) holds half"),
        ({"class_names": np.array(["p", "\udfff"])}, r"'\\udfff' of class 1"),
        ({"attr_names": np.array(["\ud800", "\udc00"])}, r"'\\ud800' of feature 0"),
        ({"node_names": texts_of_codes("<", 97, 98, 0x110000)}, r"name 2 \(counted from 0\) of node_names .* 0x110000"),
        ({"node_names": texts_of_codes(">", 97, 98, 0xFFFFFFFF)}, "name 2 .* of node_names .* 0xffffffff"),
        ({"node_names": np.eye(3)}, "texts"),
        ({"edge_attr": np.ones((2, 1))}, "edge_attr"),
        ({"edge_attr": np.ones(3)}, "edge_attr must be numbers in 2 dimensions"),
        ({"parts": np.array([0, 1, 4])}, "parts must be"),
        ({"parts": np.array([0, 257, 0])}, "parts must be"),
        ({"parts": np.array([0.5, 1, 2])}, "parts must be"),
        ({"class_names": None, "labels": np.array([0, 1, 2**40])}, "only 3 nodes"),
    ],
)
def test_files_that_do_not_fit_together(tmp_path, changes, message):
    path = saved(tmp_path / "g.npz", **arrays(**changes))
    with pytest.raises(DatasetError, match=message):
        load(path)


def test_names_of_any_byte_order_and_length(tmp_path):
    for names in (np.array(["a", "é", "\U0010ffff"]).astype(">U5"), np.array(["a", "é", "\U0010ffff"])):
        graph = read_npz(saved(tmp_path / "g.npz", **arrays(node_names=names))).check()
        assert graph.node_names == ["a", "é", "\U0010ffff"]
    with pytest.raises(DatasetError, match="'' occurs more than once"):
        load(saved(tmp_path / "g.npz", **arrays(node_names=np.array(["", "", ""]))))


def test_an_npz_with_very_long_names_is_not_written(tmp_path):
    names = ["x" * 400_000_000, "y"]
    graph = RawGraph(np.zeros((2, 0), dtype=np.int64), np.eye(2, dtype=np.float32), np.array([-1, -1]), names, [])
    with pytest.raises(DatasetError, match="safetensors"):
        write_npz(tmp_path / "g.npz", graph)
    assert list(tmp_path.iterdir()) == []
