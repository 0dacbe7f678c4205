import torch

from cagat.kernels import CSRPattern

RING = [(0, 1), (1, 2), (2, 0)]


def pattern(entries: list[tuple[int, int]], rows: int = 3, cols: int = 3) -> CSRPattern:
    row, col = torch.tensor(sorted(entries)).t()
    return CSRPattern.from_sorted(row, col, rows, cols)


def test_an_undirected_graph_is_symmetric_and_its_transpose_takes_no_memory():
    made = pattern([*RING, *((j, i) for i, j in RING), (1, 1)])
    assert made.is_symmetric
    assert made.col_t is made.col
    assert made.rowptr_t is made.rowptr
    mirror = made.perm_t.long()
    assert torch.equal(made.rows()[mirror], made.col.long())
    assert torch.equal(made.col.long()[mirror], made.rows())
    assert made.to("cpu").is_symmetric


def test_a_directed_graph_is_not():
    made = pattern(RING)
    assert not made.is_symmetric
    assert not made.to("cpu").is_symmetric


def test_equal_degrees_are_not_enough():
    # Rows and columns have the same numbers of entries, at other places.
    assert not pattern([(0, 1), (1, 2), (2, 0), (0, 0)]).is_symmetric


def test_a_rectangle_is_not():
    assert not pattern([(0, 0), (0, 1)], rows=1, cols=2).is_symmetric
