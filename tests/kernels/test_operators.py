import itertools
from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given, settings
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck

from cagat import CSRGraph
from cagat.kernels import (
    CSRPattern,
    dropout,
    edge_diffusion,
    edge_softmax,
    numba_products,
    operators,
    sddmm_heads,
    spmm,
    spmm_heads,
    torch_products,
)
from cagat.kernels.operators import dropout_operator, seeded_dropout
from graph_strategies import RandomGraph, graphs

DTYPES = [torch.float32, torch.float64]
LAYOUTS = {
    "contiguous": lambda tensor: tensor.contiguous(),
    "strided": lambda tensor: torch.stack([tensor, tensor], dim=-1)[..., 0],
    "transposed": lambda tensor: tensor.transpose(0, -1).contiguous().transpose(0, -1),
}

# The matrix [[1, 2], [0, 3]] of head 0 and [[10, 20], [0, 30]] of head 1.
PATTERN = CSRPattern.from_sorted(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), 2, 2)
VALUES = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
WEIGHTS = (VALUES[:, 0], VALUES[PATTERN.perm_t.long(), 0])
X = torch.tensor([[[1.0, 2.0, 3.0], [1.0, 0.0, 1.0]], [[4.0, 5.0, 6.0], [2.0, 1.0, 0.0]]])


@pytest.mark.parametrize(("dtype", "layout"), list(itertools.product(DTYPES, LAYOUTS)))
class TestByHand:
    def test_spmm(self, dtype, layout):
        weights = (WEIGHTS[0].to(dtype), WEIGHTS[1].to(dtype))
        x = LAYOUTS[layout](X[:, 0].to(dtype))
        assert spmm(PATTERN, weights, x).tolist() == [[9, 12, 15], [12, 15, 18]]
        assert spmm(PATTERN, weights, x, transpose=True).tolist() == [[1, 2, 3], [14, 19, 24]]

    def test_spmm_heads(self, dtype, layout):
        values, x = LAYOUTS[layout](VALUES.to(dtype)), LAYOUTS[layout](X.to(dtype))
        product = spmm_heads(PATTERN, values, x)
        assert product[:, 0].tolist() == [[9, 12, 15], [12, 15, 18]]
        assert product[:, 1].tolist() == [[50, 20, 10], [60, 30, 0]]
        product = spmm_heads(PATTERN, values, x, transpose=True)
        assert product[:, 0].tolist() == [[1, 2, 3], [14, 19, 24]]
        assert product[:, 1].tolist() == [[10, 0, 10], [80, 30, 20]]

    def test_sddmm_heads(self, dtype, layout):
        x = LAYOUTS[layout](X.to(dtype))
        assert sddmm_heads(PATTERN, x, x).tolist() == [[14, 2], [32, 2], [77, 5]]

    def test_edge_softmax(self, dtype, layout):
        dst = LAYOUTS[layout](torch.tensor([[1.0], [0.0]], dtype=dtype))
        src = LAYOUTS[layout](torch.tensor([[0.0], [-6.0]], dtype=dtype))
        # Row 0: LeakyReLU of 1 and of -5, which are 1 and -1. Row 1 has one entry.
        high = torch.tensor(2.0, dtype=dtype).exp() / (1 + torch.tensor(2.0, dtype=dtype).exp())
        expected = torch.stack([high, 1 - high, torch.ones_like(high)])[:, None]
        torch.testing.assert_close(edge_softmax(PATTERN, dst, src), expected)
        # The edges' own share turns both logits of row 0 into 0.
        edge = LAYOUTS[layout](torch.tensor([[-1.0], [5.0], [0.0]], dtype=dtype))
        torch.testing.assert_close(
            edge_softmax(PATTERN, dst, src, edge), torch.tensor([[0.5], [0.5], [1.0]], dtype=dtype)
        )

    def test_edge_diffusion(self, dtype, layout):
        weights = (WEIGHTS[0].to(dtype), WEIGHTS[1].to(dtype))
        values = LAYOUTS[layout](torch.tensor([[1.0], [1.0], [2.0]], dtype=dtype))
        # [[1, 2], [0, 3]] [[1, 1], [0, 2]] [[1, 0], [2, 3]] = [[11, 15], [12, 18]].
        assert edge_diffusion(PATTERN, weights, values).tolist() == [[11], [15], [18]]


def random_inputs(graph: RandomGraph, heads: int = 3, channels: int = 5):
    dtype = torch.float64
    made = CSRGraph.from_edge_index(*graph, add_self_loops=False, dtype=dtype)
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    values, x = draw(made.num_entries, heads), draw(made.num_nodes, heads, channels)
    return made.pattern, made.transition("row", dtype), values, x, draw(made.num_nodes, heads, channels)


