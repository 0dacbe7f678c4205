"""Networks for labelling nodes: CaGAT and what it is compared with."""

from cagat.models.cagat import CaGAT
from cagat.models.gat import GAT

__all__ = ["GAT", "CaGAT"]
