"""Scikit-learn's handwritten digits, joined to their nearest neighbours."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

from cagat.data.raw_graph import RawGraph

NEIGHBOURS = 8


def digits() -> RawGraph:
    """1797 images of 8 x 8 pixels; an edge joins each to the 8 images nearest to it in Euclidean distance."""
    images = load_digits()
    nearest = kneighbors_graph(images.data, NEIGHBOURS, mode="connectivity").tocoo()
    return RawGraph(
        edge_index=np.stack([nearest.row, nearest.col]).astype(np.int64),
        features=images.data.astype(np.float32),
        labels=images.target.astype(np.int64),
        node_names=[str(image) for image in range(len(images.target))],
        class_names=[str(digit) for digit in images.target_names],
        feature_names=list(images.feature_names),
        name="digits",
        source="sklearn.datasets.load_digits",
    )
