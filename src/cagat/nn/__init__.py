"""Layers: attention G, then diffusion, then aggregation."""

from cagat.nn.attention_rows import AttentionRows
from cagat.nn.cagat_conv import CaGATConv
from cagat.nn.feature_dropout import feature_dropout
from cagat.nn.sparse_features import SparseFeatures

__all__ = ["AttentionRows", "CaGATConv", "SparseFeatures", "feature_dropout"]
