"""Splits that the user gives, with the graph or in a file."""

import pytest
import torch

from cagat.data import load, split_given
from cagat.errors import DatasetError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\nc,d\nd,e\n")
    (tmp_path / "labels.csv").write_text("node,label\na,p\nb,q\nc,p\nd,q\n")
    return tmp_path


def given(folder, content):
    (folder / "own.csv").write_text(content)
    return split_given(load(folder), folder / "own.csv")


def test_a_file(folder):
    split = given(folder, "node,split\nd,test\na,train\nb,train\nc,val\ne,\n")
    assert [part.tolist() for part in split] == [[0, 1], [2], [3]]
    assert all(part.dtype == torch.int64 for part in split)


def test_a_column_of_the_labels(folder):
    (folder / "labels.csv").write_text("node,label,split\na,p,test\nb,q,train\nc,p,\nd,q,val\n")
    assert [part.tolist() for part in split_given(load(folder))] == [[1], [3], [0]]


def test_masks_of_any_data(folder):
    data = load(folder)
    with pytest.raises(DatasetError, match="came without a split"):
        split_given(data)
    data.train_mask = torch.tensor([True, False, False, False, False])
    data.test_mask = torch.tensor([False, True, True, False, False])
    assert [part.tolist() for part in split_given(data)] == [[0], [], [1, 2]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("node,split\na,train\nb,test\nz,train\n", "node 'z' is not in the graph"),
        ("node,split\na,train\na,test\nb,test\n", "more than one row"),
        ("node,split\na,train\nb,val\n", "no test nodes"),
        ("node,split\nb,test\n", "no train nodes"),
        ("node,split\na,train\ne,test\n", r"node 'e' into test, but it has no label \(1 such"),
        ("node,split\na,sometimes\n", "'sometimes' is no part of a split"),
        ("node,fold\na,1\n", "no column for the split"),
    ],
)
def test_what_is_wrong_is_named(folder, content, message):
    with pytest.raises(DatasetError, match=message):
        given(folder, content)


def test_a_data_without_names_goes_by_numbers(folder):
    data = load(folder)
    del data.node_names
    (folder / "own.csv").write_text("node,split\n3,test\n0,train\n")
    assert [part.tolist() for part in split_given(data, folder / "own.csv")] == [[0], [], [3]]
