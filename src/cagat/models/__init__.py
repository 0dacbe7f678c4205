"""Models that label nodes: CaGAT and what it is compared with."""

from cagat.models.cagat import CaGAT
from cagat.models.gat import GAT
from cagat.models.node_classifier import Labelled, NodeClassifier
from cagat.models.registry import ModelCard, card, create, names

__all__ = ["GAT", "CaGAT", "Labelled", "ModelCard", "NodeClassifier", "card", "create", "names"]
