import pytest

from cagat.errors import CagatError
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


def test_a_line_that_is_no_record_is_named(tmp_path):
    path = tmp_path / "r.jsonl"
    Records(path).add(ASKED, {})
    path.write_text(path.read_text() + "[]\n")
    with pytest.raises(CagatError, match="is no record"):
        Records(path)


@pytest.mark.parametrize("line", ['{"asked": {}, "found": []}', '{"asked": 1, "found": {}}', "[]", "{}"])
def test_a_line_that_is_no_record_is_told(line, tmp_path):
    (tmp_path / "runs.jsonl").write_text(line + "\n")
    with pytest.raises(CagatError, match="is no record"):
        Records(tmp_path / "runs.jsonl")
