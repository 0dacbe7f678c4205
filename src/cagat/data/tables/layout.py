"""Which columns a table has, and which of them hold texts."""

from collections.abc import Sequence
from dataclasses import dataclass

from cagat.errors import DatasetError

_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
_NODE = ("node", "node_id", "id", "")
_LABEL = ("label", "class", "y")
_SPLIT = ("split", "part")


@dataclass(frozen=True)
class Layout:
    """The columns of one table.

    Args:
        columns: All of them, in their order.
        texts: Those that hold names; the numbers are in :attr:`numbers`.
        has_header: Whether the first line of the file names the columns.
        ignored: Columns that mean nothing here.
    """

    columns: tuple[str, ...]
    texts: tuple[str, ...]
    has_header: bool = True
    ignored: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers."""
        return tuple(column for column in self.columns if column not in (*self.texts, *self.ignored))


def edge_layout(what: str, header: Sequence[str]) -> Layout:
    """Edges: two ends, perhaps a `weight`, and any further columns as edge features; without a header, two or three."""
    lower = [column.lower() for column in header]
    for ends in _ENDS:
        if set(ends) <= set(lower):
            return Layout(tuple(header), tuple(header[lower.index(end)] for end in ends))
    if len(header) in (2, 3) and all(_is_number(cell) for cell in header):
        columns = ("source", "target", "weight")[: len(header)]
        return Layout(columns, ("source", "target"), has_header=False)
    raise DatasetError(
        f"{what}: the first line is {','.join(header)[:80]!r}. It must name the columns source,target (or src,dst or "
        "from,to), then weight and edge features if there are any; only a list of numbers may start without names."
    )


def feature_layout(what: str, header: Sequence[str]) -> Layout:
    """Features: `node` and one column a feature; or `node,feature,value` for the features that are not zero."""
    node = _column(what, header, _NODE, "node")
    others = [column for column in header if column != node]
    if [column.lower() for column in others] in (["feature"], ["feature", "value"]):
        return Layout(tuple(header), (node, others[0]))
    return Layout(tuple(header), (node,))


def label_layout(what: str, header: Sequence[str]) -> Layout:
    """Labels: `node`, `label` and perhaps `split`."""
    texts = [_column(what, header, _NODE, "node"), _column(what, header, _LABEL, "label")]
    if any(column.lower() in _SPLIT for column in header):
        texts.append(_column(what, header, _SPLIT, "split"))
    return Layout(tuple(header), tuple(texts), ignored=tuple(column for column in header if column not in texts))


def split_layout(what: str, header: Sequence[str]) -> Layout:
    """Splits: `node` and `split`."""
    texts = (_column(what, header, _NODE, "node"), _column(what, header, _SPLIT, "split"))
    return Layout(tuple(header), texts, ignored=tuple(column for column in header if column not in texts))


def _column(what: str, header: Sequence[str], known: Sequence[str], role: str) -> str:
    for name in known:
        for column in header:
            if column.lower() == name:
                return column
    names = ", ".join(repr(name) for name in known if name)
    raise DatasetError(
        f"{what}: no column for the {role} among {','.join(header)[:80]!r}. The first line must name the columns; "
        f"this one may be called {names}."
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
