"""Models that label nodes: CaGAT and what it is compared with."""

from cagat.models.appnp import APPNP, SGC
from cagat.models.cagat import CaGAT
from cagat.models.cvd_pp import CVDPP
from cagat.models.dgi import DGI
from cagat.models.gat import GAT, GATv2
from cagat.models.gcn import GCN, GraphSAGE
from cagat.models.labelprop import LabelProp, LabelPropNL
from cagat.models.logreg import LogReg
from cagat.models.mlp import MLP
from cagat.models.node_classifier import Labelled, NodeClassifier
from cagat.models.registry import ModelCard, card, create, names

__all__ = [
    "APPNP",
    "CVDPP",
    "DGI",
    "GAT",
    "GCN",
    "MLP",
    "SGC",
    "CaGAT",
    "GATv2",
    "GraphSAGE",
    "LabelProp",
    "LabelPropNL",
    "Labelled",
    "LogReg",
    "ModelCard",
    "NodeClassifier",
    "card",
    "create",
    "names",
]
