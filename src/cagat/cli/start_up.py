"""What makes commands start faster.

What PyG imports at once is imported if it is used, and the garbage collector leaves alone what was imported.
"""

import gc
import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

DEFERRED = ("torch._dynamo", "torch_geometric.datasets")
"""torch's compiler, which brings sympy and much of torch; PyG's data sets, which bring pandas and language models."""

_lock = threading.RLock()


class _DeferredModule(ModuleType):
    """A module that runs when something in it is first asked for.

    :class:`importlib.util.LazyLoader` would also run it for its name and file, which ``inspect`` asks of all modules.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        with _lock:
            if type(self) is _DeferredModule:
                self.__class__ = ModuleType  # type: ignore[assignment]
                assert self.__spec__ is not None
                assert isinstance(self.__spec__.loader, _DeferringLoader)
                self.__spec__.loader = self.__loader__ = self.__spec__.loader.real
                self.__spec__.loader.exec_module(self)
        return getattr(self, name)


class _DeferringLoader(Loader):
    def __init__(self, real: Loader) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _DeferredModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Not yet."""


class _Finder(MetaPathFinder):
    def __init__(self) -> None:
        self._modules = 0

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if len(sys.modules) > self._modules:  # Not if what is missing is asked for again and again.
            self._modules = len(sys.modules)
            gc.freeze()  # Or Python's garbage collector goes through all that was imported so far many times.
        spec = PathFinder.find_spec(fullname, path) if fullname in DEFERRED else None
        if spec is not None and spec.loader is not None:
            spec.loader = _DeferringLoader(spec.loader)
        return spec


def defer_imports() -> None:
    """Defer :data:`DEFERRED`. Only in processes of our own: a library must not decide this for its callers."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
