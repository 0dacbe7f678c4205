"""Drawn splits are pure functions whose results never change; given ones come with the graph or in a file."""

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from cagat.data import load, split, split_fractions, split_given
from cagat.errors import DatasetError


def test_golden_values_by_hand():
    y = torch.tensor([0, 1, 0, 1, -1, 0, 1, 0, 1, 0])
    order = np.array([0, 1, 2, 3, 5, 6, 7, 8, 9])
    np.random.RandomState(0).shuffle(order)
    assert order.tolist() == [8, 2, 1, 5, 9, 7, 3, 0, 6]
    # Class 0 in that order: 2 5 9 7 0; class 1: 8 1 3 6. One each to train, two each to validate, the rest to test.
    drawn = split(y, train_per_class=1, val_per_class=2, seed=0)
    assert drawn.train.tolist() == [2, 8]
    assert drawn.val.tolist() == [1, 3, 5, 9]
    assert drawn.test.tolist() == [0, 6, 7]


@pytest.mark.parametrize(
    ("seed", "train", "val", "sums"),
    [
        (0, [9, 22, 27, 33, 53], [10, 14, 41, 47, 69], (185600, 168423, 2732347)),
        (1, [4, 6, 40, 47, 56], [17, 30, 50, 58, 107], (164291, 181150, 2740929)),
    ],
)
def test_golden_values_on_cora(seed, train, val, sums):
    drawn = split(load("cora").y, 20, 20, seed)
    assert drawn.train[:5].tolist() == train
    assert drawn.val[:5].tolist() == val
    assert tuple(int(part.sum()) for part in drawn) == sums


def test_does_not_read_or_change_global_random_state():
    y = torch.arange(3).repeat(10)
    np.random.seed(7)
    torch.manual_seed(7)
    expected = np.random.rand(), torch.rand(1)
    np.random.seed(7)
    torch.manual_seed(7)
    first = split(y, 2, 3, seed=5)
    assert (np.random.rand(), torch.rand(1)) == expected
    assert all(map(torch.equal, first, split(y, 2, 3, seed=5)))


@hypothesis.given(
    labels=st.lists(st.integers(-1, 3), min_size=1, max_size=80),
    train=st.integers(1, 4),
    val=st.integers(0, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_parts_are_disjoint_complete_and_of_the_right_size(labels, train, val, seed):
    y = torch.tensor(labels)
    sizes = np.bincount(np.array(labels)[np.array(labels) >= 0], minlength=max(labels) + 1)
    if len(sizes) == 0 or sizes.min() <= train + val:
        with pytest.raises(DatasetError):
            split(y, train, val, seed)
        return
    drawn = split(y, train, val, seed)
    assert torch.equal(torch.cat(drawn).sort().values, (y >= 0).nonzero().flatten())
    assert torch.bincount(y[drawn.train]).tolist() == [train] * len(sizes)
    assert torch.bincount(y[drawn.val], minlength=len(sizes)).tolist() == [val] * len(sizes)
    assert set(split(y, 1, 0, seed).train.tolist()) <= set(drawn.train.tolist())


def test_a_class_too_small_is_named():
    with pytest.raises(DatasetError, match=r"Class 'rare' has 3 labelled nodes, too few for 2 for training"):
        split(torch.tensor([0] * 9 + [1] * 3), 2, 1, class_names=["common", "rare"])


def test_masks_say_the_same():
    drawn = split(torch.tensor([0, 1, -1] * 6), 1, 1)
    masks = drawn.masks(18)
    assert masks["train_mask"].nonzero().flatten().equal(drawn.train)
    assert int(sum(mask.sum() for mask in masks.values())) == 12
    assert not masks["test_mask"][2::3].any()


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seed_out_of_range(seed):
    with pytest.raises(DatasetError, match=str(seed)):
        split(torch.tensor([0, 0, 0]), 1, 1, seed)


def test_fractions_golden_values():
    y = torch.tensor([0, 1, 0, 1, -1, 0, 1, 0, 1, 0])
    # In the order of seed 0, class 0 is 2 5 9 7 0 and class 1 is 8 1 3 6; 0.4 of them is 2 and 1.6, rounded to 2.
    drawn = split_fractions(y, train=0.4, val=0.25, seed=0)
    assert drawn.train.tolist() == [1, 2, 5, 8]
    assert drawn.val.tolist() == [3, 9]
    assert drawn.test.tolist() == [0, 6, 7]


def test_fractions_on_cora():
    drawn = split_fractions(load("cora").y, 0.6, 0.2, seed=3)
    assert [len(part) for part in drawn] == [1491, 497, 497]
    assert drawn.train[:5].tolist() == [1, 3, 4, 5, 6]
    assert torch.equal(torch.cat(drawn).sort().values, torch.arange(2485))


@pytest.mark.parametrize(("train", "val"), [(0, 0.1), (0.5, 0.5), (0.2, -0.1), (1.2, 0), ("a", 0.1), (0.1, None)])
def test_fractions_out_of_range(train, val):
    with pytest.raises(DatasetError, match=f"they are {train!r} and {val!r}"):
        split_fractions(torch.tensor([0, 0, 0]), train, val)


def test_fractions_name_a_class_too_small():
    with pytest.raises(DatasetError, match=r"Class 'rare' has 3 labelled nodes, too few for 0\.1"):
        split_fractions(torch.tensor([0] * 20 + [1] * 3), 0.1, 0.1, class_names=["common", "rare"])


def test_labels_that_are_no_labels():
    with pytest.raises(DatasetError, match="one integer per node"):
        split(torch.rand(5))
    with pytest.raises(DatasetError, match="nothing to split"):
        split(torch.tensor([-1, -1]))
    with pytest.raises(DatasetError, match="train_per_class >= 1"):
        split(torch.tensor([0, 0, 0]), 0, 1)


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
    with pytest.raises(DatasetError, match="no split of its own"):
        split_given(data)
    data.train_mask = torch.tensor([True, False, False, False, False])
    data.test_mask = torch.tensor([False, True, True, False, False])
    assert [part.tolist() for part in split_given(data)] == [[0], [], [1, 2]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("node,split\na,train\nb,test\nz,train\n", "node 'z' is not in the graph"),
        ("node,split\na,train\na,test\nb,test\n", "more than one row"),
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


def test_small_classes_give_what_they_have():
    y = torch.tensor([0] * 100 + [1] * 8 + [2])
    with pytest.raises(DatasetError, match="Class 1 has 8 labelled nodes"):
        split(y, 20, 20, 0)
    kept = split(y, 20, 20, 0, keep_small=True)
    counts = [torch.bincount(y[part], minlength=3).tolist() for part in kept]
    assert counts == [[20, 3, 1], [20, 3, 0], [60, 2, 0]]
    fractions = split_fractions(y, 0.5, 0.25, 0, keep_small=True)
    assert [torch.bincount(y[part], minlength=3).tolist() for part in fractions] == [[50, 4, 1], [25, 2, 0], [25, 2, 0]]
    # Where all classes are large enough, nothing changes.
    for one, other in zip(split(y[:100], 20, 20, 0), split(y[:100], 20, 20, 0, keep_small=True), strict=True):
        assert torch.equal(one, other)
