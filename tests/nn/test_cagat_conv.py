import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close
from torch_geometric import EdgeIndex
from torch_geometric.nn import GATConv

from cagat import CaGATConv, CSRGraph, reference
from cagat.diffusion import diffuse
from cagat.memory import OutOfMemoryError
from cagat.nn import SparseFeatures
from graph_strategies import RandomGraph, graphs
from processes import in_a_process

READINGS = [
    {"support": support, "affinity": affinity, "feedback": feedback, "normalization": normalization}
    for support, affinity in (("full", "edges"), ("full", "full"), ("edges", "edges"))
    for feedback in (False, True)
    for normalization in ("row", "sym", "walk", "gcn")
    if (support, normalization) != ("edges", "walk")
]


def random_edges(num_nodes: int = 30, num_edges: int = 90, seed: int = 0) -> Tensor:
    """Distinct edges without self-loops, on which GATConv and CaGATConv mean the same graph."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, num_nodes, (2, num_edges), generator=generator)
    edges = edges[:, edges[0] != edges[1]].unique(dim=1)
    return edges[:, torch.randperm(edges.size(1), generator=generator)]


def reference_output(conv: CaGATConv, x: Tensor, graph: RandomGraph, edge_attr: Tensor | None = None) -> Tensor:
    """The layer by the dense reference, differentiable in the layer's own parameters."""
    Z = (x @ conv.lin.weight.t()).view(-1, conv.heads, conv.out_channels)
    A, edge = reference.dense_adjacency(*graph, add_self_loops=conv.add_self_loops)
    edge_logits = None
    if edge_attr is not None:
        # A pair that is given several times has the mean of their features; a self-loop, if they are added, has the
        # mean of the features of the node's other incoming edges, or zeros.
        source, target = graph.edge_index
        features = torch.zeros(graph.num_nodes, graph.num_nodes, edge_attr.size(1), dtype=x.dtype)
        for i, j in edge.nonzero().tolist():
            chosen = (target == i) & ((source != i) if conv.add_self_loops and i == j else (source == j))
            if chosen.any():
                features[i, j] = edge_attr[chosen].mean(dim=0)
        transformed = conv.lin_edge(features).view(*features.shape[:2], conv.heads, conv.out_channels)
        edge_logits = (transformed * conv.att_edge).sum(dim=-1)
    alpha, lam, xi = conv.coefficients()
    options = {name: getattr(conv, name) for name in ("K", "T", "support", "affinity", "feedback", "normalization")}
    att_src, att_dst = conv.att_src[0], conv.att_dst[0]
    H = reference.cagat_layer(
        Z, att_src, att_dst, A, edge, alpha=alpha, lam=lam, xi=xi, edge_logits=edge_logits, **options
    ).H
    return (H.flatten(1) if conv.concat else H.mean(dim=1)) + conv.bias


