import ctypes
import sys
from pathlib import Path

import psutil
import pytest
import torch
from torch.testing import assert_close

from cagat import memory, reference
from processes import in_a_process

M_MMAP_THRESHOLD = -3


def test_adjacency_by_hand():
    edge_index = torch.tensor([[0, 0, 2], [1, 1, 2]])
    A, edge = reference.dense_adjacency(edge_index, 3)
    assert A.tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    assert torch.equal(edge, A > 0)
    A, edge = reference.dense_adjacency(edge_index, 3, torch.tensor([2.0, 3.0, 0.0]), add_self_loops=False)
    assert A.tolist() == [[0, 0, 0], [5, 0, 0], [0, 0, 0]]
    assert edge.tolist() == [[False, False, False], [True, False, False], [False, False, True]]


def test_diffusion_matrix_by_hand():
    A = torch.tensor([[1.0, 3.0], [3.0, 6.0]])
    assert_close(reference.diffusion_matrix(A), torch.tensor([[0.25, 0.75], [1 / 3, 2 / 3]]))
    assert_close(reference.diffusion_matrix(A, "sym"), torch.tensor([[0.25, 0.5], [0.5, 2 / 3]]))


def two_nodes(**options):
    """Two connected nodes, G = 1/2 everywhere since the attention vectors are zero, and Z = (1, 3)."""
    A, edge = reference.dense_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    Z = torch.tensor([1.0, 3.0]).view(2, 1, 1)
    zero = torch.zeros(1, 1)
    return reference.cagat_layer(Z, zero, zero, A, edge, **options)


def test_layer_without_rounds_by_hand():
    result = two_nodes(K=0, lam=0.5)
    assert result.G.tolist() == result.S.tolist() == [[[0.5, 0.5], [0.5, 0.5]]]
    assert result.H.flatten().tolist() == [1.5, 2.5]  # Half of the mean 2, half of their own.


def test_one_step_by_hand():
    # H = (1.5, 2.5); Abar S Abar^T = 1/2 everywhere, so that S = 1/2 + 0.1 H H^T.
    result = two_nodes(K=1, T=1, alpha=0.4, lam=0.5, xi=0.1)
    S = torch.tensor([[0.5 + 0.225, 0.5 + 0.375], [0.5 + 0.375, 0.5 + 0.625]])
    assert_close(result.S[0], S)
    expected = 0.5 * S @ torch.tensor([1.0, 3.0]) + 0.5 * torch.tensor([1.0, 3.0])
    assert_close(result.H.flatten(), expected)


def test_s_is_not_reset_between_rounds_and_feedback_aggregates_h():
    one = two_nodes(K=1, T=1, alpha=0.4, lam=0.5, xi=0.1, feedback=True)
    H = 0.5 * one.S[0] @ torch.tensor([1.5, 2.5]) + 0.5 * torch.tensor([1.0, 3.0])
    assert_close(one.H.flatten(), H)
    two = two_nodes(K=2, T=1, alpha=0.4, lam=0.5, xi=0.1, feedback=True)
    Abar = torch.full((2, 2), 0.5)
    S = 0.4 * Abar @ one.S[0] @ Abar.T + 0.6 * 0.5 + 0.1 * H[:, None] * H[None, :]
    assert_close(two.S[0], S)


def test_edge_support_and_edge_affinity_differ_from_full():
    # A path 0 - 1 - 2: the pair (0, 2) is no edge.
    A, edge = reference.dense_adjacency(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    Z, zero = torch.tensor([1.0, 2.0, 4.0]).view(3, 1, 1), torch.zeros(1, 1)
    layer = {
        (support, affinity): reference.cagat_layer(
            Z, zero, zero, A, edge, K=1, T=1, xi=0.1, support=support, affinity=affinity
        )
        for support, affinity in (("full", "full"), ("full", "edges"), ("edges", "edges"))
    }
    H = 0.3 * layer["full", "full"].G[0] @ Z.flatten() + 0.7 * Z.flatten()
    assert layer["edges", "edges"].S[0, 0, 2] == 0
    # The context of (0, 2): A leads 0 to {0, 1} and 2 to {1, 2}, where G is 1/2, 0, 1/3 and 1/3.
    context = 0.4 * 0.25 * (1 / 2 + 0 + 1 / 3 + 1 / 3)
    assert_close(layer["full", "edges"].S[0, 0, 2], torch.tensor(context))
    assert_close(layer["full", "full"].S[0, 0, 2], context + 0.1 * H[0] * H[2])


def test_refuses_what_does_not_fit_and_names_bytes_and_alternative():
    Z = torch.empty(1, 1, 1).expand(10**6, 8, 8)
    with pytest.raises(memory.OutOfMemoryError, match=r"bytes.*CaGATConv"):
        reference.cagat_layer(Z, torch.zeros(8, 8), torch.zeros(8, 8), torch.eye(1), torch.eye(1))
    with pytest.raises(memory.OutOfMemoryError, match=r"9000000000000 bytes.*CaGATConv"):
        reference.dense_adjacency(torch.empty(2, 0), 10**6)


def _peaks_by_what_was_told() -> list[float]:
    # Matrices that are too many for the memory are larger than what malloc keeps for itself: let it keep nothing.
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 10**6)
    told = []
    reference.require_memory = lambda needed, *_: told.append(needed)

    def layer(n, grad, alpha):
        Z, att = torch.randn(n, 4, 8, requires_grad=True), torch.randn(4, 8)
        A, edge = torch.eye(n, dtype=torch.float64), torch.eye(n, dtype=torch.bool)
        before = psutil.Process().memory_info().rss
        with torch.set_grad_enabled(grad):
            result = reference.cagat_layer(Z, att, att, A, edge, alpha=alpha)
            if grad:
                result.H.sum().backward()
        return before

    layer(10, True, 0.4)  # What torch loads late is not part of the need.
    ratios = []
    # By growing need, since a process has one peak.
    for grad, alpha in ((False, 0.4), (True, 0.4), (True, torch.full((4,), 0.4, requires_grad=True))):
        before = layer(800, grad, alpha)
        peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
        ratios.append((peak - before) / told[-1])
    return ratios


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_the_need_is_estimated_well():
    ratios = in_a_process(_peaks_by_what_was_told)
    assert len(ratios) == 3
    assert all(0.75 < ratio < 1.25 for ratio in ratios), ratios
