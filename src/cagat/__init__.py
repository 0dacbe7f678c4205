"""Context-aware Graph Attention Networks (CaGAT), exact and in linear cost."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import cagat.reference as reference
    from cagat import data
    from cagat.estimator.classifier import CaGATClassifier
    from cagat.kernels.csr_graph import CSRGraph
    from cagat.models.cagat import CaGAT
    from cagat.nn.cagat_conv import CaGATConv
    from cagat.suggestions.suggest import suggest

__version__ = "0.2.0"

__all__ = ["CSRGraph", "CaGAT", "CaGATClassifier", "CaGATConv", "__version__", "data", "reference", "suggest"]

# Public names are imported on first use, so that `cagat --help` and `cagat.__version__` need no torch.
_HOMES = {
    "CSRGraph": "cagat.kernels.csr_graph",
    "CaGAT": "cagat.models.cagat",
    "CaGATClassifier": "cagat.estimator.classifier",
    "CaGATConv": "cagat.nn.cagat_conv",
    "suggest": "cagat.suggestions.suggest",
}
_ROOMS = {
    "data", "diffusion", "distributed", "estimator", "explain", "explore", "kernels", "models", "nn", "reference",
    "settings", "suggestions", "training",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _ROOMS:
        value = import_module(f"cagat.{name}")
    else:
        raise AttributeError(f"module 'cagat' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_ROOMS})
