"""Names of classes and features, in a form that PyG leaves alone when it cuts a graph."""

from collections.abc import Iterable, Sequence
from typing import Any, overload

from cagat.errors import DatasetError


class Names(Sequence[str]):
    """A sequence of names that belongs to the whole graph.

    `torch_geometric.data.Data` takes any list or tuple as long as the graph has nodes (or edges) for an attribute of
    its nodes (or edges), and `subgraph` would then cut it. A graph of seven nodes and seven classes is no rarity.
    """

    __slots__ = ("_names",)

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = tuple(names)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "Names": ...
    def __getitem__(self, index: int | slice) -> "str | Names":
        return Names(self._names[index]) if isinstance(index, slice) else self._names[index]

    def __len__(self) -> int:
        return len(self._names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Names, list, tuple)) and self._names == tuple(other)

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return repr(list(self._names))


def as_names(what: str, given: Any) -> list[str]:
    """Names that somebody gave, as a list, if they are texts."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise DatasetError(f"{what} must be a list of texts, but is {given!r:.80}. Put the names into a list.")
    names = list(given)
    for name in names:
        if not isinstance(name, str):
            raise DatasetError(
                f"{what} must be texts, but one is {name!r:.80}. Convert them with [str(name) for name in {what}]."
            )
    return names
