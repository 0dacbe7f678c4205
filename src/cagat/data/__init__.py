"""Graphs to learn on: the paper's, the user's own, and how they are split."""

from cagat.data.features import normalize_features
from cagat.data.loading import load
from cagat.data.splits import Split, split

__all__ = ["Split", "load", "normalize_features", "split"]
