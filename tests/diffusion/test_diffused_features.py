import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck
from torch.testing import assert_close

from cagat import CSRGraph, reference
from cagat.diffusion import Coefficients, Diffusion, diffuse, diffused_features
from cagat.diffusion.fused_forward import fused_forward
from cagat.diffusion.fused_operator import as_tensors, fused_diffusion, fused_diffusion_gradients
from cagat.diffusion.fused_problem import FusedProblem
from cagat.kernels.row_layout import RowLayout
from graph_strategies import RandomGraph, graphs

RING = RandomGraph(torch.stack([torch.arange(9), torch.arange(9).roll(1)]), 9, None)


def inputs(graph: RandomGraph, heads: int, channels: int, dtype: torch.dtype = torch.float64):
    made = CSRGraph.from_edge_index(*graph, dtype=dtype)
    generator = torch.Generator().manual_seed(0)
    Z = torch.randn(made.num_nodes, heads, channels, generator=generator, dtype=dtype)
    G = torch.rand(made.num_entries, heads, generator=generator, dtype=dtype)  # As after dropout: no row sums to 1.
    return made, Z.requires_grad_(), G.requires_grad_()


def outcome(function, made, Z, G, *coefficients, **options):
    """The features, and the gradients at Z and at G in a fixed direction."""
    H = function(Z, G, made, Coefficients(*coefficients), Diffusion(**options))
    H = H if isinstance(H, torch.Tensor) else H.H
    direction = torch.linspace(-1, 1, H.numel(), dtype=H.dtype).view_as(H)
    return (H.detach(), *torch.autograd.grad(H, (Z, G), direction, allow_unused=True, materialize_grads=True))


@settings(max_examples=150)
@given(
    graph=graphs(),
    K=st.integers(0, 4),
    T=st.integers(0, 3),
    alpha=st.sampled_from([0.0, 0.4, 1.0]),
    lam=st.sampled_from([0.0, 0.3, 1.0]),
    xi=st.sampled_from([0.0, 0.1]),
    shape=st.sampled_from([(1, 7), (3, 3), (2, 40)]),
    normalization=st.sampled_from(["row", "sym", "walk"]),
)
def test_equals_the_rounds_of_single_products(graph, K, T, alpha, lam, xi, shape, normalization):
    made, Z, G = inputs(graph, *shape)
    options = {"K": K, "T": T, "normalization": normalization}
    ours = outcome(diffused_features, made, Z, G, alpha, lam, xi, **options)
    theirs = outcome(diffuse, made, Z, G, alpha, lam, xi, **options)
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *itertools.product([(8, 8), (1, 7)], [torch.float32, torch.float64]),
        ((8, 12), torch.float32),  # Three parts of 32 lanes.
        ((5, 9), torch.float64),
        ((64, 2), torch.float32),
        ((65, 2), torch.float32),  # More heads than a part of a row can hold.
        ((33, 2), torch.float64),
    ],
)
def test_all_sizes(shape, dtype):
    graph = RandomGraph(torch.randint(0, 60, (2, 400), generator=torch.Generator().manual_seed(1)), 60, None)
    made, Z, G = inputs(graph, *shape, dtype)
    options = (0.4, 0.3, 1e-3)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-10}
    ours = outcome(diffused_features, made, Z, G, *options, K=3, T=2)
    theirs = outcome(diffuse, made, Z, G, *options, K=3, T=2)
    assert ours[0].dtype == dtype
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other, **tolerance)


def test_equals_the_dense_reference():
    made, Z, _ = inputs(RING, 3, 4)
    Z = Z.detach()
    A, edge = reference.dense_adjacency(*RING)
    dense = reference.cagat_layer(Z, *torch.ones(2, 3, 4).double(), A, edge, xi=0.1)
    G = dense.G[:, made.pattern.rows(), made.pattern.col.long()].t()
    assert_close(diffused_features(Z, G, made, Coefficients(0.4, 0.3, 0.1), Diffusion(3, 2)), dense.H)


CASES = [
    (0.4, 0.3, 0.1, 2, 2),
    (0.4, 0.3, 0.0, 2, 2),
    (0.0, 0.3, 0.1, 2, 1),
    (0.0, 1.0, 0.0, 1, 1),
    (1.0, 0.5, 0.1, 1, 3),
    (0.4, 0.3, 0.1, 0, 0),
]


@pytest.mark.parametrize(("alpha", "lam", "xi", "K", "T"), CASES)
@pytest.mark.parametrize(("shape", "normalization"), [((2, 3), "row"), ((1, 2), "row"), ((2, 3), "walk")])
def test_gradients(alpha, lam, xi, K, T, shape, normalization):
    made, Z, G = inputs(RandomGraph(torch.tensor([[0, 1, 2, 2, 3], [1, 2, 0, 1, 3]]), 5, None), *shape)

    def features(Z, G):
        return diffused_features(Z, G, made, Coefficients(alpha, lam, xi), Diffusion(K, T, normalization=normalization))

    assert gradcheck(features, (Z, G))
    assert gradgradcheck(features, (Z, G))


