"""Graphs from pandas frames."""

import pandas
import pytest

from cagat.data import from_frames
from cagat.errors import DatasetError


def test_frames_are_read_like_files():
    data = from_frames(
        pandas.DataFrame({"source": [1, 2], "target": [2, 3], "weight": [0.5, 2]}),
        pandas.DataFrame({"node": [3, 1, 2], "f": [1.0, 2.0, 3.0], "g": [True, False, True]}),
        pandas.DataFrame({"node": [1, 2, 3], "label": [None, "p", "q"], "split": ["", "train", "test"]}),
    )
    assert data.node_names == ["3", "1", "2"]
    assert data.x.tolist() == [[1, 1], [2, 0], [3, 1]]
    assert data.y.tolist() == [1, -1, 0]
    assert data.edge_weight.tolist() == [2, 0.5, 2, 0.5]
    assert data.train_mask.tolist() == [False, False, True]


def test_missing_numbers_and_categories():
    edges = pandas.DataFrame({"src": ["a", "b"], "dst": ["b", "c"]})
    labels = pandas.DataFrame({"node": ["a", "b", "c"], "label": [10, None, 9]})
    data = from_frames(edges, labels=labels, directed=True)
    assert data.class_names == ["9", "10"]
    assert data.y.tolist() == [1, -1, 0]
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]
    kinds = pandas.Categorical(["x", "x", None], categories=["unused", "x"])
    data = from_frames(edges, labels=pandas.DataFrame({"node": ["a", "b", "c"], "label": kinds}))
    assert data.class_names == ["x"]
    assert data.y.tolist() == [0, 0, -1]


@pytest.mark.parametrize("edges", [[1, 2], pandas.DataFrame({"source": [1, "b"], "target": ["b", 2]})])
def test_what_is_no_table(edges):
    with pytest.raises(DatasetError, match="pandas frame"):
        from_frames(edges)


def test_what_is_wrong_is_named():
    edges = pandas.DataFrame({"source": ["a"], "target": ["b"]})
    with pytest.raises(DatasetError, match="features, column 'f': 1 cells are empty"):
        from_frames(edges, pandas.DataFrame({"node": ["a", "b"], "f": [1.0, None]}))
    with pytest.raises(DatasetError, match="no column for the node among 'name,f'"):
        from_frames(edges, pandas.DataFrame({"name": ["a"], "f": [1.0]}))
