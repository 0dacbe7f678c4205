"""Single passes against dense products; the passes of the diffusion are tested with their operator."""

import weakref

import numba
import numpy as np
import pytest
import torch
from torch.testing import assert_close

from cagat.kernels import CSRPattern, numba_products, row_passes, torch_products
from cagat.kernels.row_layout import row_layout
from cagat.kernels.row_passes import RowPasses
from cagat.kernels.simd import FAR, NEAR, prefetch

NODES = 40


@pytest.fixture(params=[NEAR, FAR], ids=["near", "far"])
def distance(request, monkeypatch):
    monkeypatch.setattr(row_passes, "CACHED_BYTES", 2**40 if request.param == NEAR else -1)
    return request.param


def random_pattern(symmetric: bool) -> tuple[CSRPattern, torch.Tensor, torch.Tensor]:
    present = torch.rand(NODES, NODES, generator=torch.Generator().manual_seed(0)) < 0.15
    row, col = (present | present.T if symmetric else present).nonzero().unbind(1)
    return CSRPattern.from_sorted(row, col, NODES, NODES), row, col


@pytest.mark.parametrize("by_panels", [True, False])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_products(by_panels, symmetric, transpose, distance):
    pattern, row, col = random_pattern(symmetric)
    weight, values = torch.randn(pattern.num_entries), torch.randn(pattern.num_entries, 1)
    x, add = torch.randn(NODES, 128), torch.randn(NODES, 128)
    layout = row_layout(1, 128, torch.float32)
    assert layout.panels == 2
    passes = RowPasses(pattern, (weight, weight[pattern.perm_t.long()].contiguous()), layout, by_panels)
    assert distance == passes.constants.A

    def rows(features):
        return layout.rows(features[:, None]).contiguous() if by_panels else features

    for own in (None, values):
        matrix = torch.zeros(NODES, NODES)
        matrix[row, col] = weight if own is None else own[:, 0]
        out = torch.empty_like(rows(x))
        numba_products.aggregate(
            passes, rows(x), out, values=own, scale=2.0, add=rows(add), scale_add=-1.0, transpose=transpose
        )
        expected = 2 * (matrix.T if transpose else matrix) @ x - add
        assert_close(out, rows(expected), rtol=1e-4, atol=1e-4)


def test_what_a_pass_worked_with_is_freed_when_it_is_over():
    pattern, *_ = random_pattern(symmetric=True)
    passes = RowPasses(pattern, None, row_layout(1, 64, torch.float32))
    x, values = torch.randn(1, NODES, 64), torch.randn(pattern.num_entries, 1)
    gone = weakref.ref(x.untyped_storage())
    numba_products.aggregate(passes, x, torch.empty_like(x), values=values)
    del x
    assert gone() is None


@pytest.mark.parametrize("symmetric", [True, False])
def test_softmax_and_its_gradient(symmetric, distance):
    pattern, *_ = random_pattern(symmetric)
    layout = row_layout(3, 1, torch.float64)
    dst, src = (torch.randn(NODES, 3, dtype=torch.float64) for _ in range(2))
    edge, grad = (torch.randn(pattern.num_entries, 3, dtype=torch.float64) for _ in range(2))
    logits = tuple(map(layout.values, (dst, src, edge)))
    softmax, logit = (torch.empty_like(logits[2]) for _ in range(2))
    numba_products._softmax_pass(pattern, layout, *logits, 0.2, softmax)
    expected = torch_products.edge_softmax(pattern, dst, src, edge, 0.2)
    assert_close(layout.unpadded(softmax), expected)
    at_dst, at_src = torch.empty_like(logits[0]), torch.empty_like(logits[1])
    numba_products._softmax_backward_pass(
        pattern, layout, *logits, 0.2, softmax, layout.values(grad), logit, at_dst, at_src
    )
    gradients = torch_products.edge_softmax_backward(pattern, dst, src, edge, 0.2, expected, grad)
    for one, other in zip(map(layout.unpadded, (at_dst, at_src, logit)), gradients, strict=True):
        assert_close(one, other)


def test_the_prefetch_distance_changes_no_bit(monkeypatch):
    pattern, *_ = random_pattern(symmetric=True)
    weight, x, found = torch.randn(pattern.num_entries), torch.randn(NODES, 64), []
    for cached in (2**40, -1):
        monkeypatch.setattr(row_passes, "CACHED_BYTES", cached)
        found.append(torch.empty_like(x))
        passes = RowPasses(pattern, (weight, weight), row_layout(1, 64, torch.float32))
        numba_products.aggregate(passes, x, found[-1])
    assert torch.equal(*found)


@pytest.mark.parametrize(("limit", "distance"), [(0, NEAR), (1, FAR)])
def test_rows_that_fill_more_than_the_cache_are_prefetched_early(limit, distance, monkeypatch):
    nodes, layout = torch.arange(5), row_layout(2, 2, torch.float32)
    pattern = CSRPattern.from_sorted(nodes, 7 * nodes, 5, 40)
    monkeypatch.setattr(row_passes, "CACHED_BYTES", 40 * layout.lanes * 4 - limit)
    assert distance == RowPasses(pattern, None, layout).constants.A


@pytest.mark.parametrize(("ahead", "width", "cache"), [(NEAR, 64, "i32 3"), (FAR, 64, "i32 2"), (FAR, 8, "i32 2")])
def test_every_line_of_a_row_is_prefetched(ahead, width, cache):
    calls = [line for line in compiled_request(ahead, width).splitlines() if "call void @llvm.prefetch" in line]
    assert len(calls) == max(1, width * 4 // 64)
    assert all(f"i32 0, {cache}, i32 1" in call for call in calls)


def test_little_that_is_near_is_not_prefetched():
    assert "call void @llvm.prefetch" not in compiled_request(NEAR, 8)


def compiled_request(ahead, width):
    @numba.njit
    def ask(address):
        prefetch(address, 0, np.float32, width, ahead)

    ask.compile((numba.int64,))
    return ask.inspect_llvm(ask.signatures[0])
