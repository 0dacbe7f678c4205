"""A small share of what `tools/faults.py` tries, all that it tries with `--quick` (slow), and the tool itself."""

import random
import re

import pytest

import faults
from fault_kinds.command_lines import random_command_lines, random_lines, wrong_end
from fault_kinds.damage import changed_files, cut, damaged, flip
from fault_kinds.fault import Fault, Outcome
from fault_kinds.hostile import MAY_BE_READ, attacked, wrong_reading
from fault_kinds.processes import Ended
from fault_table import read_rows, write_rows


def wrong(tries) -> list[Outcome]:
    return [outcome for outcome in tries if outcome.wrong]


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.name)
def test_a_share_of_each_fault_ends_as_it_must(fault):
    row = faults.tried(fault, fault.quick, seed=0, command="pytest -m slow")
    assert (row.tries, row.failed) == (fault.quick, 0)


@pytest.mark.parametrize("damage", [flip, cut])
def test_damage_is_noticed(damage, tmp_path):
    assert wrong(damaged(damage)(10, random.Random(1), tmp_path)) == []


def test_damage_that_is_none_counts_as_failed(tmp_path):
    assert len(wrong(damaged(lambda content, draw: content)(5, random.Random(0), tmp_path))) == 5


def test_changed_files_are_read_or_refused(tmp_path):
    assert wrong(changed_files(300, random.Random(0), tmp_path)) == []


@pytest.mark.parametrize("name", ["object array", "Planetoid with code", "zip slip", "lock that is a link"])
def test_hostile_files_are_refused(tmp_path, name):
    assert attacked(name, tmp_path) == ""


@pytest.mark.parametrize(
    ("pattern", "found", "wrong"),
    [
        (MAY_BE_READ, {}, ""),
        ("a", {}, "it was read"),
        ("no", {"told": "no"}, ""),
        ("yes", {"told": "no"}, "another reason than 'yes': no"),
        (MAY_BE_READ, {"seconds": 6}, r"took 6\.0 s"),
        (MAY_BE_READ, {"bytes": 2**31}, "2048 MiB"),
        (MAY_BE_READ, {"made": {"a": "1", "b": "2"}}, "files changed.*'b'"),
        (MAY_BE_READ, {"wrong": "KeyError"}, "KeyError"),
    ],
)
def test_what_hostile_files_must_not_do_is_noticed(pattern, found, wrong):
    reading = {"wrong": "", "told": None, "seconds": 1, "bytes": 1, "made": {"a": "1"}} | found
    said = wrong_reading(pattern, reading, {"a": "1"})
    assert re.search(wrong, said) if wrong else said == ""


def test_random_command_lines_end_well(tmp_path):
    assert wrong(random_command_lines(4, random.Random(0), tmp_path)) == []


@pytest.mark.parametrize(
    ("line", "ended", "wrong"),
    [
        ("models --x", Ended(2, "Usage", ""), ""),
        ("models --x", Ended(1, "", "Error: no"), ""),
        ("models", Ended(0, "cagat", ""), ""),
        ("models --x", Ended(None, "", ""), "exit code None"),
        ("models --x", Ended(130, "", "stopped"), "exit code 130"),
        ("models --x", Ended(1, "", "Traceback (most recent call last)"), "exit code 1"),
        ("models --x", Ended(3, "on standard output", ""), "exit code 3, but nothing was said"),
        ("models --x", Ended(0, "", ""), "exit code 0, but nothing was said"),
        ("evaluate run", Ended(2, "", "Usage"), "exit code 2, although the line is sound"),
    ],
)
def test_how_a_command_line_may_end(line, ended, wrong):
    found = wrong_end(line.split(), ended)
    assert found.startswith(wrong) if wrong else found == ""


def test_command_lines_are_drawn_once_and_from_all_options():
    lines = random_lines(400, random.Random(0))
    assert len({tuple(line) for line in lines}) == len(lines) == 400
    drawn = {(line[0], argument) for line in lines for argument in line[:-1] if line}
    assert {("reproduce", "--labels"), ("reproduce", "--methods"), ("tune", "--dataset")} <= drawn


def test_the_table_is_written_read_and_gone_on_with(tmp_path, monkeypatch, capsys):
    def run(tries, draw, folder):
        assert list(folder.iterdir()) == []
        yield from (Outcome(str(number), "bad" if number == 1 else "") for number in range(tries))

    fault = Fault("some", "what", "must", tries=3, quick=1, run=run)
    monkeypatch.setattr(faults, "FAULTS", (fault,))
    out = tmp_path / "faults.json"

    def main(*arguments) -> int:
        monkeypatch.setattr("sys.argv", ["faults.py", *arguments, "--out", str(out)])
        with pytest.raises(SystemExit) as ended:
            faults.main()
        return ended.value.code

    assert main("--quick") == 0
    assert capsys.readouterr().out.endswith("1 passed, 0 failed\n")
    assert not out.exists()
    assert main() == 1
    assert "FAILED some: 1: bad" in capsys.readouterr().out
    (row,) = read_rows(out).values()
    assert (row.tries, row.passed, row.failed) == (3, 2, 1)
    write_rows(out, [row])
    assert read_rows(out) == {"some": row}
    assert main("--resume") == 1, "what failed is tried again"
    monkeypatch.setattr(faults, "FAULTS", (Fault("some", "what", "must", 1, 1, run),))
    assert main("--resume") == 0
    capsys.readouterr()
    assert main("--resume") == 0, "what is done is left out"
    assert "0 passed, 0 failed" in capsys.readouterr().out
