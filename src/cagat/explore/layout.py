"""A place in the plane for every node."""

import numpy as np
import numpy.typing as npt

_UNITS = 30
_STEPS = 500
_TSNE_UP_TO = 50_000


def layout(vectors: npt.NDArray[np.float32], seed: int = 0) -> npt.NDArray[np.float64]:
    """Places near each other for nodes whose vectors are alike, by t-SNE of the leading principal components.

    Of more than 50 000 nodes, for which t-SNE takes very long, they are the first two components themselves.

    Args:
        vectors: One row a node.
        seed: Of the random numbers.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    count, units = vectors.shape
    vectors = np.nan_to_num(vectors.astype(np.float64))
    if count < 3:
        return np.column_stack([np.arange(count), np.zeros(count)]).astype(np.float64)
    if count > _TSNE_UP_TO and units > 1:
        return np.asarray(PCA(2, random_state=seed).fit_transform(vectors), dtype=np.float64)
    if units > _UNITS and count > _UNITS:
        vectors = PCA(_UNITS, svd_solver="full", random_state=seed).fit_transform(vectors)
    perplexity = min(30.0, (count - 1) / 3)
    start = "pca" if min(vectors.shape) >= 2 and np.ptp(vectors, axis=0).max() > 0 else "random"
    # One thread: t-SNE's threads wait for each other actively, so that on a busy machine two are slower than one.
    with threadpool_limits(1):
        found = TSNE(init=start, perplexity=perplexity, max_iter=_STEPS, random_state=seed).fit_transform(vectors)
    return np.asarray(found, dtype=np.float64)
