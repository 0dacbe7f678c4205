"""Which column of a table holds what: by common names, by names that the user gives, and by a small YAML file."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from cagat.errors import DatasetError, nearest
from cagat.files import read_bounded

if TYPE_CHECKING:
    from cagat.data.encoding import TableEncoder

_log = logging.getLogger(__name__)

KINDS = ("edges", "features", "labels", "splits")
ROLES = ("source", "target", "node", "label")
"""Columns whose names a user may give."""
COLUMN_KINDS = ("number", "boolean", "category", "date", "text", "drop")
"""What a column of features may be said to hold."""
_ENDS = (
    *(("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("id_1", "id_2"), ("id1", "id2")),
    *(("node_1", "node_2"), ("node1", "node2"), ("source_id", "target_id"), ("src_id", "dst_id"), ("from_id", "to_id")),
)
_CALLED = {
    "source": tuple(source for source, _ in _ENDS),
    "target": tuple(target for _, target in _ENDS),
    "node": ("node", "node_id", "id", ""),
    "label": ("label", "labels", "class", "target", "targets", "y"),
    "split": ("split", "part"),
}
_LABEL_BESIDE_FEATURES = ("label", "class", "target")
_FEATURE = ("feature", "feature_id")
_MOST_COLUMNS = 50_000
_LARGEST_YAML = 1_000_000


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are used: those with names (of nodes, classes, ...), and those with values.

    `labels` are the columns of label and split in a table of features, where there is no table of labels.
    """

    names: tuple[str, ...]
    values: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """All columns that are read as texts."""
        return (*self.names, *self.labels)


@dataclass(frozen=True)
class TableOptions:
    """How tables are read: what the user calls columns, what they hold, and an encoder that was fitted before."""

    names: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    encoder: "TableEncoder | None" = None

    @classmethod
    def of(
        cls,
        names: Mapping[str, str | None] | None = None,
        columns: "str | Path | Mapping[str, str] | None" = None,
        encoder: "TableEncoder | None" = None,
    ) -> "TableOptions":
        """Check what a user gave; `columns` are kinds by name, or a YAML file of them."""
        given = {role: name for role, name in (names or {}).items() if name is not None}
        for role in given:
            if role not in ROLES:
                raise DatasetError(f"There is no column for {role!r:.40} that could be named.{nearest(role, ROLES)}")
        if isinstance(columns, Mapping) or columns is None:
            return cls(given, checked_kinds(columns or {}), encoder)
        return cls(given, read_kinds(Path(columns)), encoder)

    @property
    def encodes(self) -> bool:
        """Whether a table of features must be encoded, even if it holds nothing but numbers."""
        return self.encoder is not None or any(kind not in ("number", "drop") for kind in self.kinds.values())


def find_columns(
    kind: str, what: str, header: Sequence[str], names: Mapping[str, str] | None = None, *, labelled: bool = False
) -> Columns:
    """The columns of a table of one of the :data:`KINDS`, by the names in its header; others are told of.

    Args:
        kind: Which table it is.
        what: What to call it in errors.
        header: The names of its columns.
        names: What the user calls the columns of some of the :data:`ROLES`.
        labelled: Whether a table of features may hold the labels, too, because there is no table of them.
    """
    if len(header) > _MOST_COLUMNS:
        raise DatasetError(
            f"{what}: has {len(header)} columns, but no more than {_MOST_COLUMNS} are read. Use fewer; or write the "
            "features that are not zero as node,feature,value, or all of them to an .npz file."
        )
    if twice := ", ".join(repr(column) for column, count in Counter(header).items() if count > 1):
        raise DatasetError(f"{what}: more than one column is called {twice}. Give each column a name of its own.")
    known, names = {column.lower(): column for column in header}, names or {}
    if kind == "edges":
        found = _ends(what, known, header, names)
        return Columns(found, tuple(column for column in header if column not in found))
    found = (_column(what, known, "node", names),)
    rest = {column.lower() for column in header if column not in found}
    if kind == "features":
        if rest in ({name, *value} for name in _FEATURE for value in ((), ("value",))):
            found = (*found, *(known[name] for name in _FEATURE if name in known))
            return Columns(found, tuple(column for column in header if column not in found))
        labels = _labels_beside_features(what, known, rest, names) if labelled else ()
        return Columns(found, tuple(column for column in header if column not in (*found, *labels)), labels)
    found = (*found, _column(what, known, kind.removesuffix("s"), names, strict=True))
    if kind == "labels" and known.keys() & set(_CALLED["split"]):
        found = (*found, _column(what, known, "split", {}))
    if others := [column for column in header if column not in found]:
        _log.warning("%s: columns not used: %s", what, ", ".join(others))
    return Columns(found)


