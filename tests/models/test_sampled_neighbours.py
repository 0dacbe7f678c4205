from collections import Counter
from itertools import combinations

import pytest
import torch
from torch.testing import assert_close

from cagat.kernels import CSRGraph
from cagat.models.sampled_neighbours import all_neighbours, sample_neighbours


@pytest.fixture
def graph():
    # Node 0 has the neighbours 1, 2, 3, node 4 has none but itself.
    edges = torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]])
    return CSRGraph.from_edge_index(edges, 5)


def drawn_sets(graph, sample, nodes):
    columns = graph.pattern.col[sample.entry].tolist()
    sets = [set() for _ in nodes]
    for row, column in zip(sample.row.tolist(), columns, strict=True):
        sets[row].add(column)
    return sets


def test_all(graph):
    sample = all_neighbours(graph.pattern, torch.tensor([4, 0, 2]))
    assert drawn_sets(graph, sample, range(3)) == [{4}, {0, 1, 2, 3}, {0, 2}]
    assert sample.row.tolist() == [0, 1, 1, 1, 1, 2, 2]
    assert sample.ratio.tolist() == [1, 1, 1]


def test_every_pair_is_drawn_alike(graph):
    torch.manual_seed(0)
    nodes = torch.zeros(12_000, dtype=torch.long)
    sample = sample_neighbours(graph.pattern, nodes, 2)
    counts = Counter(map(frozenset, drawn_sets(graph, sample, nodes)))
    assert set(counts) == {frozenset(pair) for pair in combinations(range(4), 2)}
    assert all(1800 < count < 2200 for count in counts.values())
    assert_close(sample.ratio, torch.full((12_000,), 2.0))


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_no_more_than_there_are_and_none_twice(graph, count):
    nodes = torch.tensor([3, 4, 0])
    sample = sample_neighbours(graph.pattern, nodes, count)
    sizes = [2, 1, 4]
    assert [len(drawn) for drawn in drawn_sets(graph, sample, nodes)] == [min(count, size) for size in sizes]
    assert torch.bincount(sample.row).tolist() == [min(count, size) for size in sizes]
    assert sample.ratio.tolist() == pytest.approx([size / min(count, size) for size in sizes])
