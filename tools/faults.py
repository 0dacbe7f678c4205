"""Try everything that can go wrong, and count what came of it.

Run: python tools/faults.py --quick        a share of each fault: under five minutes on two quiet cores
     python tools/faults.py                the whole table, into results/faults.json; about half an hour
     python tools/faults.py --only kills   some faults only; their rows take the place of those in the table
     python tools/faults.py --resume       only what the table does not have yet, or not with all its tries

The rows are written one by one, so that an interrupted run goes on with `--resume`. The faults themselves are in
`tests/fault_kinds`; `tools/update_docs.py` puts the table into docs/explanation/reliability.md.
The exit code is 1 if anything failed.
"""

import argparse
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fault_table import Row, facts, read_rows, table, today, write_rows

# The tests share the faults with this command.
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from fault_kinds.command_lines import COMMAND_LINES
from fault_kinds.damage import DAMAGE
from fault_kinds.fault import Fault
from fault_kinds.hostile import HOSTILE
from fault_kinds.runs import RUNS

RESULTS = Path(__file__).parents[1] / "results" / "faults.json"
FAULTS: tuple[Fault, ...] = (*RUNS, *DAMAGE, HOSTILE, COMMAND_LINES)
_MOST_SHOWN = 20
_MOST_KINDS = 4


def tried(fault: Fault, tries: int, seed: int, command: str) -> Row:
    """Try a fault, and say at once what failed."""
    started, passed, failed, kinds = time.monotonic(), 0, 0, Counter[str]()
    with tempfile.TemporaryDirectory(prefix=f"cagat-{fault.name}-") as folder:
        Path(folder).chmod(0o755)
        for outcome in fault.run(tries, random.Random(seed), Path(folder)):  # noqa: S311
            passed, failed = passed + (not outcome.wrong), failed + bool(outcome.wrong)
            kinds[outcome.what] += 1
            if outcome.wrong and failed <= _MOST_SHOWN:
                print(f"FAILED {fault.name}: {outcome.what}: {outcome.wrong}", flush=True)
    seconds = round(time.monotonic() - started, 1)
    print(f"{fault.name}: {passed} passed, {failed} failed in {seconds:.0f} s", flush=True)
    few = dict(kinds.most_common()) if 1 < len(kinds) <= _MOST_KINDS else {}
    counts = (passed + failed, passed, failed, seconds)
    return Row(fault.name, fault.title, fault.must, *counts, command, today(), facts(), few)


def main() -> None:
    """Try the faults and print the table."""
    names = [fault.name for fault in FAULTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a share of each; nothing is written")
    parser.add_argument("--only", nargs="+", choices=names, metavar="FAULT", help=f"of {', '.join(names)}")
    parser.add_argument("--resume", action="store_true", help="leave out what the table has already")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the table, as JSON")
    options = parser.parse_args()
    logging.getLogger("cagat").addHandler(logging.NullHandler())
    command = " ".join(["python tools/faults.py", *sys.argv[1:]])
    rows, done = {} if options.quick else read_rows(options.out), []
    for fault in FAULTS:
        known = rows.get(fault.name)
        skipped = options.resume and known is not None and known.tries >= fault.tries and not known.failed
        if skipped or fault.name not in (options.only or names):
            continue
        rows[fault.name] = tried(fault, fault.quick if options.quick else fault.tries, options.seed, command)
        done.append(rows[fault.name])
        if not options.quick:
            write_rows(options.out, [rows[name] for name in names if name in rows])
    passed, failed = sum(row.passed for row in done), sum(row.failed for row in done)
    print(f"{table(done)}\n{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