def _ends(what: str, known: Mapping[str, str], header: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of the two ends of an edge."""
    if "source" in names or "target" in names:
        ends: list[str] = []
        for role in ("source", "target"):
            left = {lower: column for lower, column in known.items() if column not in ends}
            ends.append(_column(what, left, role, names, strict=True))
        return tuple(ends)
    for pair in _ENDS:
        if known.keys() >= set(pair):
            return tuple(known[end] for end in pair)
    raise DatasetError(
        f"{what}: the first line is {','.join(header)[:80]!r}. It must name the columns source,target (or src,dst, "
        "from,to or id_1,id_2; or say which with --source and --target), then weight and edge features if any; only "
        "numbers may start without names."
    )


def _labels_beside_features(
    what: str, known: Mapping[str, str], rest: set[str], names: Mapping[str, str]
) -> tuple[str, ...]:
    """The columns of label and split in a table of features, if there are any."""
    wanted = (names["label"].lower(),) if "label" in names else _LABEL_BESIDE_FEATURES
    label = next((name for name in wanted if name in rest), None)
    if label is None:
        if "label" in names:
            _log.warning("%s: there is no column %r, so no node has a label.", what, names["label"])
        return ()
    split = next((name for name in _CALLED["split"] if name in rest - {label}), None)
    return tuple(known[name] for name in (label, split) if name is not None)


def _column(what: str, known: Mapping[str, str], role: str, names: Mapping[str, str], *, strict: bool = False) -> str:
    """The column of a role: the one that the user named, which must be there if this is strict, or a known one."""
    named = names.get(role)
    for name in () if named is None else (named.lower(),):
        if name in known:
            return known[name]
    for name in () if named is not None and strict else _CALLED[role]:
        if name in known:
            return known[name]
    there = f"among {','.join(known.values())[:80]!r}"
    if named is not None:
        raise DatasetError(f"{what}: there is no column {named!r} for the {role} {there}. Correct --{role}.")
    remedy = f", or say which with --{role}" if role in ROLES else ""
    raise DatasetError(
        f"{what}: no column for the {role} {there}. The first line must name "
        f"the columns; this one may be called {', '.join(repr(name) for name in _CALLED[role] if name)}{remedy}."
    )


def read_kinds(path: Path) -> dict[str, str]:
    """What the columns of a table of features hold, from a YAML file such as `columns: {country: category}`."""
    try:
        values = yaml.safe_load(read_bounded(path, _LARGEST_YAML).decode())
    except FileNotFoundError:
        raise DatasetError(f"{path}: there is no such file. Check the path.") from None
    except Exception as error:  # A value with a wrong tag makes PyYAML raise whatever int(), datetime() and so on do.
        raise DatasetError(f"{path}: is not YAML with plain values ({error}). Correct the file.") from error
    if not isinstance(values, dict) or list(values) != ["columns"] or not isinstance(values["columns"], dict):
        raise DatasetError(f"{path}: must be of the form 'columns: {{country: category, joined: date, id2: drop}}'.")
    return checked_kinds(values["columns"], f"{path}: ")


def checked_kinds(kinds: Mapping[Any, Any], owner: str = "") -> dict[str, str]:
    """The kinds of columns by name, or an error with all that are none."""
    named = {str(column): kind for column, kind in kinds.items()}
    if wrong := [column for column, kind in named.items() if kind not in COLUMN_KINDS]:
        listed = "; ".join(f"{column} is said to be {named[column]!r:.40}" for column in wrong[:10])
        remedy = nearest(str(named[wrong[0]]), COLUMN_KINDS)
        raise DatasetError(f"{owner}columns: {listed}, which is no kind of column.{remedy}")
    return named
