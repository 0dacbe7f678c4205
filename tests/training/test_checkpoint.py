"""Checkpoints that somebody else made and sealed."""

import io
import os
import struct
import zipfile

import pytest
import torch

from cagat.errors import DamagedFileError
from cagat.memory import OutOfMemoryError
from cagat.training.checkpoint import load_checkpoint, previous, save_checkpoint
from cagat.zip_seal import sealed


def archive(state) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def packed(content: bytes, compression: int) -> bytes:
    """The same archive, its members packed in another way."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as given, zipfile.ZipFile(buffer, "w", compression) as made:
        for member in given.infolist():
            made.writestr(member.filename, given.read(member))
    return buffer.getvalue()


def directory_of(content: bytes) -> tuple[int, int]:
    """Where the directory of an archive begins, and its length."""
    length, start = struct.unpack("<II", content[-10:-2])
    return start, length


def test_compressed_members_are_refused_and_not_unpacked(tmp_path, monkeypatch):
    content = packed(archive({"a": torch.zeros(2**20)}), zipfile.ZIP_DEFLATED)
    assert len(content) < 20_000
    (tmp_path / "checkpoint.pt").write_bytes(sealed(content))
    monkeypatch.setattr(torch, "load", lambda *arguments, **options: pytest.fail("torch was asked"))
    with pytest.raises(DamagedFileError, match=r"checkpoint.pt: is no checkpoint .* is compressed"):
        load_checkpoint(tmp_path / "checkpoint.pt")


def test_the_directory_that_is_checked_is_the_one_that_is_read(tmp_path):
    # Before the true directory there is one that zipfile looks at and torch does not.
    content = packed(archive({"a": torch.zeros(2**20)}), zipfile.ZIP_DEFLATED)
    start, length = directory_of(content)
    harmless = bytearray(content[start : start + length])
    for place in range(len(harmless)):
        if harmless[place : place + 4] == b"PK\1\2":
            harmless[place + 10 : place + 12] = bytes(2)
            harmless[place + 24 : place + 28] = harmless[place + 20 : place + 24]
    two = content[: start + length] + bytes(harmless) + content[start + length :]
    (tmp_path / "checkpoint.pt").write_bytes(sealed(two))
    with pytest.raises(DamagedFileError, match=r"checkpoint.pt: is no checkpoint"):
        load_checkpoint(tmp_path / "checkpoint.pt")


def test_sizes_that_the_file_does_not_have_are_refused(tmp_path):
    content = bytearray(packed(archive({"a": torch.zeros(4)}), zipfile.ZIP_STORED))
    place = content.rindex(b"PK\1\2")
    content[place + 24 : place + 28] = (2**31).to_bytes(4, "little")
    (tmp_path / "checkpoint.pt").write_bytes(sealed(bytes(content)))
    with pytest.raises(DamagedFileError, match="says that it holds more than the file"):
        load_checkpoint(tmp_path / "checkpoint.pt")


def test_a_member_that_is_there_twice_is_refused(tmp_path):
    buffer = io.BytesIO(archive({"a": torch.zeros(4)}))
    with zipfile.ZipFile(buffer, "a") as made, pytest.warns(UserWarning, match="Duplicate"):
        made.writestr(made.namelist()[0], b"")
    (tmp_path / "checkpoint.pt").write_bytes(sealed(buffer.getvalue()))
    with pytest.raises(DamagedFileError, match="is there twice"):
        load_checkpoint(tmp_path / "checkpoint.pt")


@pytest.mark.parametrize("name", ["data.pkl", "DATA.PKL"])
def test_a_program_that_would_keep_torch_busy_never_reaches_it(tmp_path, monkeypatch, name):
    doubled = b")" + b"".join(b"q%ch%c\x86" % (n, n) for n in range(40))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr(f"archive/{name}", b"\x80\x02}" + doubled + b"K\x01s.")
    (tmp_path / "checkpoint.pt").write_bytes(sealed(buffer.getvalue()))
    monkeypatch.setattr(torch, "load", lambda *arguments, **options: pytest.fail("torch was asked"))
    with pytest.raises(DamagedFileError, match=r"checkpoint.pt: is no checkpoint .*a tuple is longer or deeper"):
        load_checkpoint(tmp_path / "checkpoint.pt")


@pytest.mark.parametrize("state", [[], "text", torch.zeros(2)])
def test_what_is_no_dictionary_is_refused(tmp_path, state):
    (tmp_path / "checkpoint.pt").write_bytes(sealed(archive(state)))
    with pytest.raises(DamagedFileError, match=r"checkpoint.pt: is no checkpoint of cagat \(it holds a"):
        load_checkpoint(tmp_path / "checkpoint.pt")


def test_a_pipe_is_neither_waited_for_nor_kept(tmp_path):
    path = tmp_path / "checkpoint.pt"
    os.mkfifo(path)
    with pytest.raises(DamagedFileError, match="no regular file"):
        load_checkpoint(path)
    save_checkpoint(path, {"a": 1})
    assert load_checkpoint(path) == {"a": 1}
    assert not previous(path).exists()


def test_files_that_cannot_be_checkpoints_are_not_read_whole(tmp_path):
    path = tmp_path / "checkpoint.pt"
    with path.open("wb") as stream:
        stream.truncate(2**40)  # A hole, which costs no disk.
    with pytest.raises(DamagedFileError, match="is damaged"):
        load_checkpoint(path)
    with path.open("r+b") as stream:
        stream.seek(2**40 - 66)
        stream.write(b"\x40\0" + b"0" * 64)
    with pytest.raises(OutOfMemoryError, match=r"checkpoint.pt: reading it would need 4 TiB"):
        load_checkpoint(path)
