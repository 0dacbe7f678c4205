"""The context-aware attention S as an operator: on all pairs without ever forming it, or on the edges only."""

from cagat.diffusion.attention import AttentionOperator, EdgeSupport, FullSupport
from cagat.diffusion.diffuse import Diffused, diffuse
from cagat.diffusion.diffused_features import attended_features, diffused_features
from cagat.diffusion.diffusion import Coefficients, Diffusion

__all__ = [
    "AttentionOperator",
    "Coefficients",
    "Diffused",
    "Diffusion",
    "EdgeSupport",
    "FullSupport",
    "attended_features",
    "diffuse",
    "diffused_features",
]
