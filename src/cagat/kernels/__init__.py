"""The CSR graph and its sparse products: numba on the CPU, plain torch on every other device."""

from cagat.kernels.csr_graph import CSRGraph
from cagat.kernels.csr_pattern import CSRPattern
from cagat.kernels.graph_cache import prepare_graph
from cagat.kernels.operators import dropout, edge_diffusion, edge_softmax, sddmm_heads, spmm, spmm_heads
from cagat.kernels.threads import set_kernel_threads

__all__ = [
    "CSRGraph",
    "CSRPattern",
    "dropout",
    "edge_diffusion",
    "edge_softmax",
    "prepare_graph",
    "sddmm_heads",
    "set_kernel_threads",
    "spmm",
    "spmm_heads",
]
