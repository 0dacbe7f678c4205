import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck

from cagat.kernels import dropout
from cagat.kernels.operators import dropout_operator, seeded_dropout


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


def test_some_rows_share_the_fate_that_they_have_in_the_whole():
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
