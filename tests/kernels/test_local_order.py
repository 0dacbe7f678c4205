import torch
from hypothesis import given

from cagat import CSRGraph
from cagat.kernels.local_order import LocalOrder
from graph_strategies import graphs


def dense(pattern, values):
    matrix = torch.zeros(pattern.num_rows, pattern.num_cols, dtype=values.dtype)
    matrix[pattern.rows(), pattern.col.long()] = values
    return matrix


@given(graphs())
def test_it_is_the_same_matrix_with_nodes_in_another_order(graph):
    made = CSRGraph.from_edge_index(*graph, dtype=torch.float64)
    order, weights = made.local_order(), made.local_transition("row", torch.float64)
    nodes = order.nodes.long()
    assert torch.equal(nodes.sort().values, torch.arange(graph.num_nodes))
    assert torch.equal(nodes[order.nodes_back], torch.arange(graph.num_nodes))
    old = dense(made.pattern, made.transition("row", torch.float64)[0])
    assert torch.equal(dense(order.pattern, weights[0]), old[nodes][:, nodes])
    assert torch.equal(weights[0][order.pattern.perm_t.long()], weights[1])


def test_neighbours_come_near():
    shuffled = torch.randperm(500, generator=torch.Generator().manual_seed(0))
    path = torch.stack([shuffled[:-1], shuffled[1:]])
    made = CSRGraph.from_edge_index(torch.cat([path, path.flip(0)], dim=1), 500)
    pattern = LocalOrder.of(made.pattern).pattern
    assert (pattern.rows() - pattern.col).abs().max() <= 1
