"""The steps on rows against dense products, with rows asked for late (from a cache) and early (from main memory)."""

import numba
import numpy as np
import pytest
import torch

from cagat.kernels import CSRPattern, row_program, torch_products
from cagat.kernels.lanes import FAR, NEAR, prefetch
from cagat.kernels.row_layout import RowLayout
from cagat.kernels.row_program import RowProgram

NODES = 40


class Rows:
    """A random pattern with weights, values, features, and what dense products make of them, head by head."""

    def __init__(self, layout, symmetric):
        generator = torch.Generator().manual_seed(0)

        def draw(*size):
            return torch.randn(*size, generator=generator, dtype=layout.dtype)

        present = torch.rand(NODES, NODES, generator=generator) < 0.15
        present = present | present.T if symmetric else present
        row, col = present.nonzero().unbind(1)
        self.layout, self.pattern, self.place = layout, CSRPattern.from_sorted(row, col, NODES, NODES), (row, col)
        entries = self.pattern.num_entries
        weight = draw(entries)
        self.weights = (weight, weight[self.pattern.perm_t.long()].contiguous())
        self.values, self.more_values = draw(entries, layout.heads), draw(entries, layout.heads)
        self.x, self.y = draw(NODES, layout.heads, layout.channels), draw(NODES, layout.heads, layout.channels)

    def program(self):
        return RowProgram(self.pattern, self.weights, self.layout)

    def dense(self, values):
        """A matrix a head of values at the entries, (heads, nodes, nodes)."""
        if values.dim() == 1:
            values = values[:, None].expand(-1, self.layout.heads)
        matrix = values.new_zeros(self.layout.heads, NODES, NODES)
        matrix[:, self.place[0], self.place[1]] = values.T
        return matrix

    def times(self, values, x, transpose=False):
        matrix = self.dense(values)
        return torch.einsum("hij,jhc->ihc", matrix.transpose(1, 2) if transpose else matrix, x)

    def inner(self, x, y):
        """At the entries (i, j), the products of x_i and y_j."""
        return (x[self.place[0]] * y[self.place[1]]).sum(dim=-1)

    def rows(self, features):
        return self.layout.rows(features).contiguous()

    def empty(self):
        return torch.full((NODES, self.layout.width), float("nan"), dtype=self.layout.dtype)

    def check(self, rows, expected):
        torch.testing.assert_close(self.layout.features(rows), expected)


LATE, EARLY = 2**40, -1


@pytest.fixture(params=[LATE, EARLY], ids=["late", "early"])
def distance(request, monkeypatch):
    monkeypatch.setattr(row_program, "CACHED_BYTES", request.param)


@pytest.fixture(params=[(8, 8, torch.float32), (3, 20, torch.float64)], ids=str)
def layout(request):
    return RowLayout(*request.param)


@pytest.fixture(params=[True, False], ids=["symmetric", "directed"])
def given(layout, request, distance):
    return Rows(layout, request.param)


@pytest.mark.parametrize("transpose", [False, True])
def test_aggregate_one_term(given, transpose):
    program, shared, own = given.program(), given.empty(), given.empty()
    values = given.layout.values(given.values)
    program.aggregate(shared, x=given.rows(given.x), scale_x=2.0, transpose=transpose)
    program.aggregate(own, values=values, y=given.rows(given.y), add=given.rows(given.x), transpose=transpose)
    program.run()
    given.check(shared, 2 * given.times(given.weights[0], given.x, transpose))
    given.check(own, given.times(given.values, given.y, transpose) + given.x)


def test_aggregate_both_terms(given):
    program, out = given.program(), given.empty()
    x, y, values = given.rows(given.x), given.rows(given.y), given.layout.values(given.values)
    program.aggregate(out, x=x, scale_x=0.5, values=values, y=y, scale_y=3.0, add=x, scale_add=-1.0)
    program.run()
    expected = 0.5 * given.times(given.weights[0], given.x) + 3 * given.times(given.values, given.y) - given.x
    given.check(out, expected)


def test_aggregate_twice(given):
    program, out, out2 = given.program(), given.empty(), given.empty()
    values, turned = given.layout.values(given.values), program.is_symmetric
    program.aggregate_twice(
        out, out2, given.rows(given.x), values, transpose_x=turned, scale_x=2.0, add=given.rows(given.y), scale_add=4.0
    )
    program.run()
    given.check(out, 2 * given.times(given.weights[0], given.x, transpose=turned))
    given.check(out2, given.times(given.values, given.x) + 4 * given.y)


@pytest.mark.parametrize("goes_on", [True, False])
def test_aggregate_inner_adds_products_in_the_order_of_the_transpose(given, goes_on):
    program, out, out2 = given.program(), given.empty(), given.empty()
    back = given.pattern.perm_t.long()
    products = given.layout.values(given.more_values[back]).clone()
    program.aggregate_inner(
        out if goes_on else None,
        out2,
        products,
        given.rows(given.x),
        given.rows(given.y),
        given.layout.values(given.values),
        scale_x=0.5,
        scale_y=3.0,
        add=given.rows(given.y),
        scale_products=2.0,
    )
    program.run()
    if goes_on:
        given.check(out, 0.5 * given.times(given.weights[0], given.x, transpose=True))
    given.check(out2, 3 * given.times(given.values, given.x, transpose=True) + given.y)
    expected = given.more_values + 2 * given.inner(given.x, given.y)
    torch.testing.assert_close(given.layout.unpadded(products), expected[back])