@pytest.mark.parametrize("most_kept", [2**40, 0])
@pytest.mark.parametrize(("alpha", "lam", "xi", "K", "T"), CASES)
def test_operators_keep_torchs_rules(alpha, lam, xi, K, T, most_kept, monkeypatch):
    monkeypatch.setattr("cagat.diffusion.fused_heads.RECOMPUTE_ABOVE", most_kept)
    made, Z, G = inputs(RING, 3, 4)
    pattern = as_tensors(made, "row", torch.float64)
    numbers = (alpha, lam, xi, K, T, True)
    opcheck(fused_diffusion, (pattern, Z, G, *numbers))
    kept = [tensor.detach() for tensor in fused_diffusion(pattern, Z, G, *numbers)[1:]]
    opcheck(fused_diffusion_gradients, (pattern, Z.detach(), G.detach(), *numbers, *kept, torch.ones_like(Z)))


def test_bits_do_not_depend_on_the_number_of_threads():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 4000, (2, 60000), generator=generator)
    edge_index[1, :3000] = 7
    made, Z, G = inputs(RandomGraph(edge_index, 4000, None), 8, 8, torch.float32)
    before = torch.get_num_threads()
    try:
        for xi in (0.0, 1e-3):
            torch.set_num_threads(1)
            expected = outcome(diffused_features, made, Z, G, 0.4, 0.3, xi, K=3, T=2)
            for number in (2, 3, 7):
                torch.set_num_threads(number)
                for _ in range(3):
                    ours = outcome(diffused_features, made, Z, G, 0.4, 0.3, xi, K=3, T=2)
                    assert all(map(torch.equal, ours, expected))
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("shape", [(8, 8), (3, 3)])
def test_what_is_not_kept_is_made_again(shape, monkeypatch):
    made, Z, G = inputs(RING, *shape)
    expected = outcome(diffused_features, made, Z, G, 0.4, 0.3, 0.1, K=2, T=2)
    for size in (0, 1, 40_000):
        monkeypatch.setattr("cagat.diffusion.fused_heads.RECOMPUTE_ABOVE", size)
        for one, other in zip(outcome(diffused_features, made, Z, G, 0.4, 0.3, 0.1, K=2, T=2), expected, strict=True):
            assert_close(one, other, rtol=1e-12, atol=1e-13)


def test_strided_inputs_and_gradients():
    made, Z, G = inputs(RING, 8, 8)
    options = (made, Coefficients(0.4, 0.3, 0.1))
    expected = diffused_features(Z, G, *options, Diffusion(2, 2))
    strided = Z.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
    H = diffused_features(strided, G.detach().t().contiguous().t().requires_grad_(), *options, Diffusion(2, 2))
    assert torch.equal(H, expected)
    # The gradient of a sum is one number, expanded.
    assert torch.equal(torch.autograd.grad(H.sum(), strided)[0], torch.autograd.grad(expected.sum(), Z)[0])


def test_broken_numbers_stay_visible():
    made, Z, G = inputs(RING, 3, 4)
    broken = Z.detach().clone()
    broken[4, 1, 2] = torch.nan
    H = diffused_features(broken, G.detach(), made, Coefficients(0.4, 0.3, 0.0), Diffusion(1, 1))
    assert H[:, 1, 2].isnan().any()
    assert not H[:, 0].isnan().any()


@pytest.mark.parametrize(("alpha", "lam", "xi", "K", "T"), CASES)
@pytest.mark.parametrize("shape", [(8, 8), (3, 5)])
def test_what_is_kept_is_what_was_counted(shape, alpha, lam, xi, K, T):
    made, Z, G = inputs(RING, *shape)
    layout = RowLayout(*shape, Z.dtype)
    weights = made.local_transition("row", Z.dtype)
    problem = FusedProblem.reduced(made.local_order(), weights, layout, (alpha, lam, xi), K, T)
    kept = fused_forward(problem, Z.detach(), G.detach())[1:]
    assert sum(tensor.nbytes for tensor in kept) == problem.kept_bytes


@pytest.mark.parametrize("frozen", [0, 1])
def test_second_gradients_where_features_or_attention_are_given(frozen):
    made = CSRGraph.from_edge_index(torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]]), 3, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    Z = torch.randn(3, 2, 2, generator=generator, dtype=torch.float64).requires_grad_(frozen != 0)
    G = torch.rand(made.num_entries, 2, generator=generator, dtype=torch.float64).requires_grad_(frozen != 1)
    learnt = G if frozen == 0 else Z

    def features(learnt):
        pair = (Z, learnt) if frozen == 0 else (learnt, G)
        return diffused_features(*pair, made, Coefficients(0.4, 0.3, 0.1), Diffusion(2, 1))

    assert gradgradcheck(features, (learnt,))
