"""Scikit-learn's handwritten digits, joined to their nearest neighbours."""

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from cagat.data.raw_graph import RawGraph

NEIGHBOURS = 8


def digits() -> RawGraph:
    """1797 images of 8 x 8 pixels; an edge joins each to the 8 images nearest to it in Euclidean distance."""
    images = load_digits()
    nearest = _nearest(images.data)
    return RawGraph(
        edge_index=np.stack([np.repeat(np.arange(len(nearest)), NEIGHBOURS), nearest.ravel()]),
        features=images.data.astype(np.float32),
        labels=images.target.astype(np.int64),
        node_names=[str(image) for image in range(len(images.target))],
        class_names=[str(digit) for digit in images.target_names],
        feature_names=list(images.feature_names),
        name="digits",
        source="sklearn.datasets.load_digits",
    )


def _nearest(pixels: NDArray[np.float64]) -> NDArray[np.int64]:
    """The images nearest to each, and of equally near ones the first.

    Pixels are small whole numbers, so that these distances are exact. A search that rounds them decides between equally
    near images by the order of its sums, and so by the number of threads.
    """
    lengths = np.square(pixels).sum(axis=1)
    distances = lengths[:, None] + lengths[None, :] - 2 * (pixels @ pixels.T)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :NEIGHBOURS].astype(np.int64)