@pytest.mark.usefixtures("distance")
def test_aggregate_with_values_and_their_mirror(layout):
    given = Rows(layout, symmetric=True)
    program, out = given.program(), given.empty()
    program.aggregate_both(out, given.layout.values(given.values), given.rows(given.y), 3.0)
    program.run()
    given.check(out, 3 * (given.times(given.values, given.y) + given.times(given.values, given.y, transpose=True)))


def test_inner_and_add_values(given):
    program = given.program()
    more = given.layout.values(given.more_values)
    products, total = torch.full_like(more, float("nan")), more.clone()
    program.inner(products, given.rows(given.x), given.rows(given.y), scale_x=2.0, add=more, scale_add=0.5)
    program.add_values(total, given.layout.values(given.values), 3.0)
    program.run()
    expected = 2 * given.inner(given.x, given.y) + 0.5 * given.more_values
    torch.testing.assert_close(given.layout.unpadded(products), expected)
    torch.testing.assert_close(given.layout.unpadded(total), given.more_values + 3 * given.values)


def test_column_sums(given):
    heads = given.layout.padded_heads
    program, out = given.program(), torch.full((NODES, heads), float("nan"), dtype=given.layout.dtype)
    program.column_sums(out, given.layout.values(given.values))
    program.run()
    torch.testing.assert_close(given.layout.unpadded(out), given.dense(given.values).sum(dim=1).T.contiguous())


def test_the_distance_changes_no_bit(layout, monkeypatch):
    given, found = Rows(layout, symmetric=True), []
    for cached in (LATE, EARLY):
        monkeypatch.setattr(row_program, "CACHED_BYTES", cached)
        program, out = given.program(), given.empty()
        program.aggregate(out, values=given.layout.values(given.values), y=given.rows(given.y), transpose=True)
        program.run()
        found.append(out)
    assert torch.equal(*found)


def test_softmax_and_its_gradient(given):
    layout, pattern = given.layout, given.pattern
    dst, src, edge = given.x[..., 0].contiguous(), given.y[..., 0].contiguous(), given.values
    grad, (at_dst, at_src, at_edge) = given.more_values, map(layout.values, (dst, src, edge))
    program, softmax = given.program(), layout.values(torch.zeros_like(edge)).clone()
    program.softmax(softmax, at_dst, at_src, at_edge, 0.2)
    program.run()
    expected = torch_products.edge_softmax(pattern, dst, src, edge, 0.2)
    torch.testing.assert_close(layout.unpadded(softmax), expected)
    logit, total, column = torch.zeros_like(softmax), torch.zeros_like(at_dst), torch.zeros_like(at_src)
    program.softmax_backward(logit, total, at_dst, at_src, at_edge, 0.2, softmax, layout.values(grad))
    program.column_sums(column, logit)
    program.run()
    expected = torch_products.edge_softmax_backward(pattern, dst, src, edge, 0.2, expected, grad)
    for one, other in zip(map(layout.unpadded, (total, column, logit)), expected, strict=True):
        torch.testing.assert_close(one, other)


def distances(monkeypatch, pattern, transpose):
    """How far ahead rows are asked for, at two limits: as much as they take, and a byte less."""
    layout, asked = RowLayout(2, 2, torch.float32), []
    real = row_program.interpreter
    monkeypatch.setattr(row_program, "interpreter", lambda *given: asked.append(given[-1]) or real(*given))
    sources, targets = (pattern.num_rows, pattern.num_cols)[:: 1 if transpose else -1]
    x, out = torch.ones(sources, layout.width), torch.empty(targets, layout.width)
    for limit in (x.nbytes, x.nbytes - 1):
        monkeypatch.setattr(row_program, "CACHED_BYTES", limit)
        weight = torch.ones(pattern.num_entries)
        program = RowProgram(pattern, (weight, weight), layout)
        program.aggregate(out, x=x, transpose=transpose)
        program.run()
    return asked


@pytest.mark.parametrize("transpose", [False, True])
def test_rows_that_fill_more_than_the_cache_are_asked_for_early(monkeypatch, transpose):
    nodes = torch.arange(5)
    assert distances(monkeypatch, CSRPattern.from_sorted(nodes, 7 * nodes, 5, 40), transpose) == [NEAR, FAR]


@pytest.mark.parametrize(("ahead", "width", "cache"), [(NEAR, 64, "i32 3"), (FAR, 64, "i32 2"), (FAR, 8, "i32 2")])
def test_every_line_of_a_row_is_asked_for(ahead, width, cache):
    code = compiled_request(ahead, width)
    calls = [line for line in code.splitlines() if "call void @llvm.prefetch" in line]
    assert len(calls) == max(1, width * 4 // 64)
    assert all(f"i32 0, {cache}, i32 1" in call for call in calls)


def test_little_that_is_near_is_not_asked_for():
    assert "call void @llvm.prefetch" not in compiled_request(NEAR, 8)


def compiled_request(ahead, width):
    @numba.njit
    def ask(address):
        prefetch(address, 0, np.float32, width, ahead)

    ask.compile((numba.int64,))
    return ask.inspect_llvm(ask.signatures[0])
