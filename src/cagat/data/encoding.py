"""Features from tables of mixed columns: numbers with gaps, categories, booleans, dates and texts.

An encoder is fitted once, by the table that a model is trained on, and then applied unchanged. It is built on skrub's
`TableVectorizer`. pandas, skrub and skops are imported when a table needs them, and not before.
"""

import hashlib
import io
import json
import logging
import warnings
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagat.data.column_kinds import ONE_HOT_BELOW, ColumnError, cleaned, recognised, typed
from cagat.data.columns import checked_kinds
from cagat.data.validation import require_memory, require_plausible
from cagat.errors import DamagedFileError, DatasetError

_log = logging.getLogger(__name__)

_COMPONENTS = 30
_MOST_NAMED = 20
_FORMAT = 1
_KEYS = {"format", "kinds", "dropped", "formats", "gaps", "names", "lines", "transformers", "scaler", "vocabularies"}

# What a fitted encoder is made of, beside the types of scikit-learn and NumPy that skops trusts by itself.
_TRUSTED = [
    "numpy.dtype",
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._squashing_scaler.SquashingScaler",
    "skrub._squashing_scaler._MinMaxScaler",
    "skrub._string_encoder.StringEncoder",
    "skrub._to_str.ToStr",
]


class TableEncoder:
    """Encodes the rows of a table; make one with :meth:`fit` or :meth:`from_bytes`.

    A number or a date is scaled by its quartiles, so that its median is 0, and squashed to -3 to 3; a gap becomes the
    median, and a column of its own says where gaps were. A category or boolean becomes a column for each of its values;
    a text, or a category of 40 values or more, 30 components of its character n-grams (skrub's `StringEncoder`). So
    each column of the table weighs about the same.

    Attributes:
        names: The names of the columns that :meth:`transform` gives.
        kinds: What each used column of the table holds.
        digest: Tells this encoder from others.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self.names: list[str] = state["names"]
        self.kinds: dict[str, str] = state["kinds"]
        self._transformers: dict[str, Any] = state["transformers"]

    @classmethod
    def fit(cls, frame: Any, kinds: Mapping[str, str] | None = None, *, what: str = "features") -> "TableEncoder":
        """Learn from a pandas frame how to encode its columns.

        Args:
            frame: One row per node; without the column of their names.
            kinds: What some columns hold: `number`, `boolean`, `category`, `date` or `text`; or `drop`. The others are
                recognised by their content.
            what: What to call the table in errors.

        Raises:
            DatasetError: It lists all that is wrong with the table, with the names of columns.
        """
        from threadpoolctl import threadpool_limits

        given = checked_kinds(kinds or {}, f"{what}: ")
        frame, problems = _renamed(frame), []
        if absent := [column for column in given if column not in frame.columns]:
            problems.append(f"there is no column {', '.join(map(repr, absent))}, whose kind is given")
        found: dict[str, str] = {}
        formats: dict[str, str | None] = {}
        columns = {}
        for name in frame.columns:
            if given.get(name) == "drop":
                continue
            try:
                columns[name], found[name], formats[name] = recognised(frame[name], given.get(name))
            except ColumnError as error:
                problems.append(f"column {name!r} {error}")
        if problems:
            raise DatasetError(f"{what}: {'; '.join(problems)}. Correct the table, or drop columns in columns.yaml.")
        if not columns:
            raise DatasetError(f"{what}: no column is left to learn from. Give at least one that is not dropped.")
        # With one thread, so that every process that fits finds the same bits.
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            state = _fitted(columns, found, given)
        state["formats"] = {name: form for name, form in formats.items() if form is not None}
        state["dropped"] = [str(name) for name in frame.columns if name not in state["kinds"]]
        state["lines"] += [f"{name}: dropped" for name in frame.columns if given.get(name) == "drop"]
        if not state["names"]:
            raise DatasetError(f"{what}: no column tells rows apart. Give one that is not the same in all of them.")
        return cls(state)

    def transform(self, frame: Any, *, what: str = "features") -> NDArray[np.float32]:
        """The encoded rows of a frame with the same columns; what was not there at fitting is ignored and counted.

        Raises:
            DatasetError: Columns are missing; all of them are named.
        """
        frame = _renamed(frame)
        problems, said = [], []
        if missing := [name for name in self.kinds if name not in frame.columns]:
            problems.append(
                f"{'columns are' if len(missing) > 1 else 'a column is'} missing that the model was trained "
                f"with: {', '.join(map(repr, missing[:_MOST_NAMED]))}. Add them; cells may be empty"
            )
        if extra := [name for name in frame.columns if name not in (*self.kinds, *self._state["dropped"])]:
            said.append(f"columns {', '.join(map(repr, extra[:_MOST_NAMED]))}")
        columns = {}
        for name, kind in self.kinds.items():
            if name in missing:
                continue
            try:
                columns[name] = typed(frame[name], kind, self._state["formats"].get(name))
            except ColumnError as error:
                problems.append(f"column {name!r} {error}. Correct it")
                continue
            unread = int((columns[name].isna() & ~cleaned(frame[name]).isna()).sum())
            if unread:
                said.append(f"{unread} cell{'s' if unread > 1 else ''} of {name!r} with no {kind}")
            said += self._unseen(name, columns[name])
        if problems:
            raise DatasetError(f"{what}: {'; '.join(problems)}.")
        if said:
            _log.warning("%s: ignored, because the model was trained without them: %s.", what, "; ".join(said))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            encoded = {name: _encoded(columns[name], one) for name, one in self._transformers.items()}
            scaled = [name for name in encoded if self.kinds[name] in ("number", "date")]
            if scaled:
                values = self._state["scaler"].transform(np.concatenate([encoded[name] for name in scaled], axis=1))
                ends = np.cumsum([encoded[name].shape[1] for name in scaled])[:-1]
                encoded |= zip(scaled, np.split(np.nan_to_num(values), ends, axis=1), strict=True)
        gaps = [columns[name].isna().to_numpy()[:, None] for name in self._state["gaps"]]
        return np.concatenate([*encoded.values(), *gaps], axis=1, dtype=np.float32)

    def describe(self) -> list[str]:
        """One line per column of the table, such as `country: category, 37 values, one-hot`."""
        return list(self._state["lines"])

    @property
    def digest(self) -> str:
        """The sha256 of all that was learned."""
        texts = [self.names, self._state["lines"], self._state["formats"], _vocabularies(self._transformers)]
        digest = hashlib.sha256(json.dumps(texts).encode())
        scaler = self._state["scaler"]
        for part in (getattr(scaler, "robust_scaler_", None), getattr(scaler, "minmax_scaler_", None)):
            for _, value in sorted(vars(part).items()) if part is not None else ():
                if isinstance(value, np.ndarray):
                    digest.update(value.tobytes())
        for _, encoder in _string_encoders(self._transformers):
            if hasattr(encoder, "tsvd_"):
                digest.update(np.ascontiguousarray(encoder.tsvd_.components_).tobytes())
        return digest.hexdigest()

    def to_bytes(self) -> bytes:
        """The encoder as the content of a file of skops, which cannot hold anything that is executed."""
        import skops.io

        # A dictionary of a hundred thousand n-grams would become as many lines of JSON: they are stored as arrays.
        words = _vocabularies(self._transformers)
        encoders = dict(_string_encoders(self._transformers))
        kept = {name: encoder.vectorizer_.vocabulary_ for name, encoder in encoders.items()}
        try:
            for encoder in encoders.values():
                encoder.vectorizer_.vocabulary_ = {}
            arrays = {name: np.array(found, dtype=np.str_) for name, found in words.items()}
            state = self._state | {"format": _FORMAT, "vocabularies": arrays}
            return bytes(skops.io.dumps(state, compression=zipfile.ZIP_DEFLATED))
        finally:
            for name, encoder in encoders.items():
                encoder.vectorizer_.vocabulary_ = kept[name]

    @classmethod
    def from_bytes(cls, content: bytes, *, what: str = "encoder.skops") -> "TableEncoder":
        """The encoder that :meth:`to_bytes` wrote; types that no encoder of ours holds are refused.

        Raises:
            DamagedFileError: The content is no encoder, is damaged, or is from another version.
        """
        import skops.io

        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                size = sum(member.file_size for member in archive.infolist())
            require_plausible(what, size, len(content))
            require_memory(what, size, "Use a machine with more memory.")
            state = skops.io.loads(content, trusted=_TRUSTED)
            if not isinstance(state, dict) or set(state) != _KEYS or state["format"] != _FORMAT:
                raise ValueError("it holds other things than an encoder")
            encoder = cls(state)
            for name, string_encoder in _string_encoders(encoder._transformers):
                words = state["vocabularies"][name].tolist()
                string_encoder.vectorizer_.vocabulary_ = {word: index for index, word in enumerate(words)}
        except Exception as error:  # Whatever a broken or hostile file makes the libraries raise.
            raise DamagedFileError(f"{what}: is no encoder that this version can read ({error}).") from error
        return encoder

    def _unseen(self, name: str, column: Any) -> list[str]:
        """What a column holds that was not there at fitting, in words."""
        transformer = self._transformers.get(name)
        if self.kinds[name] in ("number", "date") or transformer is None:
            return []
        values = column.dropna().unique()
        if hasattr(transformer, "categories_"):
            known = set(transformer.categories_[0])
            new = [value for value in values if value not in known]
            shown = ", ".join(repr(value)[:40] for value in new[:3])
            return [f"{len(new)} value{'s' if len(new) > 1 else ''} of {name!r} ({shown})"] if new else []
        words = sorted({word for text in values for word in text.split()})
        if not words:
            return []
        unknown = int((np.diff(transformer.vectorizer_.transform(words).indptr) == 0).sum())
        return [f"{unknown} word{'s' if unknown > 1 else ''} of {name!r}"] if unknown else []


def _renamed(frame: Any) -> Any:
    """The frame with texts as the names of its columns."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        kind = type(frame).__name__
        raise DatasetError(f"A table must be a pandas frame, but is a {kind}. Make one with pandas.DataFrame(...).")
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def _frame(columns: dict[str, Any]) -> Any:
    import pandas as pd

    return pd.DataFrame(columns)


