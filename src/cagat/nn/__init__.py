"""Layers: attention G, then diffusion, then aggregation."""

from cagat.nn.cagat_conv import AttentionRows, CaGATConv
from cagat.nn.sparse_features import SparseFeatures, as_features, feature_dropout

__all__ = ["AttentionRows", "CaGATConv", "SparseFeatures", "as_features", "feature_dropout"]
