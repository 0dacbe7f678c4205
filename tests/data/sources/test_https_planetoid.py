"""Planetoid's files from a server."""

import hashlib

import pytest

from cagat.data.sources import HttpsFile, HttpsPlanetoid
from cagat.errors import DatasetError
from planetoid_files import planetoid_files, tiny_npz


def ignore(file, done, total):
    pass


def planetoid(server, kind):
    files = planetoid_files("tiny")
    server.RequestHandlerClass.files.update(files)
    sums = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
    return HttpsPlanetoid("tiny", f"{server.address}/{kind}", sums)


def test_eight_files_become_one(server, tmp_path):
    planetoid(server, "good").fetch(tmp_path / "tiny.npz", ignore)
    assert (tmp_path / "tiny.npz").read_bytes() == tiny_npz(tmp_path / "expected.npz")


@pytest.mark.parametrize("kind", ["cut", "wrong", "missing"])
def test_one_bad_file_and_there_is_none(server, tmp_path, kind):
    with pytest.raises(DatasetError, match=r"ind\.tiny\."):
        planetoid(server, kind).fetch(tmp_path / "tiny.npz", ignore)
    assert list(tmp_path.iterdir()) == []


def test_a_single_file(server, tmp_path):
    content = tiny_npz(tmp_path / "expected.npz")
    server.RequestHandlerClass.files["tiny.npz"] = content
    HttpsFile(f"{server.address}/good/tiny.npz", hashlib.sha256(content).hexdigest()).fetch(tmp_path / "t.npz", ignore)
    assert (tmp_path / "t.npz").read_bytes() == content
