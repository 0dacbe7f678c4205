"""Graphs to learn on: the paper's, the user's own, and how they are split."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cagat.data.converters import from_frames, from_networkx, from_scipy
    from cagat.data.features import normalize_features
    from cagat.data.loading import convert, load, save, summarize
    from cagat.data.published import data_directory, fetch
    from cagat.data.splits import Split, split, split_fractions, split_given

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


def __getattr__(name: str) -> Any:
    # Imported on first use, from the files that need no torch first: listing, fetching and converting need not wait.
    for home in ("published", "loading", "splits", "features", "converters") if name in __all__ else ():
        module = import_module(f"cagat.data.{home}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module 'cagat.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
