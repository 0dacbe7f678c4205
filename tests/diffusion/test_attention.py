import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from cagat import CSRGraph, reference
from cagat.diffusion import Coefficients, Diffusion, EdgeSupport, diffuse
from cagat.diffusion.attention import Chain
from cagat.kernels import edge_softmax
from graph_strategies import RandomGraph, graphs

READINGS = [
    {"support": support, "affinity": affinity, "feedback": feedback, "normalization": normalization}
    for support, affinity in (("full", "edges"), ("full", "full"), ("edges", "edges"))
    for feedback in (False, True)
    for normalization in ("row", "sym", "walk", "gcn")
    if (support, normalization) != ("edges", "walk")
]


def diffused(graph: RandomGraph, K: int = 2, T: int = 2, alpha=0.4, xi=0.1, **reading):
    """The operator S of a random layer with three heads, and the dense S of the reference."""
    generator = torch.Generator().manual_seed(0)
    Z = torch.randn(graph.num_nodes, 3, 3, generator=generator, dtype=torch.float64)
    att = torch.randn(2, 3, 3, generator=generator, dtype=torch.float64)
    made = CSRGraph.from_edge_index(*graph)
    G = edge_softmax(made.pattern, (Z * att[1]).sum(-1), (Z * att[0]).sum(-1))
    if reading.get("normalization") == "gcn":
        G = G * made.attention_scale(G.dtype)[:, None]
    result = diffuse(Z, G, made, Coefficients(alpha, 0.3, xi), Diffusion(K, T, **reading))
    dense = reference.cagat_layer(
        Z, att[0], att[1], *reference.dense_adjacency(*graph), K=K, T=T, alpha=alpha, xi=xi, **reading
    )
    return result, dense


@given(graphs(), st.sampled_from(READINGS), st.sampled_from([0.0, 0.4, 1.0]), st.sampled_from([0.0, 0.1]))
def test_products_rows_and_pairs_equal_the_dense_matrix(graph, reading, alpha, xi):
    result, dense = diffused(graph, alpha=alpha, xi=xi, **reading)
    S, n = result.S, graph.num_nodes
    assert_close(result.H, dense.H, rtol=1e-10, atol=1e-12)

    V = torch.randn(n, 3, 4, dtype=torch.float64)
    assert_close(S.matmul(V), torch.einsum("hij,jhc->ihc", dense.S, V), rtol=1e-10, atol=1e-12)
    assert_close(S.matmul(V, transpose=True), torch.einsum("hji,jhc->ihc", dense.S, V), rtol=1e-10, atol=1e-12)
    shared = V[:, :1]
    assert_close(S.matmul(shared), torch.einsum("hij,jc->ihc", dense.S, shared[:, 0]), rtol=1e-10, atol=1e-12)

    nodes = torch.randperm(n)[:3]
    assert_close(S.rows(nodes), dense.S[:, nodes].transpose(0, 1), rtol=1e-10, atol=1e-12)
    if n:
        pairs = torch.randint(0, n, (2, 7))
        assert_close(S.at(*pairs), dense.S[:, pairs[0], pairs[1]].t(), rtol=1e-10, atol=1e-12)
        few = pairs.clone()
        few[1] = 0  # Fewer sources than targets: read by columns instead of rows.
        assert_close(S.at(*few), dense.S[:, few[0], few[1]].t(), rtol=1e-10, atol=1e-12)
    pattern = S.graph.pattern
    assert_close(S.on_edges(), dense.S[:, pattern.rows(), pattern.col.long()].t(), rtol=1e-10, atol=1e-12)


RING = RandomGraph(torch.stack([torch.arange(9), torch.arange(9).roll(1)]), 9, None)


def test_no_pairs_and_no_rows():
    S = diffused(RING)[0].S
    none = torch.empty(0, dtype=torch.long)
    assert S.at(none, none).shape == (0, 3)
    assert S.rows(none).shape == (0, 3, 9)


