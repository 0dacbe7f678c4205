import pytest
import torch
from torch.testing import assert_close

from cagat.kernels import CSRPattern, edge_softmax, torch_products

ROW = CSRPattern.from_sorted(torch.zeros(5, dtype=torch.long), torch.arange(5), 1, 5)


# Machine code is made for each number of heads; these are those of other tests, too.
HEADS = [(torch.float32, 8), (torch.float64, 3)]


@pytest.mark.parametrize(("dtype", "heads"), HEADS)
def test_the_exponential_is_exact_to_the_last_places(dtype, heads):
    # Of two logits, the second of which is 0, softmax gives exp(x) / (1 + exp(x)).
    x = torch.linspace(-60, 0, 4001, dtype=dtype)
    pattern = CSRPattern.from_sorted(torch.zeros(2, dtype=torch.long), torch.arange(2), 1, 2)
    logits = torch.stack([x, torch.zeros_like(x)])
    share = torch.stack(
        [
            edge_softmax(pattern, logits.new_zeros(1, heads), part, negative_slope=1.0)[0]
            for part in parts(logits, heads)
        ]
    ).flatten()[: len(x)]
    exact = x.double().sigmoid()
    tolerance = {torch.float32: 3e-7, torch.float64: 5e-16}[dtype]
    assert ((share.double() - exact) / exact).abs().max() < 4 * tolerance


def parts(logits, heads):
    padded = torch.nn.functional.pad(logits, (0, -logits.size(1) % heads))
    return padded.split(heads, dim=1)


@pytest.mark.parametrize(("dtype", "heads"), HEADS)
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e30])
def test_large_logits(dtype, heads, scale):
    src = scale * torch.tensor([[1.0, -1.0], [0.5, 2.0], [-3.0, 0.0], [0.0, -0.1], [0.9, 2.0]], dtype=dtype)
    src, dst = src.repeat(1, 4)[:, :heads], src.new_zeros(1, heads)
    ours = edge_softmax(ROW, dst, src)
    assert_close(ours, torch_products.edge_softmax(ROW, dst, src, None, 0.2))
    assert_close(ours.sum(dim=0), torch.ones(heads, dtype=dtype))


def test_a_logit_of_minus_infinity_has_no_share():
    src = torch.tensor([[0.0], [-torch.inf], [1.0], [0.0], [0.0]])
    share = edge_softmax(ROW, torch.zeros(1, 1), src)
    assert share[1] < 1e-37
    assert share.isfinite().all()


def test_more_heads_than_a_vector_holds():
    dst, src = torch.randn(1, 70), torch.randn(5, 70)
    expected = torch_products.edge_softmax(ROW, dst, src, None, 0.2)
    assert_close(edge_softmax(ROW, dst, src), expected)