def _fitted(columns: dict[str, Any], kinds: dict[str, str], given: Mapping[str, str]) -> dict[str, Any]:
    """Fit the vectorizer to typed columns; the state of an encoder, without formats."""
    from sklearn.preprocessing import OneHotEncoder
    from skrub import DatetimeEncoder, SquashingScaler, StringEncoder, TableVectorizer

    def one_hot() -> Any:
        # Without `drop`: a value that was not there at fitting is to be neither of two.
        return OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)

    components = StringEncoder(n_components=_COMPONENTS, random_state=0)
    asked = [(one_hot(), [name for name, kind in given.items() if kind in ("category", "boolean")])]
    asked += [(components, [name for name, kind in given.items() if kind == "text"])]
    vectorizer = TableVectorizer(
        cardinality_threshold=ONE_HOT_BELOW,
        low_cardinality=one_hot(),
        high_cardinality=components,
        datetime=DatetimeEncoder(add_weekday=True),
        specific_transformers=[(transformer, names) for transformer, names in asked if names],
        drop_if_constant=True,
    ).fit(_frame(columns))
    transformers = {
        # Numbers pass as they are, and so need nothing that would have to be stored.
        name: None if kinds[name] == "number" else vectorizer.transformers_[name]
        for name in columns
        if name in vectorizer.transformers_
    }
    numbers = [name for name in transformers if kinds[name] in ("number", "date")]
    scaler = None
    if numbers:
        values = np.concatenate([_encoded(columns[name], transformers[name]) for name in numbers], axis=1)
        scaler = SquashingScaler(max_absolute_value=3).fit(values)
    gaps = [name for name in numbers if columns[name].isna().any()]
    outputs = [str(output) for name in transformers for output in vectorizer.input_to_outputs_[name]]
    return {
        "kinds": {name: kinds[name] for name in transformers},
        "gaps": gaps,
        "names": [*outputs, *(f"{name} missing" for name in gaps)],
        "lines": [_line(name, kinds[name], columns[name], transformers) for name in columns],
        "transformers": transformers,
        "scaler": scaler,
    }


