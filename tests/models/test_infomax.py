import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from cagat.kernels import prepare_graph
from cagat.kernels.threads import set_kernel_threads
from cagat.models.infomax import InfomaxObjective


def made(n, channels, dtype=torch.float64, slope=0.25):
    """Arguments of the objective: a directed graph, and weights that are not those of the first epoch."""
    torch.manual_seed(0)
    z, bias = torch.randn(n, channels, dtype=dtype), 0.3 * torch.randn(channels, dtype=dtype)
    weight = torch.randn(channels, channels, dtype=dtype) / channels
    edge_index = torch.randint(0, n, (2, 3 * n)).unique(dim=1)
    graph = prepare_graph(edge_index, n, None, normalization="sym", dtype=dtype)
    learnt = [tensor.requires_grad_() for tensor in (z, bias, torch.tensor([slope], dtype=dtype), weight)]
    return learnt, torch.randperm(n), (graph.pattern, graph.transition("sym", dtype))


def fused(learnt, shuffle, graph):
    z, *weights = learnt
    return InfomaxObjective.apply(z, shuffle, *weights, *graph)


def plain(learnt, shuffle, graph):
    """The same in dense torch."""
    z, bias, slope, weight = learnt
    pattern, (values, _) = graph
    A = z.new_zeros(len(z), len(z)).index_put((pattern.rows(), pattern.col.long()), values)
    real, fake = (F.prelu(A @ rows + bias, slope) for rows in (z, z[shuffle]))
    v = weight @ real.mean(dim=0).sigmoid()
    good, bad = (real @ v).sigmoid(), (fake @ v).sigmoid()
    return -(good + 1e-15).log().mean() - (1 - bad + 1e-15).log().mean()


def loss_and_gradients(objective, learnt, shuffle, graph):
    loss = objective(learnt, shuffle, graph)
    return loss.detach(), torch.autograd.grad(3 * loss, learnt)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("n", "channels", "slope"), [(1, 64, 0.25), (40, 64, 0.0), (40, 64, -0.3), (256, 128, 1.5), (600, 192, 0.25)]
)
def test_it_is_what_torch_computes(n, channels, slope, dtype):
    arguments = made(n, channels, dtype, slope)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {}
    assert_close(loss_and_gradients(fused, *arguments), loss_and_gradients(plain, *arguments), **tolerance)


def test_gradcheck():
    (z, bias, slope, weight), shuffle, graph = made(6, 64)
    with torch.no_grad():
        weight *= 20
    torch.autograd.gradcheck(
        lambda *learnt: fused((*learnt, weight.detach()), shuffle, graph), (z, bias, slope), fast_mode=True
    )
    torch.autograd.gradcheck(
        lambda weight: fused((z.detach(), bias.detach(), slope.detach(), weight), shuffle, graph),
        (weight,),
        fast_mode=True,
    )


def test_scores_may_be_too_large_for_a_sigmoid():
    (z, bias, slope, weight), *rest = made(40, 64, torch.float32)
    learnt = [z, bias, slope, (1e4 * weight).detach().requires_grad_()]
    ours, theirs = (loss_and_gradients(objective, learnt, *rest) for objective in (fused, plain))
    assert ours[0].isfinite()
    assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_broken_input_shows_in_loss_and_gradients(broken):
    learnt, *rest = made(40, 64)
    with torch.no_grad():
        learnt[0][3, 5] = broken
    ours, theirs = (loss_and_gradients(objective, learnt, *rest) for objective in (fused, plain))
    assert_close(ours[0], theirs[0], equal_nan=True)
    for gradient, expected in zip(ours[1], theirs[1], strict=True):
        assert not gradient.isfinite().all()
        assert not (gradient.isfinite() & ~expected.isfinite()).any()


def test_tensors_need_not_be_contiguous():
    (z, bias, slope, weight), *rest = made(40, 64)
    strided = [
        z.detach().t().contiguous().t().requires_grad_(),
        bias.detach().repeat_interleave(2)[::2].requires_grad_(),
        slope,
        weight.detach().t().contiguous().t().requires_grad_(),
    ]
    assert not any(tensor.is_contiguous() for tensor in (strided[0], strided[1], strided[3]))
    expected = loss_and_gradients(fused, [z, bias, slope, weight], *rest)
    assert_close(loss_and_gradients(fused, strided, *rest), expected, rtol=0, atol=0)


def test_the_bits_do_not_depend_on_the_number_of_threads():
    arguments = made(3000, 128, torch.float32)
    found = []
    for threads in (1, 3):
        set_kernel_threads(threads)
        try:
            found.append(loss_and_gradients(fused, *arguments))
        finally:
            set_kernel_threads(None)
    assert_close(*found, rtol=0, atol=0)


def test_what_is_frozen_gets_no_gradient():
    (z, bias, slope, weight), *rest = made(40, 64)
    fused([z.detach(), bias, slope.detach(), weight], *rest).backward()
    assert z.grad is None
    assert_close(bias.grad, loss_and_gradients(fused, [z, bias, slope, weight], *rest)[1][1] / 3)
