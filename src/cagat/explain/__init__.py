"""Explanations of single predictions by context-aware attention, in the form of PyG's explainers."""

from cagat.explain.context_explainer import ContextExplainer, NoContextError
from cagat.explain.explanation import explanation

__all__ = ["ContextExplainer", "NoContextError", "explanation"]
