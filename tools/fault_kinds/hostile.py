"""Hostile files, each read in a process of its own that is watched."""

import hashlib
import json
import random
import re
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cagat.errors import CagatError
from fault_kinds.attack import MAY_BE_READ, Attack
from fault_kinds.fault import Fault, Outcome
from fault_kinds.forked import Forked
from fault_kinds.hostile_files import GRAPHS
from fault_kinds.hostile_runs import RUNS, formula_in_predictions
from fault_kinds.peak_memory import forget_peak, peak_bytes

MOST_SECONDS = 5.0
MOST_BYTES = 2**30
ATTACKS = GRAPHS | RUNS
_FORMULAS = "formula in predictions"
# A reader that waits is ended by an alarm; one that does not hear it, by a kill.
_ALARM_SECONDS, _KILL_SECONDS = 30, 120
# Of files that are larger, only the size and the time of the last change are compared.
_COMPARED_BYTES = 2**24


def hostile_files(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Read each of the files."""
    for number, name in enumerate([*ATTACKS, _FORMULAS][:tries]):
        yield Outcome(name, attacked(ATTACKS.get(name), folder / str(number)))


def attacked(attack: Attack | None, watched: Path) -> str:
    """What is wrong with the reading of an attack's files, or of formulas; they are made deep in a new directory."""
    # So deep that also ../../../x would be noticed.
    home = watched / "outer" / "middle" / "target"
    home.mkdir(parents=True)
    ended = Forked(_attempt, attack, home, watched, folder=home).wait(_KILL_SECONDS)
    if ended.code != 0:
        return f"exit code {ended.code}: {ended.err}"
    return _wrong(attack, watched, json.loads(ended.out.splitlines()[-1]))


def _attempt(attack: Attack | None, home: Path, watched: Path) -> None:
    """Make the files, then read them; print what came of it, the time and the most memory there was."""
    if attack is None:
        wrong = formula_in_predictions(home)
        print(json.dumps({"wrong": wrong, "told": None, "seconds": 0, "bytes": 0, "made": _files(watched)}))
        return
    read = attack.make(home)
    made = _files(watched)
    forget_peak()
    signal.signal(signal.SIGALRM, _waited_too_long)
    signal.alarm(_ALARM_SECONDS)
    started, worked, wrong, told = _seconds_not_waiting(), time.process_time(), "", None
    try:
        read()
    except CagatError as error:
        told = str(error)
    except BaseException as error:
        wrong = f"{type(error).__name__}: {error}"
    signal.alarm(0)
    seconds = max(_seconds_not_waiting() - started, time.process_time() - worked)
    print()
    print(json.dumps({"wrong": wrong, "told": told, "seconds": seconds, "bytes": peak_bytes(), "made": made}))


class _WaitedTooLongError(BaseException):
    """No reader takes it for an error of the file."""


def _waited_too_long(*_: object) -> None:
    raise _WaitedTooLongError(f"not done after {_ALARM_SECONDS} s")


def _seconds_not_waiting() -> float:
    """The time of the clock, without that in which others had the processor: on a busy machine they would decide."""
    return time.monotonic() - int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9


def _files(watched: Path) -> dict[str, str]:
    """All that is in the directory, with what each is and holds."""
    return {
        str(path.relative_to(watched)): _content(path) for path in watched.rglob("*") if not path.name.endswith(".lock")
    }


def _content(path: Path) -> str:
    known = path.lstat()
    if stat.S_ISLNK(known.st_mode):
        return f"link to {path.readlink()}"
    if not stat.S_ISREG(known.st_mode):
        return stat.filemode(known.st_mode)
    if known.st_size > _COMPARED_BYTES:
        return f"{known.st_size} bytes of {known.st_mtime_ns}"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _wrong(attack: Attack | None, watched: Path, found: dict[str, Any]) -> str:
    if found["wrong"]:
        return str(found["wrong"])
    if attack is not None and attack.told is not MAY_BE_READ:
        if found["told"] is None:
            return "it was read"
        if not re.search(attack.told, found["told"], re.DOTALL):
            return f"refused for another reason than {attack.told!r}: {found['told']}"
    if found["seconds"] > MOST_SECONDS or found["bytes"] > MOST_BYTES:
        return f"took {found['seconds']:.1f} s and {found['bytes'] / 2**20:.0f} MiB"
    new, known = _files(watched), found["made"]
    return "" if new == known else f"files changed: {sorted(set(new.items()) ^ set(known.items()))}"


HOSTILE = Fault(
    "hostile",
    "hostile files: pickles, object arrays, zip bombs, zip slip, symlinks, huge shapes, YAML tags, long CSV, formulas",
    "refused with a typed error under 5 s and 1 GiB; nothing executed, nothing written elsewhere",
    tries=len(ATTACKS) + 1,
    quick=len(ATTACKS) + 1,
    run=hostile_files,
)
