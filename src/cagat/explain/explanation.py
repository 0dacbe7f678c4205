"""A node explained, in one call."""

import torch
from torch import Tensor
from torch_geometric.explain import Explainer, Explanation

from cagat.explain.context_explainer import ContextExplainer


def explanation(
    model: torch.nn.Module,
    x: Tensor,
    edge_index: Tensor,
    node: int | Tensor,
    *,
    edge_attr: Tensor | None = None,
    pairs: int = 10,
) -> Explanation:
    """Explain what a node classifier says about a node, by its rows of S.

    It is PyG's :class:`~torch_geometric.explain.Explainer` with a :class:`ContextExplainer`; its result goes wherever
    PyG's explanations go: ``get_explanation_subgraph()``, ``visualize_graph()``, ``torch_geometric.explain.fidelity``.

    Args:
        model: The model, which gives logits.
        x: The node features.
        edge_index: The edges.
        node: The node, or several.
        edge_attr: Edge features or weights, if the model takes them.
        pairs: How many pairs that are not edges are given for each node.

    Raises:
        NoContextError: The model has no CaGATConv.
    """
    explainer = Explainer(
        model,
        algorithm=ContextExplainer(pairs=pairs),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"},
    )
    more = {} if edge_attr is None else {"edge_attr": edge_attr}
    found: Explanation = explainer(x, edge_index, index=node, **more)
    return found