def _encoded(column: Any, transformer: Any) -> NDArray[Any]:
    """A typed column as numbers, not scaled; numbers and dates may be missing."""
    if transformer is None:
        return np.asarray(column.to_numpy(np.float64)[:, None])
    # Each value once, since texts take their time, and categories are there again and again. skrub's transformers take
    # a column, scikit-learn's a table.
    codes, values = column.factorize(use_na_sentinel=False)
    unique = type(column)(values, dtype=column.dtype, name=column.name)
    given = unique.to_frame() if hasattr(transformer, "categories_") else unique
    encoded: NDArray[Any] = np.asarray(transformer.transform(given))[codes]
    return encoded


def _line(name: str, kind: str, column: Any, transformers: Mapping[str, Any]) -> str:
    """What becomes of a column, in words."""
    if name not in transformers:
        return f"{name}: {kind}, the same in all rows: dropped"
    transformer = transformers[name]
    said, gaps = [kind], int(column.isna().sum())
    if kind == "category":
        said.append(f"{column.nunique()} values")
    if hasattr(transformer, "n_components_"):
        said.append(f"{transformer.n_components_} components")
    elif kind == "category":
        said.append("one-hot")
    elif kind == "date":
        said.append(f"{len(transformer.all_outputs_)} parts")
    if gaps:
        said.append(f"{gaps} gap{'s' if gaps > 1 else ''}")
    return f"{name}: {', '.join(said)}"


def _string_encoders(transformers: dict[str, Any]) -> list[tuple[str, Any]]:
    """The encoders of texts, by column."""
    return [(name, one) for name, one in transformers.items() if hasattr(one, "vectorizer_")]


def _vocabularies(transformers: dict[str, Any]) -> dict[str, list[str]]:
    """The n-grams of each column of texts, in order."""
    found = {name: one.vectorizer_.vocabulary_ for name, one in _string_encoders(transformers)}
    return {name: sorted(words, key=words.__getitem__) for name, words in found.items()}
