"""GAT's attention and the rounds as one operator, against the two one after the other."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck
from torch.testing import assert_close

from cagat import CSRGraph
from cagat.diffusion import Coefficients, Diffusion, attended_features, diffused_features
from cagat.diffusion.attended_operator import attended_diffusion, attended_diffusion_gradients
from cagat.diffusion.fused_operator import as_tensors
from cagat.kernels import dropout, edge_softmax, spmm_heads
from graph_strategies import RandomGraph, graphs

SMALL = RandomGraph(torch.tensor([[0, 1, 2, 2, 3], [1, 2, 0, 1, 3]]), 5, None)
CASES = [
    (0.4, 0.3, 0.1, 2, 2),
    (0.4, 0.3, 0.0, 2, 2),
    (0.0, 0.3, 0.1, 2, 1),
    (0.0, 1.0, 0.0, 1, 1),
    (0.4, 0.3, 0.1, 0, 0),
]


def inputs(graph: RandomGraph, heads: int, channels: int):
    made = CSRGraph.from_edge_index(*graph, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    shapes = [(made.num_nodes, heads, channels), (1, heads, channels), (1, heads, channels)]
    return made, *(torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes)


def one_after_the_other(Z, dst, src, made, coefficients, p=0.0, **options):
    G = edge_softmax(made.pattern, (Z * dst).sum(dim=-1), (Z * src).sum(dim=-1), None, 0.2)
    G = dropout(G, p, training=True)
    return diffused_features(Z, G, made, coefficients, Diffusion(**options))


def at_once(Z, dst, src, made, coefficients, p=0.0, **options):
    return attended_features(Z, (dst, src), made, coefficients, Diffusion(**options), negative_slope=0.2, dropout=p)


@settings(max_examples=100)
@given(
    graph=graphs(),
    K=st.integers(0, 3),
    T=st.integers(0, 2),
    alpha=st.sampled_from([0.0, 0.4]),
    lam=st.sampled_from([0.3, 1.0]),
    xi=st.sampled_from([0.0, 0.1]),
    shape=st.sampled_from([(1, 7), (3, 3), (2, 40)]),
    normalization=st.sampled_from(["row", "sym", "walk"]),
    p=st.sampled_from([0.0, 0.5]),
)
def test_equals_one_after_the_other(graph, K, T, alpha, lam, xi, shape, normalization, p):
    made, *tensors = inputs(graph, *shape)
    outcomes = []
    for function in (at_once, one_after_the_other):
        torch.manual_seed(0)  # The same entries are dropped.
        H = function(*tensors, made, Coefficients(alpha, lam, xi), p, K=K, T=T, normalization=normalization)
        direction = torch.linspace(-1, 1, H.numel(), dtype=H.dtype).view_as(H)
        outcomes.append((H.detach(), *torch.autograd.grad(H, tensors, direction, materialize_grads=True)))
    for one, other in zip(*outcomes, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("p", [0.0, 0.5])
@pytest.mark.parametrize(("alpha", "lam", "xi", "K", "T"), CASES)
@pytest.mark.parametrize("shape", [(3, 2), (1, 2)])
def test_gradients(alpha, lam, xi, K, T, shape, p):
    made, *tensors = inputs(SMALL, *shape)

    def features(*tensors):
        torch.manual_seed(0)  # The same entries are dropped whenever it is called.
        return at_once(*tensors, made, Coefficients(alpha, lam, xi), p, K=K, T=T)

    assert gradcheck(features, tensors)
    assert gradgradcheck(features, tensors)


@pytest.mark.parametrize("frozen", [(), (0,), (1,), (2,), (1, 2), (0, 2)])
def test_second_gradients_where_something_is_frozen(frozen):
    made, *tensors = inputs(SMALL, 2, 3)
    learnt = [tensor for place, tensor in enumerate(tensors) if place not in frozen]
    for place in frozen:
        tensors[place].requires_grad_(False)
    outcomes = []
    for function in (at_once, one_after_the_other):
        H = function(*tensors, made, Coefficients(0.4, 0.3, 0.1), K=2, T=2)
        plain = torch.autograd.grad(H.square().sum(), learnt, retain_graph=True)
        first = torch.autograd.grad(H.square().sum(), learnt, create_graph=True)
        # What is made to be differentiated again is the same gradient.
        for one, other in zip(plain, first, strict=True):
            assert_close(one, other, rtol=1e-12, atol=1e-12)
        penalty = sum(gradient.square().sum() for gradient in first)
        outcomes.append(torch.autograd.grad(penalty, learnt))
    for one, other in zip(*outcomes, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_works_beside_a_transform_of_torch_func():
    made, *tensors = inputs(SMALL, 2, 3)
    Z, dst, src = (tensor.detach() for tensor in tensors)
    plain = Coefficients(0.4, 0.3, 0.1)
    H = at_once(Z, dst, src, made, plain, K=1, T=1)
    scaled = torch.func.grad(lambda factor: (factor * at_once(Z, dst, src, made, plain, K=1, T=1)).sum())
    assert_close(scaled(torch.tensor(2.0, dtype=torch.float64)), H.sum())


@pytest.mark.parametrize("p", [0.0, 0.5])
@pytest.mark.parametrize(("alpha", "lam", "xi", "K", "T"), CASES)
def test_operators_keep_torchs_rules(alpha, lam, xi, K, T, p):
    made, *tensors = inputs(SMALL, 3, 4)
    arguments = (torch.tensor([7]), p, 0.2, alpha, lam, xi, K, T, False)
    graph = as_tensors(made, "row", torch.float64)
    opcheck(attended_diffusion, (graph, *tensors, *arguments))
    kept = [tensor.detach() for tensor in attended_diffusion(graph, *tensors, *arguments)[1:]]
    detached = [tensor.detach() for tensor in tensors]
    opcheck(attended_diffusion_gradients, (graph, *detached, *arguments, kept, torch.ones_like(detached[0])))


def test_dropout_drops_entries_and_keeps_the_mean():
    edge_index = torch.randint(0, 300, (2, 9000), generator=torch.Generator().manual_seed(0))
    made, *tensors = inputs(RandomGraph(edge_index, 300, None), 2, 4)
    Z, dst, src = (tensor.detach() for tensor in tensors)
    plain = Coefficients(0.0, 1.0, 0.0)
    torch.manual_seed(0)
    runs = torch.stack([at_once(Z, dst, src, made, plain, 0.5, K=1, T=1) for _ in range(200)])
    assert not torch.equal(runs[0], runs[1])
    # An entry is dropped or doubled, so its variance is its square. Of 2400 means, none is off by five deviations.
    G = edge_softmax(made.pattern, (Z * dst).sum(dim=-1), (Z * src).sum(dim=-1), None, 0.2)
    deviation = (spmm_heads(made.pattern, G**2, Z**2) / len(runs)).sqrt()
    off = (runs.mean(dim=0) - at_once(Z, dst, src, made, plain, K=1, T=1)) / deviation
    assert off.abs().max() < 5
    assert 0.9 < off.std() < 1.1


def test_what_is_no_one_operator():
    made, Z, dst, src = inputs(SMALL, 2, 3)
    options = {"K": 1, "T": 1}
    assert at_once(Z, dst, src, made, Coefficients(0.4, 0.3, 0.1), support="edges", **options) is None
    assert at_once(Z, dst, src, made, Coefficients(0.4, 0.0, 0.1), **options) is None
    assert at_once(Z, dst, src, made, Coefficients(torch.tensor(0.4), 0.3, 0.1), **options) is None
