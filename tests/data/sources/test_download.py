"""Downloads are whole and right, or leave nothing."""

import time

import pytest

from cagat.data.sources import download as module
from cagat.data.sources.download import download
from cagat.errors import DatasetError


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
    monkeypatch.setattr(module, "SILENCE_SECONDS", 0.3)
    started = time.monotonic()
    with pytest.raises(DatasetError, match="timed out"):
        download(f"{server.address}/hanging/a.npz", tmp_path / "a.npz", server.sha256, ignore)
    assert time.monotonic() - started < 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("limit", "value"), [("MOST_BYTES", 1000), ("TOTAL_SECONDS", -1.0)])
def test_too_much_or_too_long(server, tmp_path, monkeypatch, limit, value):
    monkeypatch.setattr(module, limit, value)
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
