"""What goes over the wire."""

from dataclasses import dataclass


@dataclass
class Traffic:
    """Bytes that one process has handed over.

    Attributes:
        halo: Sent to other processes as rows of nodes that they hold as halo, or as the gradients of such rows.
        reduced: Put into sums over all processes. What a sum sends depends on the backend; a ring sends a little less
            than twice as much.
    """

    halo: int = 0
    reduced: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.halo + other.halo, self.reduced + other.reduced)

    def __sub__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.halo - other.halo, self.reduced - other.reduced)