@settings(max_examples=40)
@given(graphs())
def test_numba_and_torch_agree(graph: RandomGraph):
    p, weights, values, x, y = random_inputs(graph)
    dst, src = x[..., 0], y[..., 0]
    calls = {"sddmm_heads": (x, y), "edge_softmax": (dst, src, values, 0.2)}
    for transpose in (False, True):
        calls[f"spmm {transpose}"] = (weights, x.flatten(1), transpose)
        calls[f"spmm_heads {transpose}"] = (values, x, transpose)
        calls[f"edge_diffusion {transpose}"] = (weights, values, transpose)
    softmax = torch_products.edge_softmax(p, dst, src, None, 0.2)
    calls["edge_softmax_backward"] = (dst, src, None, 0.2, softmax, values)
    for name, arguments in calls.items():
        compiled = getattr(numba_products, name.split()[0])(p, *arguments)
        plain = getattr(torch_products, name.split()[0])(p, *arguments)
        torch.testing.assert_close(
            compiled, plain, rtol=1e-12, atol=1e-12, msg=lambda told, name=name: f"{name}: {told}"
        )


@pytest.mark.parametrize("wide", [False, True], ids=["int32", "int64"])
@pytest.mark.parametrize("heads", [1, 4, 5, 8, 16, 100])
def test_edge_diffusion_with_any_number_of_heads_is_the_dense_product(heads, wide):
    graph = RandomGraph(torch.tensor([[0, 1, 2, 2, 3, 1], [1, 2, 0, 1, 1, 4]]), 6, None)
    pattern, weights, values, _, _ = random_inputs(graph, heads=heads)
    left, S = torch.zeros(6, 6, dtype=torch.float64), torch.zeros(6, 6, heads, dtype=torch.float64)
    entries = (pattern.rows(), pattern.col.long())
    left[entries], S[entries] = weights[0], values
    if wide:
        pattern = replace(pattern, **{field.name: getattr(pattern, field.name).long() for field in fields(pattern)})
    expected = torch.einsum("ip,pqh,jq->ijh", left, S, left)[entries]
    torch.testing.assert_close(edge_diffusion(pattern, weights, values), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=15)
@given(graphs(max_nodes=5))
def test_gradients(graph: RandomGraph):
    pattern, weights, values, x, y = random_inputs(graph, channels=2)
    for tensor in (values, x, y):
        tensor.requires_grad_()
    dst, src = x[..., 0].detach().requires_grad_(), y[..., 0].detach().requires_grad_()
    for transpose in (False, True):
        assert gradcheck(lambda v, f, t=transpose: spmm_heads(pattern, v, f, transpose=t), (values, x))
        assert gradcheck(lambda f, t=transpose: spmm(pattern, weights, f, transpose=t), (x,))
    assert gradcheck(lambda a, b: sddmm_heads(pattern, a, b), (x, y))
    assert gradcheck(lambda d, s, e: edge_softmax(pattern, d, s, e), (dst, src, values))
    assert gradcheck(lambda d, s: edge_softmax(pattern, d, s), (dst, src))
    assert gradcheck(lambda v: edge_diffusion(pattern, weights, v), (values,))


def test_second_gradients():
    graph = RandomGraph(torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]]), 3, None)
    pattern, weights, values, x, y = random_inputs(graph, channels=2)
    for tensor in (values, x, y):
        tensor.requires_grad_()
    assert gradgradcheck(lambda v, f: spmm_heads(pattern, v, f), (values, x))
    assert gradgradcheck(lambda a, b: sddmm_heads(pattern, a, b), (x, y))
    assert gradgradcheck(lambda v: edge_diffusion(pattern, weights, v), (values,))
    dst, src = x[..., 0].detach().requires_grad_(), y[..., 0].detach().requires_grad_()
    assert gradgradcheck(lambda d, s, e: edge_softmax(pattern, d, s, e), (dst, src, values))
    assert gradgradcheck(lambda d, s: edge_softmax(pattern, d, s), (dst, src))


def test_operators_keep_torchs_rules():
    graph = RandomGraph(torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]]), 3, None)
    p, weights, values, x, y = random_inputs(graph)
    for tensor in (values, x, y):
        tensor.requires_grad_()
    pattern = p.tensors()
    dst, src = x[..., 0].detach().requires_grad_(), y[..., 0].detach().requires_grad_()
    opcheck(operators.spmm_operator.traced, ([*pattern, *weights], x.detach().flatten(1).requires_grad_(), False))
    opcheck(operators.spmm_heads_operator.traced, (pattern, values, x, True))
    opcheck(operators.sddmm_heads_operator.traced, (pattern, x, y))
    opcheck(operators.edge_softmax_operator.traced, (pattern, dst, src, values, 0.2))
    softmax = edge_softmax(p, dst, src, values).detach()
    plain = (dst.detach(), src.detach(), values.detach(), 0.2, softmax, softmax)
    opcheck(operators.edge_softmax_gradients, (pattern, *plain))
    opcheck(operators.edge_diffusion_operator.traced, ([*pattern, *weights], values, False))


def test_half_precision_runs_in_plain_torch():
    product = spmm_heads(PATTERN, VALUES.bfloat16(), X.bfloat16())
    assert product.dtype == torch.bfloat16
    assert product[:, 0].tolist() == [[9, 12, 15], [12, 15, 18]]


