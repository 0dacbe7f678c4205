import os

import pytest

from cagat.errors import CagatError
from cagat.experiments import records as module
from cagat.experiments.records import Records

ASKED = {"model": "cagat", "seed": 3, "alpha": 0.4}


def test_what_was_found_is_found_again(tmp_path):
    records = Records(tmp_path / "r.jsonl")
    assert records.get(ASKED) is None
    records.add(ASKED, {"accuracy": 0.8})
    again = Records(tmp_path / "r.jsonl")
    assert again.get(dict(reversed(ASKED.items()))) == {"accuracy": 0.8}
    assert again.get(ASKED | {"seed": 4}) is None
    assert len(again) == 1


def test_a_line_that_was_cut_off_is_forgotten(tmp_path):
    path = tmp_path / "r.jsonl"
    Records(path).add(ASKED, {"accuracy": 0.8})
    path.write_bytes(path.read_bytes() + b'{"asked": {"mod')
    records = Records(path)
    assert len(records) == 1
    records.add(ASKED | {"seed": 4}, {"accuracy": 0.7})
    assert len(Records(path)) == 2


DEEP = '{"asked": ' + "[" * 100_000


@pytest.mark.parametrize(
    "line",
    ['{"asked": {}, "found": []}', '{"asked": 1, "found": {}}', "[]", "{}", DEEP],
    ids=lambda line: line[:30],
)
def test_a_line_that_is_no_record_is_told(line, tmp_path):
    (tmp_path / "runs.jsonl").write_text(line + "\n")
    with pytest.raises(CagatError, match="is no record"):
        Records(tmp_path / "runs.jsonl")


@pytest.mark.posix
@pytest.mark.parametrize("kind", ["device", "pipe", "directory"])
def test_what_is_no_file_is_neither_read_nor_waited_for(kind, tmp_path):
    path = tmp_path / "runs.jsonl"
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(CagatError, match=r"runs\.jsonl: cannot be read \(.*\)\. Move it away"):
        Records(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    Records(path).add(ASKED, {})
    monkeypatch.setattr(module, "_LARGEST_BYTES", path.stat().st_size)
    assert len(Records(path)) == 1
    monkeypatch.setattr(module, "_LARGEST_BYTES", path.stat().st_size - 1)
    with pytest.raises(CagatError, match=r"runs\.jsonl: cannot be read \(it is larger than \d+ bytes\)"):
        Records(path)
