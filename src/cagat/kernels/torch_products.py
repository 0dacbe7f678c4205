"""The same products in plain torch: they serve every device that numba does not, and are the check of the kernels."""

import torch
from torch import Tensor

from cagat.memory import require_memory


def _entries(rowptr: Tensor, col: Tensor) -> tuple[Tensor, Tensor]:
    """The row and the column of each entry, as torch's indexing takes them."""
    rows = torch.arange(rowptr.numel() - 1, device=rowptr.device)
    return torch.repeat_interleave(rows, rowptr.diff(), output_size=col.numel()), col.long()


def spmm(rowptr: Tensor, col: Tensor, weight: Tensor, x: Tensor) -> Tensor:
    """See :func:`cagat.kernels.products.spmm`."""
    row, col = _entries(rowptr, col)
    return x.new_zeros(rowptr.numel() - 1, x.size(1)).index_add_(0, row, weight[:, None] * x[col])


def spmm_heads(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    perm_t: Tensor,
    values: Tensor,
    x: Tensor,
    transpose: bool,
) -> Tensor:
    """See :func:`cagat.kernels.products.spmm_heads`."""
    row, col = _entries(rowptr, col)
    if transpose:
        row, col = col, row
    num_rows = (rowptr_t if transpose else rowptr).numel() - 1
    return x.new_zeros(num_rows, x.size(1), x.size(2)).index_add_(0, row, values[:, :, None] * x[col])


def sddmm_heads(rowptr: Tensor, col: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """See :func:`cagat.kernels.products.sddmm_heads`."""
    row, col = _entries(rowptr, col)
    return (a[row] * b[col]).sum(dim=-1)


def _logits(row: Tensor, col: Tensor, dst: Tensor, src: Tensor, edge: Tensor | None) -> Tensor:
    logits = dst[row] + src[col]
    return logits if edge is None else logits + edge


def edge_softmax(
    rowptr: Tensor, col: Tensor, dst: Tensor, src: Tensor, edge: Tensor | None, negative_slope: float
) -> Tensor:
    """See :func:`cagat.kernels.products.edge_softmax`."""
    row, col = _entries(rowptr, col)
    logits = torch.nn.functional.leaky_relu(_logits(row, col, dst, src, edge), negative_slope)
    index = row[:, None].expand_as(logits)
    peak = torch.full_like(dst, -torch.inf).scatter_reduce_(0, index, logits, "amax")
    powers = (logits - peak[row]).exp()
    total = torch.zeros_like(dst).index_add_(0, row, powers)
    return powers / total[row]


def edge_softmax_backward(
    rowptr: Tensor,
    col: Tensor,
    rowptr_t: Tensor,
    perm_t: Tensor,
    dst: Tensor,
    src: Tensor,
    edge: Tensor | None,
    negative_slope: float,
    softmax: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of :func:`edge_softmax` at ``dst``, at ``src`` and at ``edge``."""
    row, col = _entries(rowptr, col)
    mean = torch.zeros_like(dst).index_add_(0, row, softmax * grad)
    grad_logit = softmax * (grad - mean[row])
    grad_logit = torch.where(_logits(row, col, dst, src, edge) <= 0, negative_slope * grad_logit, grad_logit)
    grad_dst = torch.zeros_like(dst).index_add_(0, row, grad_logit)
    grad_src = torch.zeros_like(src).index_add_(0, col, grad_logit)
    return grad_dst, grad_src, grad_logit


def edge_diffusion(
    rowptr: Tensor,
    col: Tensor,
    weight: Tensor,
    rowptr_t: Tensor,
    col_t: Tensor,
    weight_t: Tensor,
    values: Tensor,
    transpose: bool,
) -> Tensor:
    """See :func:`cagat.kernels.products.edge_diffusion`."""
    num_nodes = rowptr.numel() - 1
    left_rowptr, left_col, left_weight = (rowptr_t, col_t, weight_t) if transpose else (rowptr, col, weight)
    _require_memory_for_pairs(rowptr, col, left_rowptr, left_col, values)
    row, col = _entries(rowptr, col)
    # Every path i -p-> e -> (i, q): the left neighbours p of i, joined with the entries e of row p.
    left_row, left_col = _entries(left_rowptr, left_col)
    pair, entry = _join(left_col, rowptr)
    terms = left_weight[pair, None] * values[entry]
    keys, slot = torch.unique(left_row[pair] * num_nodes + col[entry], return_inverse=True)
    if keys.numel() == 0:
        return torch.zeros_like(values)
    left_product = values.new_zeros(keys.numel(), values.size(1)).index_add_(0, slot, terms)
    # For every entry (i, j): the left neighbours q of j, at which row i of the left product is read where it is not 0.
    target, other = _join(col, left_rowptr)
    wanted = row[target] * num_nodes + left_col[other]
    place = torch.searchsorted(keys, wanted).clamp_(max=keys.numel() - 1)
    found = (keys[place] == wanted)[:, None]
    terms = torch.where(found, left_product[place], 0) * left_weight[other, None]
    return torch.zeros_like(values).index_add_(0, target, terms)


def _require_memory_for_pairs(
    rowptr: Tensor, col: Tensor, left_rowptr: Tensor, left_col: Tensor, values: Tensor
) -> None:
    """Raise unless there is memory for all pairs of neighbours, whose number grows with the squares of degrees."""
    if values.numel() == 0:
        return
    if values.device.type != "cpu":  # Other devices have a memory of their own, and say themselves when it is short.
        return
    num_nodes, row_bytes = rowptr.numel() - 1, values.size(1) * values.element_size()
    paths, reads = int(rowptr.diff()[left_col.long()].sum()), int(left_rowptr.diff()[col.long()].sum())
    products = min(paths, num_nodes**2)
    # Three numbers of each path and its term; of each product its key and value; four numbers of each reading, whether
    # there is something to read, its weight, and what is read, before and after weighting.
    reading = 4 * 8 + 1 + values.element_size() + 2 * row_bytes
    needed = paths * (3 * 8 + row_bytes) + products * (8 + row_bytes) + reads * reading
    require_memory(
        needed,
        f"A step of diffusion on the edges of {num_nodes} nodes with degrees up to {int(rowptr.diff().max())}",
        'Use float32 or float64, for which there are compiled loops, support="full", or a graph without such hubs.',
    )


def _join(nodes: Tensor, rowptr: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs (position in ``nodes``, entry of that node's row)."""
    counts = rowptr.diff()[nodes]
    position = torch.repeat_interleave(torch.arange(nodes.numel(), device=nodes.device), counts)
    first = torch.cumsum(counts, 0) - counts
    entry = torch.arange(position.numel(), device=nodes.device) - first[position] + rowptr[nodes].long()[position]
    return position, entry
