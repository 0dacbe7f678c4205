"""The context-aware attention S as an operator: on all pairs without ever forming it, or on the edges only."""

from cagat.diffusion.attention_operator import AttentionOperator
from cagat.diffusion.coefficients import Coefficients
from cagat.diffusion.diffuse import Diffused, diffuse
from cagat.diffusion.diffused_features import attended_features, diffused_features
from cagat.diffusion.edge_support import EdgeSupport
from cagat.diffusion.full_support import FullSupport

__all__ = [
    "AttentionOperator",
    "Coefficients",
    "Diffused",
    "EdgeSupport",
    "FullSupport",
    "attended_features",
    "diffuse",
    "diffused_features",
]