@contextmanager
def fresh_memory_holds_nan() -> Iterator[None]:
    """Whoever reads memory that nobody has written gets NaN, and not whatever was there."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def gradients(output: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    direction = torch.randn(output.shape, generator=generator, dtype=output.dtype)
    return torch.autograd.grad((output * direction).sum(), inputs, allow_unused=True, materialize_grads=True)


def assert_relatively_close(ours: tuple[Tensor, ...], theirs: tuple[Tensor, ...], tolerance: float) -> None:
    """Each tensor to a tolerance relative to its own size; what is all rounding is measured by the largest of them."""
    sizes = [tensor.detach().abs().max().item() if tensor.numel() else 0.0 for tensor in theirs]
    for one, other, own in zip(ours, theirs, sizes, strict=True):
        size = max(own, 1e-2 * max(sizes))
        assert_close(one, other, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: "-".join(map(str, reading.values())))
@settings(max_examples=30)
@example(
    graph=RandomGraph(torch.empty(2, 0, dtype=torch.int64), 0, None), precision=(torch.float64, 1, 1e-10),
    edge_dim=None, learn=True, K=1, T=3, alpha=0.4, lam=1.0, xi=1e-3, concat=False, add_self_loops=False,
)  # fmt: skip
@given(
    graph=graphs(),
    # Few sizes, for each of which machine code is made; three heads are padded to four.
    precision=st.sampled_from(
        [(torch.float64, 1, 1e-10), (torch.float64, 3, 1e-10), (torch.float32, 1, 1e-4), (torch.float32, 2, 1e-4)]
    ),
    K=st.integers(0, 3),
    T=st.integers(0, 3),
    alpha=st.sampled_from([0.0, 0.4, 1.0]),
    lam=st.sampled_from([0.0, 0.3, 1.0]),
    xi=st.sampled_from([0.0, 1e-3, 0.1]),
    concat=st.booleans(),
    add_self_loops=st.booleans(),
    learn=st.booleans(),
    edge_dim=st.sampled_from([None, 2]),
)
def test_equals_the_dense_reference(reading, precision, graph, edge_dim, learn, **options):
    torch.manual_seed(0)
    dtype, heads, tolerance = precision
    conv = CaGATConv(4, 3, heads, edge_dim=edge_dim, learn_coefficients=learn, **options, **reading).to(dtype)
    x = torch.randn(graph.num_nodes, 4, dtype=dtype, requires_grad=True)
    inputs = [x, *conv.parameters()]
    weight, edge_attr = graph.edge_weight, None
    if edge_dim is not None:  # With edge features there are no weights.
        edge_attr, weight = torch.randn(graph.edge_index.size(1), edge_dim, dtype=dtype), None
        graph = graph._replace(edge_weight=None)
    with fresh_memory_holds_nan():
        out = conv(x, graph.edge_index, edge_attr if weight is None else weight.to(dtype))
        found = gradients(out, *inputs)
    expected = reference_output(conv, x, graph, edge_attr)
    assert_relatively_close((out,), (expected,), tolerance)
    assert_relatively_close(found, gradients(expected, *inputs), tolerance)


@pytest.mark.parametrize("add_self_loops", [True, False])
@pytest.mark.parametrize(
    ("concat", "residual", "edge_dim", "fill_value"),
    [
        (True, False, None, "mean"),
        (False, True, None, "mean"),
        (True, True, 3, "mean"),
        (False, False, 3, "max"),
        (True, False, 3, 0.5),
    ],
)
def test_without_context_it_is_pygs_gat(concat, edge_dim, residual, fill_value, add_self_loops):
    torch.manual_seed(0)
    arguments = (5, 4, 3, concat, 0.2, 0.0, add_self_loops, edge_dim, fill_value, True, residual)
    gat = GATConv(*arguments).double()
    conv = CaGATConv(*arguments, alpha=0, xi=0, lam=1).double()
    conv.load_state_dict(gat.state_dict())
    edge_index = random_edges()
    if add_self_loops:  # GATConv replaces self-loops by its own, features and all.
        edge_index = torch.cat([torch.tensor([[4, 9], [4, 9]]), edge_index], dim=1)
    x = torch.randn(30, 5, dtype=torch.float64, requires_grad=True)
    edge_attr = None if edge_dim is None else torch.randn(edge_index.size(1), edge_dim, dtype=torch.float64)
    out, expected = conv(x, edge_index, edge_attr), gat(x, edge_index, edge_attr)
    assert_close(out, expected, rtol=1e-12, atol=1e-12)
    ours, theirs = gradients(out, x, *conv.parameters()), gradients(expected, x, *gat.parameters())
    assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_gradient_at_logit_zero_is_gats():
    gat, conv = GATConv(5, 4, 2), CaGATConv(5, 4, 2, alpha=0, xi=0, lam=1)
    x, edge_index = torch.randn(30, 5), random_edges()
    x[:3] = 0  # As dropout may leave them: both ends of an edge give nothing to its logit.
    edge_index = torch.cat([edge_index, torch.tensor([[0, 1], [1, 2]])], dim=1).unique(dim=1)
    for zero in (False, True):
        if zero:
            torch.nn.init.zeros_(gat.att_src)
            torch.nn.init.zeros_(gat.att_dst)
        conv.load_state_dict(gat.state_dict())
        ours = gradients(conv(x, edge_index), *conv.parameters())
        assert_close(ours, gradients(gat(x, edge_index), *gat.parameters()))


def test_state_dicts_can_be_exchanged_with_gat():
    arguments = {"edge_dim": 2, "residual": True}
    gat, conv = GATConv(5, 4, 3, **arguments), CaGATConv(5, 4, 3, **arguments)
    gat.load_state_dict(conv.state_dict())
    assert set(gat.state_dict()) == set(conv.state_dict())


def test_attention_weights_without_context_are_gats():
    gat, conv = GATConv(5, 4, 2), CaGATConv(5, 4, 2, alpha=0, xi=0, lam=1)
    conv.load_state_dict(gat.state_dict())
    x, edge_index = torch.randn(30, 5), random_edges()
    _, (edges, attention) = conv(x, edge_index, return_attention_weights=True)
    _, (gat_edges, gat_attention) = gat(x, edge_index, return_attention_weights=True)
    assert torch.equal(edges, gat_edges)
    assert_close(attention, gat_attention)


@settings(max_examples=40)
@given(graphs(min_nodes=1), st.sampled_from(READINGS))
def test_attention_equals_the_dense_s(graph, reading):
    torch.manual_seed(0)
    conv = CaGATConv(4, 3, 3, xi=0.1, **reading).double()
    x = torch.randn(graph.num_nodes, 4, dtype=torch.float64)
    Z = conv.lin(x).view(-1, 3, 3)
    A, edge = reference.dense_adjacency(*graph)
    _, (edges, weights) = conv(x, graph.edge_index, graph.edge_weight, return_attention_weights=True)
    assert torch.equal(edges[:, : graph.edge_index.size(1)], graph.edge_index)
    for rounds in (None, 0, 1):
        K = conv.K if rounds is None else rounds
        dense = reference.cagat_layer(Z, conv.att_src[0], conv.att_dst[0], A, edge, K=K, xi=0.1, **reading)
        nodes = torch.arange(graph.num_nodes)[::2]
        rows = conv.attention(x, graph.edge_index, graph.edge_weight, nodes=nodes, rounds=rounds)
        assert torch.equal(rows.nodes, nodes)
        assert_close(rows.G, dense.G[:, nodes].transpose(0, 1), rtol=1e-10, atol=1e-12)
        assert_close(rows.S, dense.S[:, nodes].transpose(0, 1), rtol=1e-10, atol=1e-12)
        if rounds is None:
            assert_close(weights, dense.S[:, edges[1], edges[0]].t(), rtol=1e-10, atol=1e-12)


def test_attention_takes_a_number_numbers_or_a_mask_and_sees_pairs_that_are_no_edges():
    conv, edge_index, x = CaGATConv(5, 4, 2), random_edges(), torch.randn(30, 5)
    one = conv.attention(x, edge_index, nodes=7)
    assert one.S.shape == one.G.shape == (1, 2, 30)
    assert (one.S[0, 0] != 0).sum() > (one.G[0, 0] != 0).sum()
    mask = torch.zeros(30, dtype=torch.bool)
    mask[[7, 8]] = True
    two = conv.attention(x, edge_index, nodes=mask)
    assert two.nodes.tolist() == [7, 8]
    assert_close(two.S[0], one.S[0])


def test_attention_is_without_dropout():
    conv, edge_index, x = CaGATConv(5, 4, dropout=0.9).train(), random_edges(), torch.randn(30, 5)
    assert_close(conv.attention(x, edge_index, nodes=[1]), conv.attention(x, edge_index, nodes=[1]))
    assert conv.attention(x, edge_index, nodes=[]).S.shape == (0, 1, 30)


def test_dropout_drops_entries_of_g():
    torch.manual_seed(0)
    conv, x, edge_index = CaGATConv(5, 4, dropout=0.5, K=0, lam=1).train(), torch.randn(30, 5), random_edges()
    outs = torch.stack([conv(x, edge_index) for _ in range(500)])
    assert not torch.equal(outs[0], outs[1])
    # Five standard deviations of the mean.
    expected = conv.eval()(x, edge_index)
    assert ((outs.mean(dim=0) - expected).abs() < 5 * outs.std(dim=0) / 500**0.5 + 1e-6).all()


@pytest.mark.parametrize("reading", READINGS)
def test_renumbering_the_nodes_renumbers_the_output(reading):
    conv = CaGATConv(5, 4, 3, **reading).double()
    x, edge_index, new = torch.randn(30, 5, dtype=torch.float64), random_edges(), torch.randperm(30)
    renumbered = conv(x[new], torch.argsort(new)[edge_index])
    assert_close(renumbered, conv(x, edge_index)[new], rtol=1e-12, atol=1e-12)


def test_same_bits_with_any_number_of_threads():
    torch.manual_seed(0)
    conv = CaGATConv(16, 8, 8)
    x, edge_index = torch.randn(5000, 16), torch.randint(0, 5000, (2, 40000))
    graph = CSRGraph.from_edge_index(edge_index, 5000)
    # The dense products around ours are torch's, whose bits may depend on its threads: keep those out.
    Z = conv.lin(x).view(-1, 8, 8).detach()
    before = torch.get_num_threads()
    results = []
    try:
        for number in (1, 2, 5):
            torch.set_num_threads(number)
            leaf = Z.clone().requires_grad_()
            G = conv._attend(leaf, graph, None)
            H = diffuse(leaf, G, graph, conv.coefficients(), conv.diffusion).H
            results.append((H, *torch.autograd.grad(H.square().sum(), leaf)))
    finally:
        torch.set_num_threads(before)
    assert all(map(torch.equal, results[0], results[1]))
    assert all(map(torch.equal, results[0], results[2]))


class TestInputs:
    def setup_method(self):
        torch.manual_seed(0)
        self.conv = CaGATConv(5, 4, 2)
        self.x = torch.randn(30, 5) * (torch.rand(30, 5) < 0.4)
        self.edge_index = random_edges()
        self.expected = self.conv(self.x, self.edge_index)

    @pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
    def test_sparse_features(self, layout):
        sparse = self.x.to_sparse(layout=layout)
        assert_close(self.conv(sparse, self.edge_index), self.expected)
        assert_close(self.conv(SparseFeatures.from_tensor(sparse), self.edge_index), self.expected)

    def test_gradients_of_sparse_features(self):
        sparse = self.x.to_sparse_csr()
        parameters = list(self.conv.parameters())
        assert_close(gradients(self.conv(sparse, self.edge_index), *parameters), gradients(self.expected, *parameters))

    def test_sparse_features_that_want_a_gradient_are_refused(self):
        with pytest.raises(ValueError, match="to_dense"):
            self.conv(self.x.to_sparse_csr().requires_grad_(), self.edge_index)

    @pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
    def test_sparse_adjacency(self, layout):
        values = torch.ones(self.edge_index.size(1))
        adjacency = torch.sparse_coo_tensor(self.edge_index.flip(0), values, (30, 30)).to_sparse(layout=layout)
        out, (edges, attention) = self.conv(self.x, adjacency, return_attention_weights=True)
        assert_close(out, self.expected)
        _, (plain_edges, plain) = self.conv(self.x, self.edge_index, return_attention_weights=True)
        dense = torch.zeros(30, 30, 2)
        dense[plain_edges[1], plain_edges[0]] = plain.detach()
        assert_close(edges.to_dense(), dense)
        assert attention.shape == plain.shape

    def test_edge_index_of_pyg(self):
        assert_close(self.conv(self.x, EdgeIndex(self.edge_index, sparse_size=(30, 30))), self.expected)

    def test_prepared_graph(self):
        graph = CSRGraph.from_edge_index(self.edge_index, 30)
        assert torch.equal(self.conv(self.x, graph), self.expected)

    def test_int32_edges(self):
        assert torch.equal(self.conv(self.x, self.edge_index.int()), self.expected)

    def test_weights_as_a_vector_as_a_column_and_in_a_sparse_matrix(self):
        weight = torch.rand(self.edge_index.size(1))
        out = self.conv(self.x, self.edge_index, weight)
        assert not torch.allclose(out, self.expected)
        assert_close(self.conv(self.x, self.edge_index, weight[:, None]), out)
        adjacency = torch.sparse_coo_tensor(self.edge_index.flip(0), weight, (30, 30)).to_sparse_csr()
        assert_close(self.conv(self.x, adjacency), out)
        graph = CSRGraph.from_edge_index(self.edge_index, 30, weight)
        assert_close(self.conv(self.x, graph), out)

    def test_edge_features_in_a_sparse_matrix(self):
        conv = CaGATConv(5, 4, 2, edge_dim=3)
        features = torch.randn(self.edge_index.size(1), 3)
        adjacency = torch.sparse_coo_tensor(self.edge_index.flip(0), features, (30, 30, 3))
        assert_close(conv(self.x, adjacency), conv(self.x, self.edge_index, features))

    def test_edge_features_of_a_duplicate_are_averaged(self):
        conv = CaGATConv(5, 4, 2, edge_dim=1)
        once, twice = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 0], [1, 0, 1]])
        x = self.x[:2]
        out = conv(x, once, torch.tensor([2.0, 5.0]))
        graph = CSRGraph.from_edge_index(twice, 2, add_self_loops=False)
        bare = CaGATConv(5, 4, 2, edge_dim=1, add_self_loops=False)
        bare.load_state_dict(conv.state_dict())
        assert_close(bare(x, graph, torch.tensor([1.0, 5.0, 3.0])), bare(x, once, torch.tensor([2.0, 5.0])))
        assert out.shape == (2, 8)

    def test_unknown_input_size(self):
        for x in (self.x, self.x.to_sparse_csr()):
            conv = CaGATConv(-1, 4, residual=True)
            conv(x, self.edge_index)
            assert conv.lin.weight.shape == (4, 5)

    def test_autocast(self):
        with torch.autocast("cpu", torch.bfloat16):
            out = self.conv(self.x, self.edge_index)
        assert_close(out.float(), self.expected, rtol=0.1, atol=0.1)

    def test_second_gradients(self):
        conv = CaGATConv(2, 3, 3, K=1, T=1).double()
        x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
        edge_index = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
        assert torch.autograd.gradgradcheck(lambda features: conv(features, edge_index), (x,))


def test_compiles_as_one_graph():
    torch.manual_seed(0)
    conv = CaGATConv(5, 4, 3).double()
    x = torch.randn(30, 5, dtype=torch.float64, requires_grad=True)
    graph = CSRGraph.from_edge_index(random_edges(), 30, dtype=torch.float64)
    out, expected = torch.compile(conv, fullgraph=True)(x, graph), conv(x, graph)
    assert_close(out, expected)
    assert_close(gradients(out, x, *conv.parameters()), gradients(expected, x, *conv.parameters()))


def _peak_of_sixty_thousand_nodes() -> int:
    torch.manual_seed(0)
    conv = CaGATConv(16, 4, 2)
    x, edge_index = torch.randn(60_000, 16, requires_grad=True), torch.randint(0, 60_000, (2, 240_000))
    conv(x, edge_index).square().mean().backward()
    rows = conv.attention(x, edge_index, nodes=[5, 59_999])
    assert x.grad.isfinite().all()
    assert rows.S.shape == (2, 2, 60_000)
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_sixty_thousand_nodes_take_less_than_a_gibibyte_and_a_half():
    # S of one head alone would take 13 GiB.
    assert in_a_process(_peak_of_sixty_thousand_nodes) < 1.5 * 1024**2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"K": -1}, "K must be a whole number from 0 to 10000, but is -1"),
        ({"T": 1.5}, "T must be a whole number from 0 to 10000, but is 1.5"),
        ({"alpha": 1.1}, "alpha must be a number from 0 to 1, but is 1.1"),
        ({"alpha": float("nan")}, "alpha must be a number from 0 to 1, but is nan"),
        ({"lam": -0.1}, "lam must be a number from 0 to 1, but is -0.1"),
        ({"xi": -1e-3}, r"xi must be a number from 0 to 1e\+30, but is -0.001"),
        ({"xi": float("inf")}, r"xi must be a number from 0 to 1e\+30, but is inf"),
        ({"support": "all"}, "support must be one of full, edges, but is 'all'"),
        ({"affinity": "all"}, "affinity must be one of .*, but is 'all'"),
        ({"normalization": "walk", "support": "edges"}, 'not with "walk": change one of them'),
        ({"normalization": "left"}, "normalization must be one of row, sym, walk, gcn, but is 'left'"),
        ({"support": "edges", "affinity": "full"}, 'affinity="full" is not possible'),
        ({"K": True}, "K must be a whole number from 0 to 10000, but is True"),
        ({"aggr": "max"}, "aggr='max' is not supported"),
        ({"flow": "target_to_source"}, "flow='target_to_source' is not supported"),
    ],
)
def test_refuses_arguments_out_of_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        CaGATConv(5, 4, **arguments)


def test_takes_arguments_that_say_what_is_the_case_anyway():
    assert CaGATConv(5, 4, aggr="add", flow="source_to_target").aggr == "add"
    assert CaGATConv(5, 4, K=np.int64(2)).K == 2
    assert CaGATConv(np.int64(5), 4, concat=np.bool_(False)).lin.weight.shape == (4, 5)


def test_coefficients_cannot_be_changed_behind_the_layers_back():
    conv = CaGATConv(5, 4)
    with pytest.raises(AttributeError):
        conv.alpha = 0.0


class TestInferenceMode:
    """What an evaluation prepares, training can use."""

    def test_graph(self):
        conv, x, edge_index = CaGATConv(5, 4), torch.randn(30, 5), random_edges()
        with torch.inference_mode():
            conv(x, edge_index)
        conv(x, edge_index).sum().backward()

    def test_another_normalization_of_a_prepared_graph(self):
        conv, x = CaGATConv(5, 4, normalization="sym"), torch.randn(30, 5)
        graph = CSRGraph.from_edge_index(random_edges(), 30)
        with torch.inference_mode():
            conv(x, graph)
        conv(x, graph).sum().backward()

    def test_sparse_features_and_inference_tensors(self):
        conv, x = CaGATConv(5, 4), torch.randn(30, 5).to_sparse_csr()
        with torch.inference_mode():
            edge_index = random_edges()
            conv(x, edge_index)
        conv(x, edge_index).sum().backward()


def test_refuses_bipartite_graphs_with_a_reason():
    with pytest.raises(TypeError, match="bipartite"):
        CaGATConv((5, 5), 4)
    conv, x, edge_index = CaGATConv(5, 4), torch.randn(3, 5), torch.tensor([[0], [1]])
    with pytest.raises(TypeError, match="bipartite"):
        conv((x, x), edge_index)
    with pytest.raises(ValueError, match=r"\(3, 2\).*bipartite"):
        conv(x, edge_index, size=(3, 2))
    assert conv(x, edge_index, size=(3, 3)).shape == (3, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda conv, x, e: conv(x[:1], e), IndexError, "node 1"),
        (lambda conv, x, e: conv(x[0], e), ValueError, r"\(5,\)"),
        (lambda conv, x, e: conv(x, e, torch.ones(1, 2)), ValueError, "edge_dim=2"),
        (lambda conv, x, e: conv(x, CSRGraph.from_edge_index(e, 9)), ValueError, "9 nodes, but x has 3"),
        (lambda conv, x, e: conv(x, CSRGraph.from_edge_index(e, 3), torch.ones(1)), ValueError, "own weights"),
        (lambda conv, x, e: conv.attention(x, e, nodes=[7]), IndexError, "no node 7"),
        (lambda conv, x, e: conv.attention(x, e, nodes=[0.5]), TypeError, "float32"),
        (lambda conv, x, e: conv.attention(x, e, nodes=torch.ones(2, dtype=torch.bool)), ValueError, r"\(3,\)"),
        (lambda conv, x, e: conv.attention(x, e, nodes=[0], rounds=4), ValueError, "from 0 to 3, but is 4"),
        (
            lambda conv, x, e: CaGATConv(5, 4, edge_dim=2)(x, e, torch.ones(3, 2)),
            ValueError,
            "3 rows for 1 edges",
        ),
    ],
)
def test_refuses_inputs_that_do_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call(CaGATConv(5, 4), torch.randn(3, 5), torch.tensor([[0], [1]]))


def test_repr_says_what_matters():
    assert repr(CaGATConv(5, 4, 2)) == "CaGATConv(5, 4, heads=2, K=3, T=2, alpha=0.4, lam=0.3, xi=0.001)"
    assert "normalization='sym'" in repr(CaGATConv(5, 4, normalization="sym"))


@pytest.mark.parametrize("rounds", [0, 1, None])
def test_attention_operators_multiply_as_the_rows_do(rounds):
    torch.manual_seed(0)
    edge_index, x, V = torch.randint(0, 15, (2, 40)), torch.randn(15, 5), torch.randn(15, 1, 3)
    conv = CaGATConv(5, 4, heads=2, K=2, xi=0.05)
    rows = conv.attention(x, edge_index, nodes=list(range(15)), rounds=rounds)
    operators = conv.attention_operators(x, edge_index, rounds=rounds)
    for operator, matrix in zip(operators, (rows.G, rows.S), strict=True):
        torch.testing.assert_close(operator.matmul(V), matrix @ V[:, 0])
    with pytest.raises(ValueError, match="rounds must be a whole number from 0 to 2, but is 3"):
        conv.attention_operators(x, edge_index, rounds=3)


def test_a_walk_keeps_the_sums_of_rows():
    torch.manual_seed(0)
    conv = CaGATConv(5, 4, heads=3, xi=0.0, normalization="walk").double()
    rows = conv.attention(torch.randn(30, 5).double(), random_edges(), nodes=list(range(30)))
    assert_close(rows.S.sum(dim=-1), torch.ones(30, 3).double())
    assert (rows.S >= 0).all()


def test_without_aggregation_attention_is_not_made():
    torch.manual_seed(0)
    conv, x = CaGATConv(5, 4, heads=2, lam=0.0, dropout=0.5), torch.randn(30, 5)
    out = conv(x, random_edges())
    assert_close(out, conv.lin(x) + conv.bias)
    out.sum().backward()
    assert conv.att_src.grad is None
    _, (_, S) = conv(x, random_edges(), return_attention_weights=True)  # Who asks for it still gets it.
    assert S.isfinite().all()
    assert S.abs().sum() > 0


def test_weights_that_do_not_fit_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr("cagat.memory.free_memory", lambda: 10 * 4 * 8 * 4)
    CaGATConv(10, 8, heads=4)
    with pytest.raises(
        OutOfMemoryError, match=r"A layer from 11 to 4 x 8 units would need .*1408 bytes.*Ask for fewer"
    ):
        CaGATConv(11, 8, heads=4)


def test_a_compiled_layer_prepares_its_graph_outside_of_what_is_compiled():
    """Edges are no graph yet, so that preparing them breaks the compiled graph, also if there are new ones."""
    conv, x = CaGATConv(3, 4, 2).eval(), torch.randn(5, 3)
    compiled = torch.compile(conv, backend="eager")
    for edges in (torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.tensor([[4, 1, 2], [1, 2, 0]])):
        for _ in range(2):
            assert_close(compiled(x, edges), conv(x, edges))
