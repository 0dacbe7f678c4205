"""Change the sources in small ways and see whether the tests notice.

Run: python tools/mutate.py --sample 60

The mutations are those of cosmic-ray, over `cagat.diffusion` and `cagat.nn`. A random sample of them is made, one at a
time, in a copy of the repository, and the tests of these rooms are run, with few random examples and without those of
`torch.compile`, until the first fails. A mutant that no test notices has survived. First the tests are run on the
unchanged sources, which must pass; a mutant that takes four times as long hangs, and counts as noticed. Writes
results/mutation.json; a run that was interrupted goes on where it was, unless the sources of these rooms or their tests
have changed since. `--sample 0` tries every mutation, which takes days.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from cagat.files import atomic_write
from fault_kinds.report import facts, today

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "mutation.json"
ROOMS = ("diffusion", "nn")
TESTS = ("tests/diffusion", "tests/nn")
# So many times what the unchanged sources take is a hang.
_PATIENCE = 4


@dataclass(frozen=True)
class Mutation:
    """One small change."""

    file: str
    operator: str
    occurrence: int
    line: int

    @property
    def words(self) -> str:
        """Where and what."""
        return f"{self.file}:{self.line} {self.operator} #{self.occurrence}"


def mutations() -> list[Mutation]:
    """Every change that cosmic-ray knows, in the rooms."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    found = []
    for room in ROOMS:
        for path in sorted((ROOT / "src" / "cagat" / room).glob("*.py")):
            nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
            for name in operator_names():
                if "Variable" in name:
                    continue  # These want to be told which variables to change.
                operator, places = get_operator(name)(), []
                for node in nodes:
                    places += [start[0] for start, _ in operator.mutation_positions(node)]
                found += [
                    Mutation(str(path.relative_to(ROOT)), name, number, line) for number, line in enumerate(places)
                ]
    return found


def sources() -> str:
    """A digest of what the mutations are made of, and of what shall notice them."""
    rooms = [ROOT / "src" / "cagat" / room for room in ROOMS] + [ROOT / test for test in TESTS]
    paths = sorted(path for room in rooms for path in room.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def mutated(mutation: Mutation, source: str) -> str:
    """The source with the change."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    changed = mutate_code(source, get_operator(mutation.operator)(), mutation.occurrence)
    assert changed is not None
    return str(changed)


def passes(copy: Path, most_seconds: float | None = None) -> bool:
    """Whether all tests of the rooms pass, in time."""
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "HYPOTHESIS_PROFILE": "short", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-k", "not compile", *TESTS]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, timeout=most_seconds, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def seconds_of_unchanged(copy: Path) -> float:
    """How long the tests take when nothing is changed; a first run compiles."""
    for _ in range(2):
        started = time.monotonic()
        if not passes(copy):
            raise SystemExit(
                "The tests fail on the unchanged sources: no mutant can be told from them. Mend them first."
            )
        taken = time.monotonic() - started
    return taken


def is_noticed(mutation: Mutation, copy: Path, most_seconds: float) -> bool:
    """Whether a test fails, or hangs, with the change."""
    path = copy / mutation.file
    whole = path.read_text(encoding="utf-8")
    path.write_text(mutated(mutation, whole), encoding="utf-8")
    try:
        return not passes(copy, most_seconds)
    finally:
        path.write_text(whole, encoding="utf-8")


def main() -> None:
    """Try a sample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=60, help="how many mutations; 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    options = parser.parse_args()
    every = mutations()
    chosen = random.Random(options.seed).sample(every, options.sample) if options.sample else every  # noqa: S311
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known = before["tried"] if before.get("sources") == sources() else []
    noticed = {Mutation(**one["mutation"]): one["noticed"] for one in known}
    with tempfile.TemporaryDirectory(prefix="cagat-mutate-") as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "results"))
        most_seconds = _PATIENCE * seconds_of_unchanged(copy)
        for number, mutation in enumerate(chosen, 1):
            if mutation not in noticed:
                noticed[mutation] = is_noticed(mutation, copy, most_seconds)
            print(
                f"{number}/{len(chosen)} {mutation.words}: {'killed' if noticed[mutation] else 'SURVIVED'}", flush=True
            )
            tried = [{"mutation": asdict(one), "noticed": noticed[one]} for one in chosen if one in noticed]
            killed = sum(one["noticed"] for one in tried)
            found = {
                "command": " ".join(["python tools/mutate.py", *sys.argv[1:]]),
                "date": today(),
                "versions": facts(),
                "sources": sources(),
                "mutations": len(every),
                "sample": len(tried),
                "killed": killed,
                "score": round(killed / len(tried), 3),
                "tried": tried,
            }
            atomic_write(RESULTS, json.dumps(found, indent=2) + "\n")
    print(f"{killed} of {len(tried)} killed, of {len(every)} mutations in all")


if __name__ == "__main__":
    main()
