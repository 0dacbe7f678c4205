"""Reading arrays from files that mean harm, or are merely broken."""

import contextlib
import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from cagat.data.archive import read_arrays, write_arrays
from cagat.errors import DatasetError


class Bomb:
    """Unpickling this would create a directory."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def npy(descr="'<f4'", shape="(2,)", content=b"\0" * 8):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def archive(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def test_what_is_written_is_read_back(tmp_path):
    arrays = {
        "a": np.arange(6).reshape(2, 3),
        "b": np.array(["é", "x"]),
        "c": np.asfortranarray(np.eye(3)),
        "d": np.array(True),
    }
    write_arrays(tmp_path / "a.npz", arrays)
    back = read_arrays(tmp_path / "a.npz", [*arrays, "absent"])
    assert set(back) == set(arrays)
    for key, array in arrays.items():
        np.testing.assert_array_equal(back[key], array)
        np.testing.assert_array_equal(np.load(tmp_path / "a.npz")[key], array)


def test_bytes_depend_on_the_arrays_alone(tmp_path):
    write_arrays(tmp_path / "1.npz", {"a": np.arange(3), "b": np.ones(2)})
    write_arrays(tmp_path / "2.npz", {"b": np.ones(2), "a": np.arange(3)})
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


def test_a_wanted_object_array_is_refused_and_not_executed(tmp_path):
    content = npy("'|O'", "()", pickle.dumps(Bomb(tmp_path / "executed")))
    path = archive(tmp_path / "a.npz", labels=content)
    with pytest.raises(DatasetError, match="execute code"):
        read_arrays(path, ["labels"])
    assert not (tmp_path / "executed").exists()


def test_an_unwanted_object_array_is_left_alone(tmp_path):
    path = archive(
        tmp_path / "a.npz", metadata=npy("'|O'", "()", pickle.dumps(Bomb(tmp_path / "executed"))), labels=npy()
    )
    assert list(read_arrays(path, ["labels"])) == ["labels"]
    assert not (tmp_path / "executed").exists()


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.npz", labels=npy("'|i1'", "(20000000,)", bytes(20_000_000)))
    assert path.stat().st_size < 25_000
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 30_000_000}))
    with pytest.raises(DatasetError, match="would need"):
        read_arrays(path, ["labels"])


def test_a_size_that_lies_is_not_believed(tmp_path):
    path = archive(tmp_path / "a.npz", labels=npy("'|i1'", "(20000000,)", bytes(20_000_000)))
    content = bytearray(path.read_bytes())
    central = content.index(b"PK\x01\x02")
    content[central + 24 : central + 28] = (1000).to_bytes(4, "little")  # The unpacked size in the directory.
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=r"holds only 1000 bytes|CRC"):
        read_arrays(path, ["labels"])


@pytest.mark.parametrize(
    "content",
    [
        npy(shape="(3,)"),
        npy(shape="(1,)"),
        npy(shape="(-2,)"),
        npy(shape="(4611686018427387904, 4)"),
        npy(descr="[('a', '|O')]"),
        npy(descr="[('a', '<f4')]"),
        npy(descr="'<M8[s]'", shape="(1,)"),
        npy(descr="__import__('os').getcwd()"),
        b"\x93NUMPY\x01\x00\xff\xff" + b" " * 65535,
        b"\x93NUMPY\x09\x00",
        b"not an array",
        b"",
    ],
)
def test_headers_that_do_not_fit(tmp_path, content):
    with pytest.raises(DatasetError):
        read_arrays(archive(tmp_path / "a.npz", labels=content), ["labels"])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"plain text", pickle.dumps({"a": 1})])
def test_files_that_are_no_archives(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DatasetError, match=r"a\.npz"):
        read_arrays(tmp_path / "a.npz", ["labels"])


def test_every_cut_of_an_archive_is_refused(tmp_path):
    write_arrays(tmp_path / "a.npz", {"labels": np.arange(5)})
    whole = (tmp_path / "a.npz").read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        with pytest.raises(DatasetError):
            read_arrays(tmp_path / "cut.npz", ["labels"])


def test_a_changed_byte_is_noticed(tmp_path):
    write_arrays(tmp_path / "a.npz", {"labels": np.arange(5)})
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[content.index(np.arange(5).tobytes()) + 8] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DatasetError, match="CRC"):
        read_arrays(tmp_path / "a.npz", ["labels"])


def test_paths_in_an_archive_lead_nowhere(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("../../evil.npy", npy())
        file.writestr("/etc/labels.npy", npy())
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (folder / "a.npz").write_bytes(buffer.getvalue())
    assert read_arrays(folder / "a.npz", ["labels", "evil"]) == {}
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.npz"]


def test_an_array_that_is_there_twice(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("labels.npy", npy())
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("labels.npy", npy())
    with pytest.raises(DatasetError, match="twice"):
        read_arrays(tmp_path / "a.npz", ["labels"])


def test_an_encrypted_member(tmp_path):
    path = archive(tmp_path / "a.npz", labels=npy())
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=r"encrypted|password"):
        read_arrays(path, ["labels"])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_changed_file_never_does_more_than_fail(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as file:
        file.writestr("labels.npy", npy("'<i8'", "(20,)", np.arange(20).tobytes()))
    whole, random = (tmp_path / "a.npz").read_bytes(), np.random.default_rng(0)
    for _ in range(500):
        changed = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            changed[random.integers(len(changed))] = random.integers(256)
        (tmp_path / "b.npz").write_bytes(changed)
        with contextlib.suppress(DatasetError):
            assert set(read_arrays(tmp_path / "b.npz", ["labels"])) <= {"labels"}


@pytest.mark.parametrize(
    "header", [b"(" * 5000, b"[" * 5000 + b"]" * 5000, b"{'descr': 5}", b"{1: 2", b"-" * 9000 + b"1"]
)
def test_headers_that_upset_a_parser(tmp_path, header):
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with pytest.raises(DatasetError):
        read_arrays(archive(tmp_path / "a.npz", labels=content), ["labels"])
