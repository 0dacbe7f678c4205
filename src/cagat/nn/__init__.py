"""Layers: attention G, then diffusion, then aggregation."""

from cagat.nn.cagat_conv import Adjacency, AttentionRows, CaGATConv
from cagat.nn.sparse_features import Features, SparseFeatures, as_features, feature_dropout

__all__ = ["Adjacency", "AttentionRows", "CaGATConv", "Features", "SparseFeatures", "as_features", "feature_dropout"]
