"""Hostile files, each read in a process of its own that is watched."""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

from cagat.errors import CagatError
from fault_kinds.fault import Fault, Outcome
from fault_kinds.forked import Forked
from fault_kinds.hostile_files import READ, formula_in_predictions
from fault_kinds.peak_memory import forget_peak, peak_bytes

MOST_SECONDS = 5.0
MOST_BYTES = 2**30
_FORMULAS = "formula in predictions"


def hostile_files(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Read each of the files."""
    for number, name in enumerate([*READ, _FORMULAS][:tries]):
        home = folder / str(number) / "target"
        home.mkdir(parents=True)
        ended = Forked(_attempt, name, home, folder=home).wait(120)
        if ended.code != 0:
            yield Outcome(name, f"exit code {ended.code}: {ended.err}")
            continue
        found = json.loads(ended.out.splitlines()[-1])
        yield Outcome(name, _wrong(home, found))


def _attempt(name: str, home: Path) -> None:
    """Make the files, then read them; print what came of it, the processor's time and the most memory there was."""
    if name == _FORMULAS:
        print(json.dumps({"wrong": formula_in_predictions(home), "seconds": 0, "bytes": 0, "made": _files(home)}))
        return
    read = READ[name](home)
    made = _files(home)
    forget_peak()
    started, wrong = time.process_time(), "it was read"
    try:
        read()
    except CagatError:
        wrong = ""
    except BaseException as error:
        wrong = f"{type(error).__name__}: {error}"
    print()
    print(json.dumps({"wrong": wrong, "seconds": time.process_time() - started, "bytes": peak_bytes(), "made": made}))


def _files(home: Path) -> dict[str, int]:
    """All files at and beside the target, with their sizes."""
    return {
        str(path.relative_to(home.parent)): path.lstat().st_size for path in home.parent.rglob("*") if path.is_file()
    }


def _wrong(home: Path, found: dict[str, object]) -> str:
    if found["wrong"]:
        return str(found["wrong"])
    if float(found["seconds"]) > MOST_SECONDS or int(found["bytes"]) > MOST_BYTES:
        return f"took {found['seconds']:.1f} s and {int(found['bytes']) / 2**20:.0f} MiB"
    new = {name: size for name, size in _files(home).items() if not name.endswith(".lock")}
    known = {name: size for name, size in found["made"].items() if not name.endswith(".lock")}
    return "" if new == known else f"files changed: {sorted(set(new.items()) ^ set(known.items()))}"


HOSTILE = Fault(
    "hostile",
    "hostile files: pickles, object arrays, zip bombs, zip slip, symlinks, huge shapes, YAML tags, long CSV, formulas",
    "refused with a typed error under 5 s and 1 GiB; nothing executed, nothing written elsewhere",
    tries=len(READ) + 1,
    quick=len(READ) + 1,
    run=hostile_files,
)
