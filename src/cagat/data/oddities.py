"""What is strange about a graph, counted, so that it can be said once."""

from dataclasses import dataclass

SMALL_CLASS = 40
"""A class needs more labelled nodes than this for the paper's split: 20 to train, 20 to validate, some to test."""


@dataclass(frozen=True)
class Oddities:
    """Counts of what was dropped, merged or found wanting; all zero for a graph without surprises."""

    self_loops: int = 0
    weightless_edges: int = 0
    duplicate_edges: int = 0
    opposite_edges: int = 0
    outside_component: int = 0
    component_taken: bool = False
    without_features: int = 0
    small_classes: tuple[tuple[str, int], ...] = ()

    def sentences(self) -> list[str]:
        """One sentence for each oddity that there is."""
        said = []
        if self.self_loops:
            said.append(f"{_count(self.self_loops, 'self-loop')} dropped (the layer adds one to every node)")
        if self.weightless_edges:
            said.append(f"{_count(self.weightless_edges, 'edge')} of weight 0 dropped")
        if self.duplicate_edges:
            said.append(f"{_count(self.duplicate_edges, 'duplicate edge')} merged")
        if self.opposite_edges:
            said.append(f"{_count(self.opposite_edges, 'edge')} given both ways, so the two weights were added up")
        if self.outside_component:
            fate = "dropped" if self.component_taken else "kept"
            said.append(f"{_count(self.outside_component, 'node')} outside the largest component {fate}")
        if self.without_features:
            said.append(f"{_count(self.without_features, 'node')} without features")
        if self.small_classes:
            listed = ", ".join(f"{name} ({size})" for name, size in self.small_classes)
            said.append(f"classes too small for 20 training and 20 validation nodes: {listed}")
        return said


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
