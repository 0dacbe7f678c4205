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

# Imported on first use, so that listing, fetching and converting graphs need not wait for torch.
_HOMES = {
    **dict.fromkeys(("convert", "load", "save", "summarize"), "loading"),
    **dict.fromkeys(("data_directory", "fetch"), "published"),
    **dict.fromkeys(("from_frames", "from_networkx", "from_scipy"), "converters"),
    **dict.fromkeys(("Split", "split", "split_fractions", "split_given"), "splits"),
    "normalize_features": "features",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cagat.data' has no attribute {name!r}")
    value = getattr(import_module(f"cagat.data.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
