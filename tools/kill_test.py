"""Kill trainings at random moments, also in the middle of a save, and see whether they resume to the same bits.

Run: python tools/kill_test.py --kills 50

One training runs unbroken; others are killed with SIGKILL again and again, and resumed with `cagat train --resume`
until they end. Each must end with the weights, metrics and predictions of the unbroken one, byte for byte. Exit code 1
if a run ended otherwise. `tools/faults.py` does the same, and more.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from fault_kinds.kills import killed_runs


def main() -> None:
    """Run the trainings and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    options = parser.parse_args()
    ways, wrong = Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        draw = random.Random(options.seed)  # noqa: S311
        for outcome in killed_runs(options.kills, draw, Path(folder), options.epochs):
            ways[outcome.what] += 1
            wrong += bool(outcome.wrong)
            print(f"{outcome.what}: {outcome.wrong or 'resumed to the same bits'}", flush=True)
    print(f"{ways.total()} kills ({ways['killed in a save']} in a save): {ways.total() - wrong} passed, {wrong} failed")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
