"""Files of arrays and JSON that notice every change."""

import hashlib
import json
import os
import struct

import numpy as np
import pytest
import safetensors.numpy

from cagat.errors import DamagedFileError
from cagat.memory import OutOfMemoryError
from cagat.safetensors_file import is_intact, read_tensors, write_tensors

TENSORS = {
    "a": np.arange(6).reshape(2, 3).T,  # Not contiguous.
    "scalar": np.array(2.5),
    "none": np.empty((0, 3), dtype=np.float32),
    "flags": np.array([True, False]),
    "é": np.arange(3, dtype=np.uint8),
}
METADATA = {"names": ["x", 'é "\\\n\ud800'], "loss": 0.1, "whole": 2**60, "nothing": None, "zeros": "0" * 64}


@pytest.fixture
def path(tmp_path):
    write_tensors(tmp_path / "a.safetensors", TENSORS, METADATA)
    return tmp_path / "a.safetensors"


def test_what_was_written_comes_back(path, tmp_path):
    tensors, metadata = read_tensors(path)
    assert metadata == METADATA
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert tensors[name].shape == tensor.shape
        assert tensors[name].tolist() == tensor.tolist()
        assert tensors[name].flags.writeable
    write_tensors(tmp_path / "b", dict(reversed(TENSORS.items())), METADATA)
    assert (tmp_path / "b").read_bytes() == path.read_bytes()
    assert safetensors.numpy.load_file(path)["a"].tolist() == TENSORS["a"].tolist()  # As others read it.
    write_tensors(path, {}, {})
    assert read_tensors(path) == ({}, {})


@pytest.mark.parametrize("require_checksum", [True, False])
def test_every_changed_bit_and_every_cut_is_noticed(path, require_checksum):
    content = path.read_bytes()
    changes = [content[:length] for length in range(0, len(content), 7)] + [content + b"\0"]
    changes += [bytes([*content[:i], content[i] ^ (1 << i % 8), *content[i + 1 :]]) for i in range(len(content))]
    for changed in changes:
        path.write_bytes(changed)
        assert not is_intact(path)
        with pytest.raises(DamagedFileError, match=r"a\.safetensors: is damaged"):
            read_tensors(path, require_checksum=require_checksum)


@pytest.mark.parametrize("metadata", [None, {"format": "np"}])
def test_files_of_other_programs_have_no_checksum(path, metadata):
    safetensors.numpy.save_file({"a": TENSORS["a"].copy()}, path, metadata)
    with pytest.raises(DamagedFileError, match="has no checksum"):
        read_tensors(path)
    tensors, own = read_tensors(path, require_checksum=False)
    assert (tensors["a"].tolist(), own) == (TENSORS["a"].tolist(), {})
    assert not is_intact(path)


def test_graphs_of_older_versions_are_read(path):
    path.write_bytes(
        b'\x98\x00\x00\x00\x00\x00\x00\x00{"__metadata__":{"cagat":"'
        b'a668bb5839d50482ccef23f4669b50c1084e8338046ce4d4197f4fd427ad112a"},'
        b'"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}       \x00\x01'
    )
    tensors, metadata = read_tensors(path)
    assert (tensors["a"].tolist(), metadata) == ([0, 1], {})
    path.write_bytes(path.read_bytes()[:-1] + b"\x02")
    with pytest.raises(DamagedFileError, match="checksum does not match"):
        read_tensors(path)


def test_headers_that_are_too_long_or_deep_are_not_parsed(path):
    for header in (b'{"a": [' + b"{}," * (3 * 2**20) + b"{}]}", b"[" * 100_000, b"5", b""):
        path.write_bytes(struct.pack("<Q", len(header)) + header)
        with pytest.raises(DamagedFileError, match=r"a\.safetensors: is damaged"):
            read_tensors(path, require_checksum=False)
    with pytest.raises(ValueError, match="at most 8388608 are possible"):
        write_tensors(path, {}, {"a": "x" * 2**23})


@pytest.mark.posix
def test_what_is_no_file_or_too_large_is_not_read(path, tmp_path):
    with path.open("r+b") as stream:
        stream.truncate(2**40)  # A hole, which costs no disk.
    with pytest.raises(OutOfMemoryError, match=r"a\.safetensors: reading it would need 1 TiB"):
        read_tensors(path)
    assert not is_intact(path)
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (("pipe", "no regular file"), ("missing", "No such file"), (".", "no regular file|directory")):
        with pytest.raises(DamagedFileError, match=f"cannot be read .*({reason})"):
            read_tensors(tmp_path / name)


@pytest.mark.parametrize("text", ["[]", "{", "5"])
def test_metadata_must_be_a_dictionary(path, text):
    header = json.dumps({"__metadata__": {"sha256": "0" * 64, "cagat": text}}, separators=(",", ":")).encode()
    content = struct.pack("<Q", len(header)) + header
    path.write_bytes(content.replace(b"0" * 64, hashlib.sha256(content).hexdigest().encode()))
    with pytest.raises(DamagedFileError, match="is damaged"):
        read_tensors(path)
