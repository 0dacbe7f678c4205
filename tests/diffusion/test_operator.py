"""The fused operator against the rounds of single products, which the dense reference checks."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck
from torch.testing import assert_close

from cagat import CSRGraph, reference
from cagat.diffusion import Coefficients, Diffusion, GATAttention, can_attend, diffuse, diffuse_features, operator, plan
from cagat.diffusion.operator import fused_diffusion, fused_gradients
from cagat.kernels import dropout, edge_softmax, spmm_heads
from graph_strategies import RandomGraph, graphs

RING = RandomGraph(torch.stack([torch.arange(9), torch.arange(9).roll(1)]), 9, None)
SMALL = RandomGraph(torch.tensor([[0, 1, 2, 2, 3], [1, 2, 0, 1, 3]]), 5, None)
USUAL = Coefficients(0.4, 0.3, 0.1)
# Machine code is made for each size, and takes seconds. Most tests are content with two sizes of float64: one head and
# three channels; and three heads, which are padded to four, with as many channels as keep panels of rows at 16 lanes.
SWITCHES = [
    {"affinity": affinity, "feedback": feedback, "normalization": normalization}
    for affinity in ("edges", "full")
    for feedback in (False, True)
    for normalization in ("row", "sym", "walk", "gcn")
]


def inputs(graph: RandomGraph, heads: int, channels: int, dtype: torch.dtype = torch.float64):
    """A graph, Z, and both weights of the attention."""
    made = CSRGraph.from_edge_index(*graph, dtype=dtype)
    generator = torch.Generator().manual_seed(0)
    shapes = [(made.num_nodes, heads, channels), (1, heads, channels), (1, heads, channels)]
    return made, *(torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in shapes)


def given_attention(made: CSRGraph, heads: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """As after dropout: no row sums to 1."""
    return torch.rand(made.num_entries, heads, generator=torch.Generator().manual_seed(1), dtype=dtype).requires_grad_()


def learnt(coefficients: Coefficients, heads: int) -> Coefficients:
    """Coefficients that differ by head, where they are not switched off."""
    spread = torch.linspace(0.9, 1.0, heads, dtype=torch.float64)
    return Coefficients(*(value * spread if 0 < value < 1 else value for value in coefficients))


def outcome(H: torch.Tensor, *wanted):
    """The features, and the gradients at the inputs in a fixed direction."""
    direction = torch.linspace(-1, 1, H.numel(), dtype=H.dtype).view_as(H)
    return (H.detach(), *torch.autograd.grad(H, wanted, direction, materialize_grads=True))


def single_products(Z, attention, made, coefficients, diffusion):
    if isinstance(attention, GATAttention):
        G = edge_softmax(made.pattern, *((Z * w).sum(dim=-1) for w in attention[:2]), None, attention.negative_slope)
        attention = dropout(G, attention.dropout, training=True)
        if diffusion.normalization == "gcn":
            attention = attention * made.attention_scale(G.dtype)[:, None]
    return diffuse(Z, attention, made, coefficients, diffusion).H


def assert_same(one, other, tolerance=1e-10):
    # Affinity makes features grow with every round, and differences of large ones are not exact; nor is a gradient in
    # which they cancel.
    largest = max((theirs.abs().max().item() for theirs in other if theirs.numel()), default=0.0)
    for ours, theirs in zip(one, other, strict=True):
        scale = max(1.0, theirs.abs().max().item()) if theirs.numel() else 1.0
        rounding = torch.finfo(theirs.dtype).eps * largest
        assert_close(ours, theirs, rtol=tolerance, atol=tolerance * scale + rounding)


@settings(max_examples=120, deadline=None)
@given(
    graph=graphs(),
    K=st.integers(0, 3),
    T=st.integers(0, 3),
    alpha=st.sampled_from([0.0, 0.4, 1.0]),
    lam=st.sampled_from([0.0, 0.3, 1.0]),
    xi=st.sampled_from([0.0, 0.1]),
    learns=st.booleans(),
    shape=st.sampled_from([(1, 3), (3, 9), (4, 4)]),  # Narrow; three panels with remainders; nothing is padded.
    switches=st.sampled_from(SWITCHES),
    p=st.sampled_from([None, 0.0, 0.5]),
)
def test_equals_the_rounds_of_single_products(graph, K, T, alpha, lam, xi, learns, shape, switches, p):
    made, Z, dst, src = inputs(graph, *shape)
    coefficients, diffusion = Coefficients(alpha, lam, xi), Diffusion(K, T, **switches)
    wanted = [Z]
    if learns:
        coefficients = learnt(coefficients, shape[0])
        tensors = [c.requires_grad_() for c in coefficients if isinstance(c, torch.Tensor)]
        wanted += tensors
    if p is None:
        attention = given_attention(made, shape[0])
        wanted.append(attention)
    else:
        attention = GATAttention(dst, src, 0.2, p)
        wanted += [dst, src]
        if not can_attend(Z, made, coefficients, diffusion, p):
            assert lam == 0
            return
    outcomes = []
    for function in (diffuse_features, single_products):
        torch.manual_seed(0)  # The same entries are dropped.
        outcomes.append(outcome(function(Z, attention, made, coefficients, diffusion), *wanted))
    assert_same(*outcomes)


@pytest.mark.parametrize("switches", SWITCHES[::3] + SWITCHES[1::5])
def test_many_rounds_and_steps(switches):
    """Each step has counters of its own, of which there must be enough."""
    made, Z, *weights = inputs(SMALL, 1, 3)
    arguments = (GATAttention(*weights, 0.2, 0.0), made, Coefficients(0.4, 0.3, 0.01), Diffusion(6, 5, **switches))
    assert_same(*(outcome(of(Z, *arguments), Z, *weights) for of in (diffuse_features, single_products)), 1e-7)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((8, 8), torch.float32),  # One panel that is laid out in registers, and whose sums are made in two pieces.
        ((8, 16), torch.float32),  # Two such panels.
        ((7, 24), torch.float32),  # Three panels, and a head that is padded.
        ((1, 7), torch.float32),
        ((32, 2), torch.float64),  # Heads alone fill a panel.
        ((33, 2), torch.float64),  # More heads than a panel of a row can hold.
    ],
)
def test_all_sizes(shape, dtype):
    graph = RandomGraph(torch.randint(0, 60, (2, 400), generator=torch.Generator().manual_seed(1)), 60, None)
    made, Z, *_ = inputs(graph, *shape, dtype)
    G, diffusion = given_attention(made, shape[0], dtype), Diffusion(3, 2)
    ours = outcome(diffuse_features(Z, G, made, Coefficients(0.4, 0.3, 1e-3), diffusion), Z, G)
    theirs = outcome(diffuse(Z, G, made, Coefficients(0.4, 0.3, 1e-3), diffusion).H, Z, G)
    assert ours[0].dtype == dtype
    assert_same(ours, theirs, 1e-4 if dtype == torch.float32 else 1e-10)


@pytest.mark.parametrize("switches", SWITCHES[::5], ids=str)
def test_equals_the_dense_reference(switches):
    made, Z, *_ = inputs(RING, 3, 4)
    A, edge = reference.dense_adjacency(*RING)
    dense = reference.cagat_layer(Z.detach(), *torch.ones(2, 3, 4).double(), A, edge, xi=0.1, **switches)
    G = dense.G[:, made.pattern.rows(), made.pattern.col.long()].t()
    assert_close(diffuse_features(Z.detach(), G, made, USUAL, Diffusion(3, 2, **switches)), dense.H)


CASES = [
    (USUAL, Diffusion(2, 2)),
    (Coefficients(0.4, 0.3, 0.0), Diffusion(2, 2)),
    (Coefficients(0.0, 0.3, 0.1), Diffusion(2, 1)),
    (Coefficients(0.0, 1.0, 0.0), Diffusion(1, 1)),
    (Coefficients(1.0, 0.5, 0.1), Diffusion(1, 3, normalization="walk")),
    (USUAL, Diffusion(0, 0)),
    (USUAL, Diffusion(2, 1, affinity="full")),
    (USUAL, Diffusion(2, 2, feedback=True)),
    (USUAL, Diffusion(2, 1, affinity="full", feedback=True)),
    (USUAL, Diffusion(2, 1, normalization="gcn")),
]


@pytest.mark.parametrize(("learns", "p"), [(True, None), (False, 0.5)])
@pytest.mark.parametrize(("coefficients", "diffusion"), CASES)
def test_first_and_second_gradients(coefficients, diffusion, learns, p):
    made, Z, dst, src = inputs(SMALL, 3, 3)
    names = [name for name, value in coefficients._asdict().items() if learns and 0 < value < 1]
    tensors = [getattr(learnt(coefficients, 3), name).requires_grad_() for name in names]
    attention = [given_attention(made, 3)] if p is None else [dst, src]

    def features(Z, *tensors):
        torch.manual_seed(0)  # The same entries are dropped whenever it is called.
        own = coefficients._replace(**dict(zip(names, tensors, strict=False)))
        given = tensors[len(names) :]
        return diffuse_features(Z, given[0] if p is None else GATAttention(*given, 0.2, p), made, own, diffusion)

    assert gradcheck(features, (Z, *tensors, *attention))
    # In random directions: one by one, the second derivatives took most of this room's time.
    assert gradgradcheck(features, (Z, *tensors, *attention), fast_mode=True)


@pytest.mark.parametrize("frozen", [(), (0,), (1,), (2,), (1, 2), (0, 2)])
def test_second_gradients_where_something_is_frozen(frozen):
    made, *tensors = inputs(SMALL, 3, 3)
    free = [tensor for place, tensor in enumerate(tensors) if place not in frozen]
    for place in frozen:
        tensors[place].requires_grad_(False)
    outcomes = []
    for function in (diffuse_features, single_products):
        H = function(tensors[0], GATAttention(*tensors[1:], 0.2, 0.0), made, USUAL, Diffusion(2, 2))
        plain = torch.autograd.grad(H.square().sum(), free, retain_graph=True)
        first = torch.autograd.grad(H.square().sum(), free, create_graph=True)
        assert_same(plain, first)  # What is made to be differentiated again is the same gradient.
        penalty = sum(gradient.square().sum() for gradient in first)
        outcomes.append(torch.autograd.grad(penalty, free))
    assert_same(*outcomes)


def test_coefficients_at_the_ends_of_their_ranges():
    # Learnt coefficients may come as near to zero as float32 has numbers.
    made, Z, *_ = inputs(SMALL, 2, 3, torch.float32)
    G = given_attention(made, 2, torch.float32)
    ends = [torch.tensor([0.0, 1e-30]).requires_grad_() for _ in range(3)]
    ours = outcome(diffuse_features(Z, G, made, Coefficients(*ends), Diffusion(2, 2)), Z, G, *ends)
    theirs = outcome(diffuse(Z, G, made, Coefficients(*ends), Diffusion(2, 2)).H, Z, G, *ends)
    assert_same(ours, theirs, 1e-5)


def arguments(made, Z, dst, src, p, coefficients, diffusion, is_group):
    """What the operator takes for all of three heads, or for the second half of six."""
    tensors = operator._as_tensors(made, diffusion.normalization, Z.dtype)
    weights = [None if c == 0 else Z.new_full((Z.size(1),), c).requires_grad_() for c in coefficients]
    switches = (diffusion.K, diffusion.T, diffusion.affinity == "full", diffusion.feedback)
    seed = torch.tensor([7]) if p else None
    attention = (given_attention(made, Z.size(1)), None, None) if p is None else (None, dst, src)
    is_scaled = diffusion.normalization == "gcn" and p is not None
    scale = made.local_attention_scale(Z.dtype) if is_scaled else None
    numbers = (p or 0.0, 0.2, 3 if is_group else 0, 6 if is_group else 3)
    return (tensors, Z, *attention, seed, scale, *weights, *numbers, *switches, diffusion.normalization == "walk")


def check_operators(p, coefficients, diffusion, is_group=False, **options):
    """Both operators as torch checks them."""
    given = arguments(*inputs(RING, 3, 4), p, coefficients, diffusion, is_group)
    opcheck(fused_diffusion.traced, given, **options)
    kept = [tensor.detach() for tensor in fused_diffusion(*given)[1:]]
    detached = [value.detach() if isinstance(value, torch.Tensor) else value for value in given]
    opcheck(fused_gradients, (*detached, True, kept, torch.ones_like(detached[1])), **options)


@pytest.mark.parametrize("p", [None, 0.0, 0.5])
def test_operators_keep_torchs_rules(p):
    check_operators(p, *CASES[0 if p is None else -1])


@pytest.mark.parametrize(("coefficients", "diffusion"), CASES)
def test_operators_foretell_the_shapes_of_what_they_return(coefficients, diffusion):
    # How much is kept for the gradient depends on the switches; by which rules torch traces does not.
    for p, is_group in ((None, False), (0.0, True), (0.5, False), (0.5, True)):
        check_operators(p, coefficients, diffusion, is_group, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("switches", [{}, {"feedback": True}, {"affinity": "full"}], ids=str)
def test_bits_do_not_depend_on_the_number_of_threads(switches):
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 4000, (2, 60000), generator=generator)
    edge_index[1, :3000] = 7
    made, Z, *_ = inputs(RandomGraph(edge_index, 4000, None), 8, 8, torch.float32)
    G = given_attention(made, 8, torch.float32)
    before = torch.get_num_threads()
    try:
        for xi in (0.0, 1e-3):
            weights = [torch.full((8,), value).requires_grad_() for value in (0.4, 0.3)]
            coefficients = Coefficients(*weights, xi)
            found = []
            for number in (1, 2, 3, 7, 7):
                torch.set_num_threads(number)
                H = diffuse_features(Z, G, made, coefficients, Diffusion(3, 2, **switches))
                found.append(outcome(H, Z, G, *weights))
            assert all(all(map(torch.equal, one, found[0])) for one in found[1:])
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("K", "T", "xi", "switches"),
    [
        (3, 2, 0.1, {}),
        (1, 6, 0.0, {}),
        (1, 40, 0.0, {}),
        (4, 4, 0.1, {"feedback": True}),
        (2, 2, 0.1, {"affinity": "full"}),
    ],
)
def test_the_memory_of_a_step_is_known_before(K, T, xi, switches, monkeypatch):
    graph = RandomGraph(torch.randint(0, 2000, (2, 10000), generator=torch.Generator().manual_seed(0)), 2000, None)
    made, Z, dst, src = inputs(graph, 1, 3)
    taken, take = [], plan.scratch

    def counted(*size, dtype):
        taken.append(math.prod(size) * dtype.itemsize)
        return take(*size, dtype=dtype)

    monkeypatch.setattr(plan, "scratch", counted)
    coefficients, diffusion = Coefficients(0.4, 0.3, xi), Diffusion(K, T, **switches)
    diffuse_features(Z, GATAttention(dst, src, 0.2, 0.5), made, coefficients, diffusion).sum().backward()
    padding = 4 / 3  # Three channels are laid out as four.
    assert 0.7 < sum(taken) / operator._bytes_per_head(Z, made, coefficients, diffusion) / padding < 1.3


@pytest.mark.parametrize("switches", [{}, {"feedback": True, "affinity": "full"}], ids=str)
@pytest.mark.parametrize("p", [None, 0.0, 0.5])
def test_heads_in_groups_are_as_all_at_once(switches, p, monkeypatch):
    made, Z, dst, src = inputs(RING, 2, 3)
    coefficients, diffusion = learnt(USUAL, 2), Diffusion(2, 2, **switches)
    attention = given_attention(made, 2) if p is None else GATAttention(dst, src, 0.2, p)
    wanted = [Z, *([attention] if p is None else [dst, src]), *(c.requires_grad_() for c in coefficients)]
    monkeypatch.setattr(operator, "AT_ONCE", 0)
    outcomes = []
    for function in (diffuse_features, single_products):
        torch.manual_seed(0)
        H = function(Z, attention, made, coefficients, diffusion)
        first = torch.autograd.grad(H.square().sum(), wanted, create_graph=True)
        outcomes.append([H, *first, *torch.autograd.grad(sum(one.square().sum() for one in first), wanted)])
    assert outcomes[0][0].grad_fn.name() == "CatBackward0"
    assert_same(*outcomes)


@pytest.mark.parametrize("switches", [{}, {"feedback": True, "affinity": "full"}, {"normalization": "walk"}], ids=str)
@pytest.mark.parametrize("p", [None, 0.0, 0.5])
def test_a_group_keeps_less_and_makes_the_rest_again_with_the_same_bits(switches, p, monkeypatch):
    made, Z, dst, src = inputs(RING, 2, 3)
    attention = given_attention(made, 2) if p is None else GATAttention(dst, src, 0.2, p)
    wanted = [Z, *([attention] if p is None else [dst, src])]
    monkeypatch.setattr(operator, "AT_ONCE", 0)
    kept, outcomes = [], []
    for _ in range(2):
        torch.manual_seed(0)
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(lambda one, to=saved: to.append(one.numel()) or one, lambda x: x):
            H = diffuse_features(Z, attention, made, USUAL, Diffusion(3, 2, **switches))
        outcomes.append(outcome(H, *wanted))
        kept.append(sum(saved))
        monkeypatch.setattr(operator.Inputs, "is_group", False)
    assert kept[0] < kept[1]
    assert all(map(torch.equal, *outcomes))


@pytest.mark.parametrize(("limit", "sizes"), [(80, [8, 6, 5, 1]), (50, [4, 3, 5, 1]), (20, [2, 2, 1, 1]), (0, [1] * 4)])
def test_as_many_heads_as_fit_are_worked_on_together(limit, sizes):
    assert [operator.heads_at_once(heads, 10, limit) for heads in (8, 6, 5, 1)] == sizes


def test_strided_inputs_and_gradients():
    made, Z, *_ = inputs(RING, 3, 4)
    G = given_attention(made, 3)
    expected = diffuse_features(Z, G, made, USUAL, Diffusion(2, 2))
    strided = Z.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_()
    H = diffuse_features(strided, G.detach().t().contiguous().t().requires_grad_(), made, USUAL, Diffusion(2, 2))
    assert torch.equal(H, expected)
    # The gradient of a sum is one number, expanded.
    assert torch.equal(torch.autograd.grad(H.sum(), strided)[0], torch.autograd.grad(expected.sum(), Z)[0])


def test_broken_numbers_stay_visible():
    made, Z, *_ = inputs(RING, 3, 4)
    broken = Z.detach().clone()
    broken[4, 1, 2] = torch.nan
    H = diffuse_features(broken, given_attention(made, 3), made, Coefficients(0.4, 0.3, 0.0), Diffusion(1, 1))
    assert H[:, 1, 2].isnan().any()
    assert not H[:, 0].isnan().any()


def test_works_beside_a_transform_of_torch_func():
    made, *tensors = inputs(SMALL, 3, 3)
    Z, dst, src = (tensor.detach() for tensor in tensors)

    def features():
        return diffuse_features(Z, GATAttention(dst, src, 0.2, 0.0), made, USUAL, Diffusion(1, 1))

    scaled = torch.func.grad(lambda factor: (factor * features()).sum())
    assert_close(scaled(torch.tensor(2.0, dtype=torch.float64)), features().sum())


def test_dropout_drops_entries_and_keeps_the_mean():
    edge_index = torch.randint(0, 300, (2, 9000), generator=torch.Generator().manual_seed(0))
    made, *tensors = inputs(RandomGraph(edge_index, 300, None), 3, 4)
    Z, dst, src = (tensor.detach() for tensor in tensors)
    plain, once = Coefficients(0.0, 1.0, 0.0), Diffusion(1, 1)
    torch.manual_seed(0)
    attention = GATAttention(dst, src, 0.2, 0.5)
    runs = torch.stack([diffuse_features(Z, attention, made, plain, once) for _ in range(200)])
    assert not torch.equal(runs[0], runs[1])
    # An entry is dropped or doubled, so its variance is its square. Of 3600 means, none is off by five deviations.
    G = edge_softmax(made.pattern, (Z * dst).sum(dim=-1), (Z * src).sum(dim=-1), None, 0.2)
    deviation = (spmm_heads(made.pattern, G**2, Z**2) / len(runs)).sqrt()
    off = (runs.mean(dim=0) - diffuse_features(Z, attention._replace(dropout=0.0), made, plain, once)) / deviation
    assert off.abs().max() < 5
    assert 0.9 < off.std() < 1.1


def test_when_the_attention_must_be_given():
    made, Z, *_ = inputs(SMALL, 2, 3)
    assert can_attend(Z, made, USUAL, Diffusion(), 0.5)
    assert not can_attend(Z, made, USUAL, Diffusion(support="edges"), 0.0)
    assert not can_attend(Z, made, USUAL._replace(lam=0.0), Diffusion(), 0.0)
    assert not can_attend(Z, made, USUAL, Diffusion(), 1.0)


@pytest.mark.parametrize("learns", [False, True])
def test_single_products_of_groups_of_heads_are_those_of_all(learns, monkeypatch):
    made, Z, *_ = inputs(RING, 6, 3)
    G, diffusion = given_attention(made, 6).detach(), Diffusion(2, 1, support="edges")
    coefficients = learnt(USUAL, 6) if learns else USUAL
    whole = diffuse(Z.detach(), G, made, coefficients, diffusion).H
    widths = []
    monkeypatch.setattr(operator, "diffuse", lambda Z, *others: widths.append(Z.size(1)) or diffuse(Z, *others))
    monkeypatch.setattr(operator, "SINGLE_AT_ONCE", 2 * 2 * 3 * 9 * 3 * 8)  # Room for two heads.
    with torch.no_grad():
        assert_close(diffuse_features(Z.detach(), G, made, coefficients, diffusion), whole)
    assert widths == [2, 2, 2]
