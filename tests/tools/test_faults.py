"""A small share of what `tools/faults.py` tries, and the tool itself."""

import random
import re
import time

import pytest

import faults
from cagat.errors import CagatError
from fault_kinds import FAULTS
from fault_kinds.attack import MAY_BE_READ, Attack
from fault_kinds.bad_arguments import CALLS, wrong_error
from fault_kinds.bad_calls import BadCall
from fault_kinds.command_lines import _distinct_lines, random_command_lines
from fault_kinds.command_lines import _wrong as wrong_end
from fault_kinds.damage import CUTS, FLIPS, damaged
from fault_kinds.extremes import EXTREME_CASES, _wrong
from fault_kinds.fault import Fault, Outcome
from fault_kinds.forked import Ended
from fault_kinds.hostile import ATTACKS, attacked, hostile_files
from fault_kinds.hostile_runs import formula_in_predictions
from fault_kinds.races import races
from fault_kinds.report import read_rows, table, write_rows


def wrong(tries) -> list[Outcome]:
    return [outcome for outcome in tries if outcome.wrong]


@pytest.mark.parametrize("fault", [FLIPS, CUTS], ids=lambda fault: fault.name)
def test_damage_is_noticed(fault, tmp_path):
    assert wrong(fault.run(20, random.Random(1), tmp_path)) == []


def test_damage_that_is_none_counts_as_failed(tmp_path):
    found = list(damaged(lambda content, draw: content)(5, random.Random(0), tmp_path))
    assert len(wrong(found)) == 5


@pytest.mark.parametrize("name", CALLS)
def test_bad_arguments_are_told(name):
    assert wrong_error(CALLS[name]) == ""


def test_errors_that_say_too_little_count_as_failed():
    def fail():
        raise ValueError("no")

    assert wrong_error(BadCall(lambda: None, "a", "b")) == "was taken"
    assert "does not say 'a'" in wrong_error(BadCall(fail, "a", "b"))
    assert "KeyError" in wrong_error(BadCall(lambda: {}["x"], "a", "b"))


@pytest.mark.parametrize("name", [name for name in EXTREME_CASES if "hub" not in name])
def test_extremes_are_finite_or_told(name):
    assert _wrong(EXTREME_CASES[name], {}) == ""
    assert _wrong(EXTREME_CASES[name], {"support": "edges"}) == ""


def test_hostile_files_are_refused(tmp_path):
    assert wrong(hostile_files(8, random.Random(0), tmp_path)) == []


@pytest.mark.parametrize(
    "name",
    [
        "yaml merges",
        "yaml that is a pipe",
        "zip slip",
        "checkpoint of a terabyte",
        "metrics of one line",
    ],
)
def test_some_more_hostile_files(tmp_path, name):
    assert attacked(ATTACKS[name], tmp_path) == ""


def reads_at_once(folder):
    return lambda: None


def refuses(folder):
    def read():
        raise CagatError("no")

    return read


def waits(folder):
    return lambda: time.sleep(6)


def changes_a_file(folder):
    path = folder.parent.parent / "other"
    path.write_text("a")
    return lambda: path.write_text("b")


def writes_elsewhere(folder):
    return lambda: (folder / ".." / ".." / ".." / "escaped").write_text("")


@pytest.mark.parametrize(
    ("attack", "wrong"),
    [
        (Attack(reads_at_once, MAY_BE_READ), ""),
        (Attack(reads_at_once, "a"), "it was read"),
        (Attack(refuses, "no"), ""),
        (Attack(refuses, "yes"), "another reason than 'yes': no"),
        (Attack(waits, MAY_BE_READ), "took 6"),
        (Attack(changes_a_file, MAY_BE_READ), "files changed.*other"),
        (Attack(writes_elsewhere, MAY_BE_READ), "files changed.*escaped"),
    ],
    ids=lambda value: getattr(getattr(value, "make", None), "__name__", None),
)
def test_what_hostile_files_must_not_do_is_noticed(tmp_path, attack, wrong):
    found = attacked(attack, tmp_path / "watched")
    assert re.search(wrong, found) if wrong else found == ""


def test_predictions_hold_no_formulas(tmp_path):
    assert formula_in_predictions(tmp_path) == ""


def test_two_at_work_and_broken_downloads(tmp_path):
    assert wrong(races(3, random.Random(0), tmp_path)) == []


def test_random_command_lines_end_well(tmp_path):
    assert wrong(random_command_lines(8, random.Random(0), tmp_path)) == []


@pytest.mark.parametrize(
    ("line", "ended", "wrong"),
    [
        ("models --x", Ended(2, "Usage", ""), ""),
        ("models --x", Ended(1, "", "Error: no"), ""),
        ("models", Ended(0, "cagat", ""), ""),
        ("models --x", Ended(None, "", ""), "exit code None"),
        ("models --x", Ended(130, "", "stopped"), "exit code 130"),
        ("models --x", Ended(1, "", "Traceback (most recent call last)"), "exit code 1"),
        ("models --x", Ended(1, "", "\n"), "exit code 1, but nothing was said"),
        ("models --x", Ended(3, "on standard output", ""), "exit code 3, but nothing was said"),
        ("models --x", Ended(0, "", ""), "exit code 0, but nothing was said"),
        ("models", Ended(1, "", "Error: no"), "exit code 1, although the line is sound"),
        ("evaluate run", Ended(2, "", "Usage"), "exit code 2, although the line is sound"),
    ],
)
def test_how_a_command_line_may_end(line, ended, wrong):
    found = wrong_end(line.split(), ended)
    assert found.startswith(wrong) if wrong else found == ""


def test_command_lines_are_drawn_once_and_from_all_options():
    lines = _distinct_lines(400, random.Random(0))
    assert len({tuple(line) for line in lines}) == len(lines) == 400
    drawn = {(line[0], argument) for line in lines for argument in line[:-1] if line}
    assert {("reproduce", "--labels"), ("reproduce", "--methods"), ("tune", "--dataset")} <= drawn
    several = [line for line in lines if line[:1] == ["reproduce"] and line.count("--labels") == 1]
    assert any(line[line.index("--labels") + 1] != "3" for line in several), "the value that is sound gives way"
    assert any("\udcff" in line for line in lines)


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
    assert out.with_suffix(".md").read_text() == table([row])
    assert main("--resume") == 1, "what failed is tried again"
    monkeypatch.setattr(faults, "FAULTS", (Fault("some", "what", "must", 1, 1, run),))
    assert main("--resume") == 0
    capsys.readouterr()
    assert main("--resume") == 0, "what is done is left out"
    assert "0 passed, 0 failed" in capsys.readouterr().out


def test_rows_come_back_the_same(tmp_path):
    row = faults.tried(Fault("some", "what", "must", 1, 1, lambda *given: iter([Outcome("one")])), 1, 0, "command")
    write_rows(tmp_path / "rows.json", [row])
    assert read_rows(tmp_path / "rows.json") == {"some": row}


def test_the_issue_s_numbers_of_tries():
    tries = {fault.name: fault.tries for fault in FAULTS}
    least = {"kills": 50, "flips": 1000, "cuts": 200, "disk": 40, "bad-arguments": 60, "determinism": 20, "races": 20}
    assert all(tries[name] >= count for name, count in least.items())
    assert tries["command-lines"] == 500
