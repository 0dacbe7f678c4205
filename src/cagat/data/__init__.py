"""Graphs to learn on: the paper's, the user's own, and how they are split."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cagat.data.conversion import convert
    from cagat.data.features import normalize_features
    from cagat.data.fetching import data_directory, fetch
    from cagat.data.frames import from_frames
    from cagat.data.given_split import split_given
    from cagat.data.loading import load, save
    from cagat.data.networkx_graph import from_networkx
    from cagat.data.scipy_graph import from_scipy
    from cagat.data.splits import Split, split, split_fractions
    from cagat.data.summary import summarize

__all__ = [
    "Split",
    "convert",
    "data_directory",
    "fetch",
    "from_frames",
    "from_networkx",
    "from_scipy",
    "load",
    "normalize_features",
    "save",
    "split",
    "split_fractions",
    "split_given",
    "summarize",
]

# Imported on first use, so that listing, fetching and converting graphs need not wait for torch.
_HOMES = {
    "Split": "splits",
    "convert": "conversion",
    "data_directory": "fetching",
    "fetch": "fetching",
    "from_frames": "frames",
    "from_networkx": "networkx_graph",
    "from_scipy": "scipy_graph",
    "load": "loading",
    "normalize_features": "features",
    "save": "loading",
    "split": "splits",
    "split_fractions": "splits",
    "split_given": "given_split",
    "summarize": "summary",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cagat.data' has no attribute {name!r}")
    value = getattr(import_module(f"cagat.data.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
