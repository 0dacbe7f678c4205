"""Which nodes to label next: strategies under one contract, ours and those of others."""

from cagat.suggestions.suggest import STRATEGIES, Suggestion, suggest, suggest_in, suggestions_table

__all__ = ["STRATEGIES", "Suggestion", "suggest", "suggest_in", "suggestions_table"]
