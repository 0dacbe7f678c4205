"""Algorithm 1 of the paper, word for word: the oracle that every fast path is compared with.

Everything here is dense, n x n, one head after the other, and written to be checked against the paper by eye. It shares
no code with the fast paths. Do not use it for work: it takes O(K T n^3) time and O(K T n^2) memory.
"""

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from cagat.memory import require_memory

_ALTERNATIVE = "Use cagat.CaGATConv, which computes the same without n x n matrices."


class ReferenceResult(NamedTuple):
    """What one layer computes.

    Attributes:
        H: The new features before the activation, shape ``(n, heads, channels)``.
        S: The context-aware attention after the last round, shape ``(heads, n, n)``.
        G: GAT's attention, shape ``(heads, n, n)``.
    """

    H: Tensor
    S: Tensor
    G: Tensor


def dense_adjacency(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None, add_self_loops: bool = True
) -> tuple[Tensor, Tensor]:
    """The matrix A and the mask of its entries: ``A[i, j]`` is the weight of the edge j -> i.

    A duplicate edge counts once without weights and adds up with them; an added self-loop has weight 1.
    """
    require_memory(9 * num_nodes**2, f"A dense adjacency matrix of {num_nodes} nodes", _ALTERNATIVE)
    A = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    edge = torch.zeros(num_nodes, num_nodes, dtype=torch.bool)
    for e in range(edge_index.size(1)):
        j, i = int(edge_index[0, e]), int(edge_index[1, e])
        A[i, j] = 1.0 if edge_weight is None else A[i, j] + float(edge_weight[e])
        edge[i, j] = True
    if add_self_loops:
        A.diagonal()[~edge.diagonal()] = 1.0
        edge.fill_diagonal_(True)
    return A, edge


def diffusion_matrix(A: Tensor, normalization: Literal["row", "sym", "walk", "gcn"] = "row") -> Tensor:
    """Line 3: ``D^-1 A``, or with our extension ``D^-1/2 A D^-1/2``; the inverse of an empty degree is 0."""
    degree = A.sum(dim=1)
    if normalization in ("row", "walk"):
        return torch.where(degree > 0, 1 / degree, 0).diag() @ A
    root = torch.where(degree > 0, 1 / degree.sqrt(), 0).diag()
    return root @ A @ root


def cagat_layer(
    Z: Tensor,
    att_src: Tensor,
    att_dst: Tensor,
    A: Tensor,
    edge: Tensor,
    *,
    K: int = 3,
    T: int = 2,
    alpha: float | Tensor = 0.4,
    lam: float | Tensor = 0.3,
    xi: float | Tensor = 1e-3,
    support: Literal["full", "edges"] = "full",
    affinity: Literal["edges", "full"] = "edges",
    feedback: bool = False,
    normalization: Literal["row", "sym", "walk", "gcn"] = "row",
    negative_slope: float = 0.2,
    edge_logits: Tensor | None = None,
) -> ReferenceResult:
    """One layer of CaGAT, up to the activation of the last line.

    Args:
        Z: The transformed features ``X W`` of each head.
        att_src: The half of the weight vector Theta that meets the source.
        att_dst: The half of the weight vector Theta that meets the target.
        A: The adjacency matrix, from :func:`dense_adjacency`.
        edge: The mask of its entries, from :func:`dense_adjacency`.
        K: The number of rounds.
        T: The number of diffusion steps in a round.
        alpha: The weight of the context, one number or one per head.
        lam: The weight of the aggregation, one number or one per head.
        xi: The weight of the affinity, one number or one per head.
        support: Whether S lives on all pairs or is masked to the edges after each step.
        affinity: Whether ``<h_i, h_j>`` is taken on the edges or on all pairs.
        feedback: Whether H is fed back into the aggregation.
        normalization: How the diffusion matrix is normalised; with ``"walk"``, our extension, it stands untransposed on
            the right of S, too. ``"gcn"``, another one, is ``"sym"`` and makes of ``G_ij`` ``G_ij sqrt(D_ii / D_jj)``.
        negative_slope: LeakyReLU's slope.
        edge_logits: What edge features add to the logits, ``(n, n, heads)``.

    Shapes:
        - **Z:** ``(n, heads, channels)``
        - **att_src**, **att_dst:** ``(heads, channels)``
        - **A**, **edge:** ``(n, n)``
    """
    n, heads, _ = Z.shape
    learnt = isinstance(alpha, Tensor) and alpha.requires_grad
    require_memory(
        _matrices(heads, K, T, learnt, torch.is_grad_enabled()) * n * n * Z.element_size(),
        f"The dense reference for {n} nodes and {heads} heads",
        _ALTERNATIVE,
    )
    Abar = diffusion_matrix(A, normalization).to(Z)
    right = Abar if normalization == "walk" else Abar.T
    root = A.sum(dim=1).sqrt().to(Z)
    inverse_root = torch.where(root > 0, 1 / root, 0)

    def one_head(h: int, Z: Tensor, alpha: Any, lam: Any, xi: Any) -> tuple[Tensor, Tensor, Tensor]:
        # Line 4: G_ij = softmax over j in N_i of LeakyReLU(Theta^T [z_i || z_j]), Eq. (1)-(2).
        logits = (Z @ att_dst[h])[:, None] + (Z @ att_src[h])[None, :]
        if edge_logits is not None:
            logits = logits + edge_logits[:, :, h]
        logits = torch.nn.functional.leaky_relu(logits, negative_slope)
        # A row without edges is all zero, where a softmax over nothing would be 0/0.
        has_edge = edge.any(dim=1, keepdim=True)
        logits = logits.masked_fill(~edge & has_edge, -torch.inf)
        G = torch.softmax(logits, dim=1) * edge
        if normalization == "gcn":
            G = root[:, None] * G * inverse_root[None, :]

        H = lam * (G @ Z) + (1 - lam) * Z  # Line 5.
        S = G  # Line 6.
        for _ in range(K):  # Line 7.
            for _ in range(T):  # Line 9.
                Q = H @ H.T
                if affinity == "edges" or support == "edges":
                    Q = Q * edge
                S = alpha * (Abar @ S @ right) + (1 - alpha) * G + xi * Q  # Line 10, Eq. (15).
                if support == "edges":
                    S = S * edge
            H = lam * (S @ (H if feedback else Z)) + (1 - lam) * Z  # Line 13, Eq. (9) and (18).
        return H, S, G

    coefficients = [value if isinstance(value, Tensor) else [value] * heads for value in (alpha, lam, xi)]
    H, S, G = zip(*map(one_head, range(heads), Z.unbind(dim=1), *coefficients), strict=True)
    return ReferenceResult(torch.stack(H, dim=1), torch.stack(S), torch.stack(G))


def _matrices(heads: int, K: int, T: int, alpha_is_learnt: bool, has_gradients: bool) -> int:
    """How many matrices of n x n there are at the peak."""
    if not has_gradients:
        # Either all heads are done, and G and S of each stand beside all of them joined and the diffusion matrix; or
        # the last head's last step holds that matrix, G, S, Q, and three parts of the sum that becomes the next S.
        return max(4 * heads + 1, 2 * (heads - 1) + 7)
    # G and S of each head, and all of them side by side; G before and after masking, S of each round, and the product
    # of each step if alpha is learnt. Beside them stand the diffusion matrix and what the step at work needs.
    return heads * (5 + K + (K * T if alpha_is_learnt else 0)) + 7
