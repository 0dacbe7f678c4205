"""What the columns of a table hold, recognised by their content."""

import logging
import warnings
from typing import Any

import numpy as np

_log = logging.getLogger(__name__)

ONE_HOT_BELOW = 40
"""A category of fewer values becomes a column for each; the bound is skrub's own."""
_BOOLEANS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})
_GAPS = {"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "?", "-"}


class ColumnError(ValueError):
    """What is wrong with a column, without its name."""


def cleaned(column: Any) -> Any:
    """A column of numbers as float64, of dates as dates, and of anything else as texts; gaps are missing."""
    import pandas as pd

    column = column.reset_index(drop=True)
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        column = column.astype(kind.categories.dtype if len(kind.categories) else "object")
        kind = column.dtype
    if pd.api.types.is_datetime64_any_dtype(kind):
        return column.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(kind, "tz", None) is not None else column
    if pd.api.types.is_timedelta64_dtype(kind):
        return column.dt.total_seconds()
    if isinstance(kind, pd.PeriodDtype):
        return column.dt.to_timestamp()
    if pd.api.types.is_complex_dtype(kind):
        raise ColumnError("holds complex numbers")
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
        return column.astype("float64")
    filled = column[column.notna()]
    if pd.api.types.is_object_dtype(kind):
        odd = (value for value in filled if isinstance(value, (list, dict, set, tuple, bytes, np.ndarray)))
        if (wrong := next(odd, None)) is not None:
            raise ColumnError(f"holds a {type(wrong).__name__} in a cell")
    texts = filled.astype(str).str.strip()
    texts = texts[~texts.str.lower().isin(_GAPS)]
    return texts.reindex(column.index).astype(object).where(column.index.isin(texts.index), None)


def recognised(column: Any, given: str | None) -> tuple[Any, str, str | None]:
    """A column as its kind has it, its kind, and the form of its dates."""
    import pandas as pd

    clean = cleaned(column)
    filled = clean.dropna()
    if len(filled) == 0:
        raise ColumnError(f"holds nothing but gaps in its {len(clean)} rows")
    kind, form = given, None
    if kind is None:
        kind = _kind_of(filled)
        _warn_of_stray_texts(filled, kind)
    if kind in ("date", None) and not pd.api.types.is_datetime64_any_dtype(clean):
        form = _date_format(filled)
        if form is None and kind == "date":
            raise ColumnError(f"is said to hold dates, but {_row(filled, 0)}, which is none, or not all are alike")
        kind = kind or ("date" if form else None)
    if kind is None:
        kind = "category" if filled.nunique() < ONE_HOT_BELOW or not _is_prose(filled) else "text"
    result = typed(clean, kind, form)
    if kind in ("number", "date"):
        unread = np.flatnonzero((result.isna() & clean.notna()).to_numpy())
        if len(unread):
            at = _row(clean, int(unread[0]))
            raise ColumnError(f"is said to be a {kind}, but {at} ({len(unread)} such cells)")
    return result, kind, form


def _kind_of(filled: Any) -> str | None:
    """Whether the cells are numbers, dates by their type, or booleans."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(filled):
        return "date"
    if pd.to_numeric(filled, errors="coerce").notna().all():
        return "number"
    few = set(filled.str.lower().unique()) if filled.nunique() <= 6 else set()
    return "boolean" if few and any(few <= pair for pair in _BOOLEANS) else None


def _warn_of_stray_texts(filled: Any, kind: str | None) -> None:
    """Say so if a column is no number because of very few of its cells."""
    import pandas as pd

    if kind is not None:
        return
    strays = pd.to_numeric(filled, errors="coerce").isna()
    if 20 * int(strays.sum()) < len(filled):
        _log.warning(
            "column %r: %s, which is no number, as all but %d of its cells are, so the column is taken for a category. "
            "Correct the table, or say 'columns: {%s: category}' in columns.yaml.",
            filled.name,
            _row(filled[strays], 0),
            int(strays.sum()),
            filled.name,
        )


def _date_format(filled: Any) -> str | None:
    """The form of texts that are all dates, or none."""
    from skrub import ToDatetime
    from skrub.core import RejectColumn

    texts = filled.astype(str).rename("date")
    parser = ToDatetime()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = parser.fit_transform(texts)
    except (RejectColumn, ValueError, TypeError, OverflowError):
        return None
    return str(parser.format_) if parsed.notna().all() else None


def _is_prose(filled: Any) -> bool:
    """Whether texts are rather sentences than names of things: several words, and few texts twice."""
    sample = filled.head(1000)
    return bool(sample.str.count(" ").mean() >= 2 or filled.nunique() > len(filled) / 2)


def _row(column: Any, index: int) -> str:
    return f"row {int(column.index[index]) + 1} holds {column.iloc[index]!r:.60}"


def typed(column: Any, kind: str, form: str | None) -> Any:
    """A column as its kind has it; what cannot be read so is missing."""
    import pandas as pd

    clean = cleaned(column)
    if kind == "number":
        return pd.to_numeric(clean, errors="coerce").astype("float64")
    if kind == "date":
        if not pd.api.types.is_datetime64_any_dtype(clean):
            clean = pd.to_datetime(_texts(clean), format=form or "mixed", errors="coerce", utc=True)
            clean = clean.dt.tz_localize(None)
        return clean.astype("datetime64[ns]")
    texts = _texts(clean)
    return texts.str.lower() if kind == "boolean" else texts


def _texts(clean: Any) -> Any:
    """Texts of a clean column; whole numbers without a point, as another file would hold them."""
    filled = clean.dropna()
    if clean.dtype.kind == "f":
        filled = filled.map(lambda value: str(int(value)) if value.is_integer() else str(value))
    return filled.astype(str).reindex(clean.index).astype(object).where(clean.notna(), None).astype("str")