def test_broken_numbers_stay_visible():
    x = X.clone()
    x[0, 0, 0] = torch.nan
    assert spmm_heads(PATTERN, VALUES, x).isnan().sum() == 1
    assert edge_softmax(PATTERN, x[..., 0], x[..., 0]).isnan().any()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: spmm(PATTERN, WEIGHTS, X.double()), TypeError, "weights torch.float32, x torch.float64"),
        (lambda: spmm_heads(PATTERN, VALUES.long(), X.long()), TypeError, "floating-point"),
        (lambda: spmm_heads(PATTERN, VALUES[:2], X), ValueError, "values has 2 rows .* 3"),
        (lambda: spmm_heads(PATTERN, VALUES, X[:1]), ValueError, "x has 1 rows .* 2"),
        (lambda: spmm_heads(PATTERN, VALUES[:, :1], X), ValueError, "x has 2 heads .* 1"),
        (lambda: sddmm_heads(PATTERN, X, X[:, :, :2]), ValueError, "b has 2 channels where the others have 3"),
        (lambda: edge_softmax(PATTERN, X[..., 0], X[:1, :, 0]), ValueError, "src has 1 rows .* 2"),
        (lambda: edge_diffusion(PATTERN, WEIGHTS, VALUES[:2]), ValueError, "values has 2 rows .* 3"),
        (lambda: spmm_heads(PATTERN, VALUES, X[..., 0]), ValueError, r"x must have 3 dimensions, got shape \(2, 2\)"),
        (lambda: spmm_heads(PATTERN.to("meta"), VALUES, X), ValueError, "values is on cpu, but the graph on meta"),
    ],
)
def test_refuses_what_does_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [0.1, 0.6])
def test_the_share_of_zeros_and_the_mean(dtype, p):
    torch.manual_seed(0)
    x = torch.ones(500, 400, dtype=dtype)
    out = dropout(x, p, True)
    # Five standard deviations of a mean of 200 000.
    tolerance = 5 * (p * (1 - p) / x.numel()) ** 0.5
    assert abs((out == 0).double().mean().item() - p) < tolerance
    assert set(out.unique().tolist()) == {0.0, torch.tensor(1 / (1 - p), dtype=dtype).item()}
    for lag in (1, 8, 400):  # Neighbours, heads and rows are independent.
        kept = (out != 0).double().flatten() - (1 - p)
        assert abs((kept[lag:] * kept[:-lag]).mean().item()) < 5 * p * (1 - p) / x.numel() ** 0.5


def test_the_seed_is_torchs():
    x = torch.ones(1000)
    torch.manual_seed(3)
    first, second = dropout(x, 0.5, True), dropout(x, 0.5, True)
    torch.manual_seed(3)
    assert torch.equal(dropout(x, 0.5, True), first)
    assert not torch.equal(first, second)
    same = ((first == 0) == (second == 0)).double().mean().item()
    assert abs(same - 0.5) < 0.08


def test_nothing_or_everything_is_dropped():
    x = torch.randn(30)
    assert torch.equal(dropout(x, 0.7, False), x)
    assert torch.equal(dropout(x, 0.0, True), x)
    assert dropout(x, 1.0, True).abs().sum() == 0
    assert dropout(x.new_empty(0, 3), 0.5, True).shape == (0, 3)


def test_the_gradient_has_the_same_mask():
    x, seed = torch.randn(40, 3, dtype=torch.float64, requires_grad=True), torch.tensor([12345678912345])
    out = seeded_dropout(x, seed, 0.5)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(gradient == 0, out == 0)
    assert gradcheck(lambda x: seeded_dropout(x, seed, 0.5), (x,))
    assert gradgradcheck(lambda x: seeded_dropout(x, seed, 0.5), (x,))
    opcheck(dropout_operator.traced, ([seed], x, 0.5))


def test_strides_do_not_matter_and_nan_stays():
    x, seed = torch.randn(20, 30), torch.tensor([7])
    assert torch.equal(seeded_dropout(x.t().contiguous().t(), seed, 0.5), seeded_dropout(x, seed, 0.5))
    assert seeded_dropout(torch.full((50,), torch.nan), seed, 0.5).isnan().all()


def test_some_rows_get_the_mask_that_they_have_in_the_whole():
    x, seed = torch.randn(50, 3, 2), torch.tensor([12345678912345])
    global_rows = torch.tensor([7, 49, 0, 12])
    assert torch.equal(
        seeded_dropout(x[global_rows], seed, 0.5, global_rows), seeded_dropout(x, seed, 0.5)[global_rows]
    )
    assert seeded_dropout(x[:0], seed, 0.5, global_rows[:0]).shape == (0, 3, 2)
    rows = x[global_rows].double().requires_grad_()
    assert gradcheck(lambda rows: seeded_dropout(rows, seed, 0.5, global_rows), (rows,))
    opcheck(dropout_operator.traced, ([seed, global_rows], rows, 0.5))


def test_types_without_a_kernel_share_it_too():
    global_rows = torch.tensor([5, 2])
    torch.manual_seed(1)
    whole = dropout(torch.ones(9, 4), 0.5, True)
    torch.manual_seed(1)
    assert torch.equal(
        dropout(torch.ones(2, 4, dtype=torch.bfloat16), 0.5, True, global_rows).float(), whole[global_rows]
    )
