"""Finding and fetching published graphs."""

import hashlib
import logging
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cagat.data import fetch, fetching
from cagat.data.published import PUBLISHED
from cagat.data.sources import HttpsFile
from cagat.errors import DatasetError


@dataclass(frozen=True)
class FakeSource:
    """Writes what it is told to, or fails."""

    words: str
    content: bytes | None

    def fetch(self, target, progress):
        if self.content is None:
            raise DatasetError(f"{self.words}: out of order")
        target.write_bytes(self.content)


@pytest.fixture
def sources(monkeypatch):
    """Replace citeseer's sources; its file is then the text `real`."""

    def set_sources(*sources):
        sums = (hashlib.sha256(b"real").hexdigest(),)
        monkeypatch.setitem(PUBLISHED, "citeseer", replace(PUBLISHED["citeseer"], sources=sources, sums=sums))

    return set_sources


def test_the_directory_is_the_argument_then_the_variable_then_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CAGAT_DATA", str(tmp_path / "variable"))
    assert fetching.data_directory(tmp_path / "argument") == tmp_path / "argument"
    assert fetching.data_directory() == tmp_path / "variable"
    monkeypatch.delenv("CAGAT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert fetching.data_directory().is_relative_to(tmp_path) or fetching.data_directory().is_relative_to(Path.home())


def test_a_local_file_is_used_without_any_source(tmp_path, sources, caplog):
    caplog.set_level(logging.INFO)
    sources(FakeSource("never", None))
    (tmp_path / "citeseer.npz").write_bytes(b"real")
    assert fetch("citeseer", tmp_path) == tmp_path / "citeseer.npz"
    assert f"citeseer: found in the local directory {tmp_path}" in caplog.text


def test_a_local_file_with_another_sum_is_refused(tmp_path, sources):
    sources(FakeSource("never", None))
    (tmp_path / "citeseer.npz").write_bytes(b"other")
    expected, actual = hashlib.sha256(b"real").hexdigest(), hashlib.sha256(b"other").hexdigest()
    with pytest.raises(DatasetError, match=rf"citeseer\.npz: sha256 is {actual}, expected {expected}"):
        fetch("citeseer", tmp_path)


def test_sources_are_tried_in_order_and_said_aloud(tmp_path, sources, caplog):
    caplog.set_level(logging.INFO)
    sources(FakeSource("first", None), FakeSource("second", b"real"), FakeSource("third", None))
    assert fetch("citeseer", tmp_path / "new").read_bytes() == b"real"
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"citeseer: not in the local directory {tmp_path / 'new'}",
        "citeseer: fetching it from first",
        "citeseer: that failed (first: out of order)",
        "citeseer: fetching it from second",
        f"citeseer: now in {tmp_path / 'new' / 'citeseer.npz'}",
    ]


def test_without_any_source_every_one_is_named_and_how_to_go_on(tmp_path, sources):
    sources(FakeSource("first", None), FakeSource("second", None))
    with pytest.raises(DatasetError) as caught:
        fetch("citeseer", tmp_path)
    message = str(caught.value)
    for part in (str(tmp_path), "first: out of order", "second: out of order", "--data-dir", "CAGAT_DATA", "sha256"):
        assert part in message
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_noticed_within_seconds(tmp_path, sources):
    sources(HttpsFile("https://nowhere.invalid/citeseer.npz", "00"))
    started = time.monotonic()
    with pytest.raises(DatasetError, match=r"https://nowhere\.invalid/citeseer\.npz"):
        fetch("citeseer", tmp_path)
    assert time.monotonic() - started < 10


def test_cora_is_in_the_package(tmp_path):
    assert fetch("cora", tmp_path) == fetching.EMBEDDED / "cora.npz"
    assert list(tmp_path.iterdir()) == []


def test_the_one_in_the_package_must_have_the_known_sum(tmp_path, monkeypatch):
    changed = bytearray((fetching.EMBEDDED / "cora.npz").read_bytes())
    changed[1000] ^= 1
    (tmp_path / "cora.npz").write_bytes(changed)
    monkeypatch.setattr(fetching, "EMBEDDED", tmp_path)
    with pytest.raises(DatasetError, match=r"cora\.npz: sha256 is .* install cagat again"):
        fetch("cora", tmp_path / "empty")


def test_only_published_graphs_are_fetched():
    with pytest.raises(DatasetError, match=r"'karate'.*cora, citeseer, cora_ml, pubmed"):
        fetch("karate")


def test_a_directory_that_cannot_be_written(tmp_path, sources):
    sources(FakeSource("first", b"real"))
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="cannot be written"):
        fetch("citeseer", tmp_path / "file")


def test_a_source_that_gives_another_file_leaves_nothing(tmp_path, sources):
    sources(FakeSource("first", b"other"))
    with pytest.raises(DatasetError, match=r"citeseer\.npz from first: sha256 is"):
        fetch("citeseer", tmp_path)
    assert list(tmp_path.iterdir()) == []
