"""The products in plain torch: they serve every device that numba does not, and are the check of the compiled loops."""

import torch
from torch import Tensor

from cagat.kernels.csr_pattern import CSRPattern
from cagat.memory import require_memory


def spmm(pattern: CSRPattern, weights: list[Tensor], x: Tensor, transpose: bool) -> Tensor:
    """See :func:`cagat.kernels.operators.spmm`."""
    return spmm_heads(pattern, weights[0][:, None], x[:, None], transpose).squeeze(1)


def spmm_heads(pattern: CSRPattern, values: Tensor, x: Tensor, transpose: bool) -> Tensor:
    """See :func:`cagat.kernels.operators.spmm_heads`."""
    row, col, num_rows = pattern.rows(), pattern.col.long(), pattern.num_rows
    if transpose:
        row, col, num_rows = col, row, pattern.num_cols
    return x.new_zeros(num_rows, x.size(1), x.size(2)).index_add_(0, row, values[:, :, None] * x[col])


def sddmm_heads(pattern: CSRPattern, a: Tensor, b: Tensor) -> Tensor:
    """See :func:`cagat.kernels.operators.sddmm_heads`."""
    return (a[pattern.rows()] * b[pattern.col.long()]).sum(dim=-1)


def edge_softmax(pattern: CSRPattern, dst: Tensor, src: Tensor, edge: Tensor | None, negative_slope: float) -> Tensor:
    """See :func:`cagat.kernels.operators.edge_softmax`."""
    row = pattern.rows()
    logits = torch.nn.functional.leaky_relu(_logits(pattern, dst, src, edge), negative_slope)
    index = row[:, None].expand_as(logits)
    peak = torch.full_like(dst, -torch.inf).scatter_reduce_(0, index, logits, "amax")
    powers = (logits - peak[row]).exp()
    total = torch.zeros_like(dst).index_add_(0, row, powers)
    return powers / total[row]


def edge_softmax_backward(
    pattern: CSRPattern,
    dst: Tensor,
    src: Tensor,
    edge: Tensor | None,
    negative_slope: float,
    softmax: Tensor,
    grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of :func:`edge_softmax` at ``dst``, at ``src`` and at ``edge``."""
    row = pattern.rows()
    mean = torch.zeros_like(dst).index_add_(0, row, softmax * grad)
    grad_logit = softmax * (grad - mean[row])
    grad_logit = torch.where(_logits(pattern, dst, src, edge) <= 0, negative_slope * grad_logit, grad_logit)
    grad_dst = torch.zeros_like(dst).index_add_(0, row, grad_logit)
    grad_src = torch.zeros_like(src).index_add_(0, pattern.col.long(), grad_logit)
    return grad_dst, grad_src, grad_logit


def _logits(pattern: CSRPattern, dst: Tensor, src: Tensor, edge: Tensor | None) -> Tensor:
    logits = dst[pattern.rows()] + src[pattern.col.long()]
    return logits if edge is None else logits + edge


def edge_diffusion(pattern: CSRPattern, weights: list[Tensor], values: Tensor, transpose: bool) -> Tensor:
    """See :func:`cagat.kernels.operators.edge_diffusion`."""
    left_rowptr, left_col = (pattern.rowptr_t, pattern.col_t) if transpose else (pattern.rowptr, pattern.col)
    left_col, left_weight, num_nodes = left_col.long(), weights[transpose], pattern.num_rows
    _require_memory_for_pairs(pattern, left_rowptr, left_col, values)
    row, col = pattern.rows(), pattern.col.long()
    # Every path i -p-> e -> (i, q): the left neighbours p of i, joined with the entries e of row p.
    left_row = col[pattern.perm_t.long()] if transpose else row
    pair, entry = _join(left_col, pattern.rowptr)
    terms = left_weight[pair, None] * values[entry]
    keys, slot = torch.unique(left_row[pair] * num_nodes + col[entry], return_inverse=True)
    if keys.numel() == 0:
        return torch.zeros_like(values)
    left_product = values.new_zeros(keys.numel(), values.size(1)).index_add_(0, slot, terms)
    # For every entry (i, j): the left neighbours q of j, at which row i of the left product is read where it is not 0.
    target, other = _join(col, left_rowptr)
    wanted = row[target] * num_nodes + left_col[other]
    found = torch.searchsorted(keys, wanted).clamp_(max=keys.numel() - 1)
    terms = torch.where((keys[found] == wanted)[:, None], left_product[found], 0) * left_weight[other, None]
    return torch.zeros_like(values).index_add_(0, target, terms)


def _require_memory_for_pairs(pattern: CSRPattern, left_rowptr: Tensor, left_col: Tensor, values: Tensor) -> None:
    """Raise unless there is memory for all pairs of neighbours, whose number grows with the squares of degrees."""
    if values.numel() == 0 or values.device.type != "cpu":  # Other devices say themselves when their memory is short.
        return
    degrees, num_nodes, row_bytes = pattern.rowptr.diff(), pattern.num_rows, values.size(1) * values.element_size()
    paths, reads = int(degrees[left_col].sum()), int(left_rowptr.diff()[pattern.col.long()].sum())
    # Three numbers of each path and its term; of each product its key and value; four numbers of each reading, whether
    # there is something to read, its weight, and what is read, before and after weighting.
    reading = 4 * 8 + 1 + values.element_size() + 2 * row_bytes
    needed = paths * (3 * 8 + row_bytes) + min(paths, num_nodes**2) * (8 + row_bytes) + reads * reading
    require_memory(
        needed,
        f"A step of diffusion on the edges of {num_nodes} nodes with degrees up to {int(degrees.max())}",
        'Use float32 or float64, for which there are compiled loops, support="full", or a graph without such hubs.',
    )


def _join(nodes: Tensor, rowptr: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs (position in ``nodes``, entry of that node's row)."""
    counts = rowptr.diff()[nodes]
    position = torch.repeat_interleave(torch.arange(nodes.numel(), device=nodes.device), counts)
    first = torch.cumsum(counts, 0) - counts
    entry = torch.arange(position.numel(), device=nodes.device) - first[position] + rowptr[nodes].long()[position]
    return position, entry