def test_blocks_of_columns_give_what_one_block_gives(monkeypatch):
    S, pairs = diffused(RING)[0].S, torch.randint(0, 9, (2, 40))
    rows, values = S.rows(torch.arange(9)), S.at(*pairs)
    two_columns = 2 * 2 * (S.num_steps + 1) * 9 * 3 * 8
    monkeypatch.setattr("cagat.diffusion.attention._BLOCK_BYTES", two_columns)
    assert_close(S.rows(torch.arange(9)), rows)
    assert_close(S.at(*pairs), values)


@pytest.mark.parametrize("reading", READINGS[:1] + READINGS[-1:])
def test_gradients_flow_through_single_values(reading):
    made = CSRGraph.from_edge_index(*RING)
    Z = torch.randn(9, 1, 2, dtype=torch.float64)

    def read(Z, logits):
        G = edge_softmax(made.pattern, logits, logits)
        S = diffuse(Z, G, made, Coefficients(0.4, 0.3, 0.1), Diffusion(2, 1, **reading)).S
        return S.at(torch.tensor([0, 5, 5]), torch.tensor([3, 4, 6]))

    logits = torch.randn(9, 1, dtype=torch.float64)
    assert torch.autograd.gradcheck(read, (Z.requires_grad_(), logits.requires_grad_()))


def test_a_product_does_not_depend_on_earlier_ones():
    S, V = diffused(RING)[0].S, torch.randn(9, 3, 3, dtype=torch.float64)
    with torch.no_grad():
        before = S.matmul(V)
    V.mul_(2)
    assert_close(S.matmul(V), 2 * before)
    V.requires_grad_()
    (gradient,) = torch.autograd.grad(S.matmul(V).sum(), V)
    assert_close(gradient, S.matmul(torch.ones_like(V), transpose=True))


def test_a_chain_is_shared():
    S, Z = diffused(RING)[0].S, torch.randn(9, 3, 3, dtype=torch.float64)
    chain = Chain(S.graph, "row", Z)
    assert_close(S.matmul(chain), S.matmul(Z))
    assert_close(S.matmul(chain, transpose=True), S.matmul(Z, transpose=True))
    first, second = chain.up_from(4), chain.up_from(2)
    assert second[0] is first[2]


@pytest.mark.parametrize("grad", [False, True])
def test_single_values_take_the_memory_of_a_block(grad, monkeypatch):
    # 600 columns, each of 450 kB through all steps: they would take 270 MB at once.
    monkeypatch.setattr("cagat.diffusion.attention._BLOCK_BYTES", 2**22)
    edge_index = torch.randint(0, 600, (2, 2400))
    S = diffused(RandomGraph(edge_index, 600, None))[0].S if not grad else _with_gradient(edge_index)
    largest = 0
    product = S.matmul

    def watched(V, *, transpose=False):
        nonlocal largest
        largest = max(largest, V.size(-1))
        return product(V, transpose=transpose)

    monkeypatch.setattr(S, "matmul", watched)
    values = S.on_edges()
    assert 0 < largest < 60
    if grad:
        values.sum().backward()  # What was not kept is made again.


def _with_gradient(edge_index):
    made = CSRGraph.from_edge_index(edge_index, 600)
    logits = torch.randn(600, 3, dtype=torch.float64, requires_grad=True)
    G = edge_softmax(made.pattern, logits, logits)
    return diffuse(torch.randn(600, 3, 3).double(), G, made, Coefficients(0.4, 0.3, 0.1), Diffusion(2, 2)).S


def test_g_itself_is_an_operator():
    made = CSRGraph.from_edge_index(*RING)
    G = edge_softmax(made.pattern, torch.randn(9, 2), torch.randn(9, 2))
    rows = EdgeSupport(made, G).rows(torch.tensor([4]))
    assert_close(rows.sum(dim=-1), torch.ones(1, 2))
    assert set(rows[0, 0].nonzero().flatten().tolist()) == {4, 5}
