"""Names as JSON."""

import json

import numpy as np
import pytest

from cagat.data import json_names
from cagat.data.json_names import decoded_names, encoded_names
from cagat.errors import DatasetError

NAMES = ["a", 'quote " and, comma', "\\", '\\"', 'x\\\\",', "é,\n", "", "😀"]


@pytest.fixture
def careful(monkeypatch):
    """Nothing is few, and blocks are short, so that texts go on from one to the next."""
    monkeypatch.setattr(json_names, "_FEW", 0)
    monkeypatch.setattr(json_names, "_BLOCK", 3)


@pytest.mark.parametrize("names", [NAMES, NAMES[::-1], NAMES * 10, ["a"]])
def test_names_are_counted_without_making_them(careful, names):
    for text in (encoded_names(names), np.frombuffer(json.dumps(names).encode(), dtype=np.uint8)):
        assert decoded_names("names", text, len(names)) == names
        with pytest.raises(DatasetError, match=f"names has {len(names)} names, but there can be at most"):
            decoded_names("names", text, len(names) - 1)


@pytest.mark.parametrize("text", [b"[[],[],[]]", b'[{"a":1,"b":2,"c":3}]', b"[1,2,3]"])
def test_other_values_are_counted_too(careful, text):
    with pytest.raises(DatasetError, match="has 3 names, but there can be at most 2"):
        decoded_names("names", np.frombuffer(text, dtype=np.uint8), 2)


def test_only_one_encoding_is_read():
    # In others, bytes that look like quotes are parts of characters, which would be counted wrongly.
    with pytest.raises(DatasetError, match="not readable"):
        decoded_names("names", np.frombuffer('["a"]'.encode("utf-16"), dtype=np.uint8), 1)


def test_memory_is_required_first(monkeypatch):
    names = ["a" * 2**20, "b"]
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 40 * 2**20}))
    with pytest.raises(DatasetError, match="names: reading 1048585 bytes of names would need 40 MiB"):
        decoded_names("names", encoded_names(names), 2)
