"""A graph in a few numbers."""

from typing import Any

import numpy as np
from torch_geometric.data import Data

from cagat.data.distinct import distinct


def summarize(data: Data) -> dict[str, Any]:
    """Return what `cagat data info` prints; `edges` are undirected and without loops, `sha256` is that of the file."""
    nodes, (source, target) = int(data.num_nodes), data.edge_index.cpu().numpy()
    pairs = np.minimum(source, target) * nodes + np.maximum(source, target)
    labels = data.y.cpu().numpy()
    return {
        "name": data.name,
        "nodes": nodes,
        "edges": len(distinct(pairs[source != target])),
        "features": data.x.size(1),
        "classes": len(data.class_names),
        "class_sizes": np.bincount(labels[labels >= 0], minlength=len(data.class_names)).tolist(),
        "sha256": data.sha256 or None,
        "source": data.source,
    }
