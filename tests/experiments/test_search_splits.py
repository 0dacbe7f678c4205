import pytest
import torch
from torch_geometric.data import Data

from cagat import data
from cagat.errors import DatasetError
from cagat.experiments.search_splits import nodes_used, search_split


def graph_with(sizes, **parts):
    """Classes of these sizes, one after the other, and perhaps a split."""
    y = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    graph = Data(y=y, num_nodes=len(y), name="mine", class_names=[f"c{number}" for number in range(len(sizes))])
    for part, nodes in parts.items():
        graph[f"{part}_mask"] = torch.zeros(sum(sizes), dtype=torch.bool).index_fill(
            0, torch.tensor(nodes).long(), True
        )
    return graph


@pytest.mark.parametrize(
    ("size", "labels", "val_labels", "train", "val"),
    [
        (10, None, None, 7, 3),
        (3, None, None, 2, 1),
        (2, None, None, 1, 1),
        (1, None, None, 1, 0),  # Its only node trains.
        (10, None, 2, 8, 2),
        (10, None, 20, 5, 5),  # At least half of them train.
        (60, 5, None, 5, 20),
        (20, 5, None, 5, 15),
        (20, 5, 5, 5, 5),
        (20, 30, 10, 15, 5),  # In the same ratio.
        (1, 5, 5, 1, 0),
    ],
)
def test_how_many_nodes_of_a_class_train_and_validate(size, labels, val_labels, train, val):
    # The first two are another class; the last is the only test node.
    nodes = list(range(2 + size))
    graph = graph_with([2, size + 1], train=nodes, val=[], test=[size + 2])
    found = search_split(graph, labels, val_labels, 100)
    assert [int((graph.y[part] == 1).sum()) for part in found] == [train, val, 1]
    assert not set(found.train.tolist()) & set(found.val.tolist())


def test_a_split_is_a_function_of_its_seed():
    graph = graph_with([20, 20])
    first, same, other = (search_split(graph, None, None, seed).val.tolist() for seed in (100, 100, 101))
    assert first == same != other
    assert search_split(graph, 5, 5, 100).test.tolist() == data.split(graph.y, 5, 5, 100).test.tolist()


@pytest.mark.parametrize(
    ("sizes", "labels", "val_labels", "train", "val"),
    [([10, 10], 20, 1, 18, 2), ([30, 30], 100, 2, 58, 2), ([2, 2], 5, 3, 2, 2), ([40, 8], 20, 20, 24, 24)],
)
def test_classes_smaller_than_asked_for_divide_what_they_have(sizes, labels, val_labels, train, val):
    found = search_split(graph_with(sizes), labels, val_labels, 100)
    assert (len(found.train), len(found.val)) == (train, val)
    assert sorted(torch.cat(found).tolist()) == list(range(sum(sizes)))


def test_what_is_done_with_the_nodes_is_told():
    assert nodes_used(graph_with([20, 1]), None, None, 2) == (
        "mine: 16 nodes train and 5 validate in each of 2 splits, drawn from 21 labelled nodes, which all take part. "
        "Smaller classes give what they have: 'c1'."
    )
    assert nodes_used(graph_with([20, 20]), 5, 5, 2) == (
        "mine: 10 nodes train and 10 validate in each of 2 splits, drawn from 40 labelled nodes; the other 20 are left "
        "out of that split, but may be in another."
    )
    assert "7 nodes train and 4 validate" in (said := nodes_used(graph_with([20, 3]), 5, 3, 1))
    assert said.endswith("Smaller classes give what they have: 'c1'.")
    own = graph_with([10, 10], train=[0, 10], val=[1, 2, 11], test=[5, 15])
    assert nodes_used(own, None, None, 3) == (
        "mine: 2 nodes train and 3 validate, as its own split says; every configuration is tried from 3 starts; its 2 "
        "test nodes take no part."
    )
    assert nodes_used(own, 1, 1, 1) == (
        "mine: 2 nodes train and 2 validate in one split, drawn from the 5 training and validation nodes of its own "
        "split; its 2 test nodes take no part."
    )


def test_without_a_node_to_judge_by_there_is_no_search():
    with pytest.raises(DatasetError, match="No class has two labelled nodes"):
        search_split(graph_with([1, 1]), None, None, 100)
    with pytest.raises(DatasetError, match="No class has two labelled nodes"):
        search_split(graph_with([1, 1]), 5, 5, 100)
