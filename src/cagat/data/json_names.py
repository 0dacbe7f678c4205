"""Lists of names as JSON in an array of bytes."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagat.data.memory import require_memory
from cagat.errors import DatasetError

# So many names, or names of so many bytes, need little memory, even if they are of classes that no node has.
_FEW = 2**20
# A short text takes up to twenty times the bytes that it has in the file; as much again is required to work with.
_MEMORY = 20
_BLOCK = 2**20
_QUOTE, _COMMA = b'",'


def encoded_names(names: list[str]) -> NDArray[np.uint8]:
    """The bytes of names."""
    return np.frombuffer(json.dumps(names, ensure_ascii=False).encode(), dtype=np.uint8)


def decoded_names(what: str, array: NDArray[Any], most: int) -> list[str]:
    """The names in an array of bytes.

    Raises:
        DatasetError: The array holds anything else, or very many names and more than `most`.
    """
    text = array.tobytes()
    if len(text) > _FEW:
        if (count := _count(text)) > max(most, _FEW):
            raise DatasetError(f"{what} has {count} names, but there can be at most {most}. Write it again.")
        require_memory(f"{what}: reading {len(text)} bytes of names", _MEMORY * len(text), "Give shorter names.")
    try:
        # Not the bytes, in which JSON would also read other encodings, that are counted wrongly.
        names = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{what}: names are not readable ({error}).") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DatasetError(f"{what}: names must be a list of texts.")
    return names


def _count(text: bytes) -> int:
    """How many values a list in JSON has, inner ones too, without making any: the commas outside of texts, and one."""
    # Without what is escaped, every quote begins or ends a text.
    marks = np.frombuffer(text.replace(rb"\\", b"").replace(rb"\"", b""), dtype=np.uint8)
    quotes = commas = 0
    for start in range(0, len(marks), _BLOCK):
        block = marks[start : start + _BLOCK]
        before = quotes + np.cumsum(block == _QUOTE)
        commas += int(np.count_nonzero((block == _COMMA) & (before % 2 == 0)))
        quotes = int(before[-1])
    return commas + 1
