"""The context-aware attention S as an operator: on all pairs without ever forming it, or on the edges only."""

from cagat.diffusion.attention import AttentionOperator, EdgeSupport, FullSupport, is_zero, over_channels
from cagat.diffusion.diffuse import Coefficients, Diffused, Diffusion, diffuse
from cagat.diffusion.operator import GATAttention, can_attend, diffuse_features, is_fused

__all__ = [
    "AttentionOperator",
    "Coefficients",
    "Diffused",
    "Diffusion",
    "EdgeSupport",
    "FullSupport",
    "GATAttention",
    "can_attend",
    "diffuse",
    "diffuse_features",
    "is_fused",
    "is_zero",
    "over_channels",
]
