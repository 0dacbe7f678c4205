"""Explanations of single predictions by rows of S, in the form of PyG's explainers."""

import logging
from typing import Any, Literal

import torch
from torch import Tensor
from torch_geometric.explain import Explainer, Explanation
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.config import ExplanationType, ModelTaskLevel

from cagat.diffusion import AttentionOperator
from cagat.errors import CagatError
from cagat.nn import CaGATConv
from cagat.nn.validation import require_choice, require_integer

__all__ = ["ContextExplainer", "NoContextError", "explanation"]

_logger = logging.getLogger(__name__)


class NoContextError(CagatError, ValueError):
    """A model has no context-aware attention to explain it by."""


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


class ContextExplainer(ExplainerAlgorithm):  # type: ignore[misc]
    """An algorithm for PyG's :class:`~torch_geometric.explain.Explainer` that explains a node by its rows of S.

    The explanation's ``edge_mask`` is S on the edges around the node, as PyG's
    :class:`~torch_geometric.explain.algorithm.AttentionExplainer` would give it; but that one needs S on *all* edges of
    the graph, a product for every node, and this one only the rows it shows. Beyond it, the explanation has what no
    explanation by edges can have: the strongest pairs that are not edges, as ``context_index`` (sources, then targets)
    and ``context_weight``.

    It explains any model whose layers are, or contain, :class:`~cagat.CaGATConv`.

    Args:
        reduce: How heads, and then layers, become one number: ``"max"``, as in AttentionExplainer, or ``"mean"``.
            (default: ``"max"``)
        pairs: How many pairs that are not edges are given for each node. (default: ``10``)
    """

    def __init__(self, reduce: Literal["max", "mean"] = "max", pairs: int = 10) -> None:
        super().__init__()
        require_choice("reduce", reduce, ("max", "mean"))
        require_integer("pairs", pairs, 0)
        self.reduce = reduce
        self.pairs = pairs

    @torch.no_grad()
    def forward(
        self,
        model: torch.nn.Module,
        x: Tensor,
        edge_index: Tensor,
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> Explanation:
        """Explain the nodes of ``index``."""
        if index is None:
            raise ValueError("ContextExplainer explains nodes: say which with index=, a number or a tensor of them")
        nodes = torch.as_tensor(index, device=edge_index.device).view(-1)
        layers = _layers(model, x, edge_index, **kwargs)
        _, around = self._get_hard_masks(model, nodes, edge_index, num_nodes=x.size(0))
        assert around is not None
        source, sink = edge_index[:, around]
        edge_mask = torch.zeros(edge_index.size(1), dtype=layers[0].dtype, device=edge_index.device)
        edge_mask[around] = self._reduced([S.at(sink, source) for S in layers])
        rows = self._reduced([S.rows(nodes) for S in layers])
        # Of the pairs, those that are edges and the nodes themselves do not count.
        pattern = layers[0].graph.pattern
        place, entries = pattern.entries_of(nodes)
        rows[place, pattern.col[entries].long()] = 0
        rows.scatter_(1, nodes[:, None], 0)
        weights, sources = rows.topk(min(self.pairs, rows.size(1)), dim=1)
        pairs = torch.stack([sources, nodes[:, None].expand_as(sources)])[:, weights > 0]
        return Explanation(edge_mask=edge_mask, context_index=pairs, context_weight=weights[weights > 0])

    def supports(self) -> bool:
        """Whether this algorithm can serve the Explainer's settings."""
        needed = {
            "explanation_type must be 'model'": self.explainer_config.explanation_type is ExplanationType.model,
            "node_mask_type must be None": self.explainer_config.node_mask_type is None,
            "task_level must be 'node'": self.model_config.task_level is ModelTaskLevel.node,
        }
        for rule in (rule for rule, holds in needed.items() if not holds):
            _logger.error("ContextExplainer explains nodes by their attention to others: %s.", rule)
        return all(needed.values())

    def _reduced(self, values: list[Tensor]) -> Tensor:
        """One number for all heads, which are dimension 1, and layers."""
        reduce = torch.amax if self.reduce == "max" else torch.mean
        return reduce(torch.stack([reduce(value, dim=1) for value in values]), dim=0)


def _layers(model: torch.nn.Module, x: Tensor, edge_index: Tensor, **kwargs: Any) -> list[AttentionOperator]:
    """S of every CaGATConv of the model that aggregates, on the features that reach it."""
    found: list[AttentionOperator] = []

    def note(conv: CaGATConv, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        names = ("x", "edge_index", "edge_attr")
        arguments = dict(zip(names, given, strict=False)) | {key: named[key] for key in names if key in named}
        found.append(conv.attention_operators(**arguments).S)

    hooks = [
        module.register_forward_pre_hook(note, with_kwargs=True)
        for module in model.modules()
        if isinstance(module, CaGATConv) and module.lam > 0
    ]
    try:
        model(x, edge_index, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    if not found:
        raise NoContextError(f"{type(model).__name__} has no CaGATConv that aggregates; use PyG's AttentionExplainer.")
    return found
