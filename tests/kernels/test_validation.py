import pytest
import torch

from cagat.kernels.validation import check_edges, checked_weight, require_dense, require_tensor

EDGES = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([1.0], TypeError, r"got a list; convert with torch\.as_tensor\(given\)"),
        (None, TypeError, "got a NoneType"),
        (torch.ones(2, device="meta"), ValueError, "device meta and has no data; make it on a device"),
        (torch.ones(2).to_sparse(), TypeError, r"sparse_coo; pass given\.to_dense\(\)"),
    ],
)
def test_what_is_no_dense_tensor_is_refused(value, error, message):
    with pytest.raises(error, match=message):
        require_dense("given", value)


def test_any_layout_is_a_tensor():
    for layout in (torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        require_tensor("given", torch.eye(2) if layout is torch.strided else torch.eye(2).to_sparse(layout=layout))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_that_torch_computes_with_are_edges(dtype):
    check_edges(EDGES.to(dtype), 2)


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.half, torch.cfloat])
def test_other_types_are_no_edges(dtype):
    with pytest.raises(TypeError, match=rf"{dtype}; convert with edge_index\.long\(\)"):
        check_edges(EDGES.to(dtype), 2)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_edges_are_told_where_to_go(layout):
    with pytest.raises(TypeError, match="give its sources and targets"):
        check_edges(EDGES.to_sparse(layout=layout), 2)


def test_weights_whose_sum_is_no_number_are_refused():
    with pytest.raises(ValueError, match=r"up to 1e\+308 and add up to more.*scale them"):
        checked_weight(torch.full((2,), 1e308, dtype=torch.double), EDGES)
    assert checked_weight(torch.full((2, 1), 1e307, dtype=torch.double), EDGES).sum() == 2e307
