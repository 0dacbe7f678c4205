"""Kill trainings at random moments, also in the middle of a save, and see whether they resume to the same bits.

Run: python tools/kill_test.py --kills 50

One training runs unbroken; others are killed with SIGKILL again and again, and resumed with `cagat train --resume`
until they end. Each must end with the weights, metrics and predictions of the unbroken one, byte for byte. About ten
seconds a kill. Exit code 1 if a run ended otherwise.
"""

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMPARED = ("model.safetensors", "metrics.jsonl", "predictions.csv")


def command(arguments: list[str]) -> list[str]:
    """The command line of a training."""
    return [sys.executable, "-m", "cagat", "train", *arguments]


def digests(run: Path) -> dict[str, str]:
    """The digests of the files that must be the same."""
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in COMPARED}


def saving(run: Path) -> bool:
    """Whether a checkpoint is being written at this moment."""
    return any(run.glob(".checkpoint.pt.*.part"))


def killed(process: subprocess.Popen[bytes], run: Path, seconds: float, in_a_save: bool) -> str | None:
    """Kill a training after some seconds, or at the next save after them; how, or nothing if it ended before."""
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() > deadline and (not in_a_save or saving(run)):
            how = "in a save" if saving(run) else "between saves"
            process.send_signal(signal.SIGKILL)
            process.wait()
            return how
        time.sleep(0.0005)
    if process.returncode != 0:
        raise SystemExit(f"a training ended with exit code {process.returncode}: {process.stderr.read().decode()}")
    return None


def main() -> None:
    """Run the trainings and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    options = parser.parse_args()
    draw = random.Random(options.seed)  # noqa: S311
    with tempfile.TemporaryDirectory() as directory:
        whole = Path(directory) / "unbroken"
        started = time.monotonic()
        training = ["--dataset", "cora", "--epochs", str(options.epochs)]
        subprocess.run(command([*training, "--out", str(whole)]), check=True, stdout=subprocess.DEVNULL)
        length = time.monotonic() - started
        wanted = digests(whole)
        print(f"unbroken: {length:.1f} s, weights {wanted['model.safetensors']}", flush=True)
        kills, runs, wrong, ways = 0, 0, 0, {"in a save": 0, "between saves": 0}
        while kills < options.kills:
            runs += 1
            run = Path(directory) / f"run-{runs}"
            for attempt in range(options.kills + 1):
                # A run that was killed before it had a configuration left nothing to resume, and starts again.
                resuming = (run / "config.yaml").exists()
                arguments = ["--resume", str(run)] if resuming else [*training, "--out", str(run)]
                process = subprocess.Popen(command(arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                seconds = draw.uniform(0, length) if kills < options.kills and attempt < 6 else 1e9
                how = killed(process, run, seconds, in_a_save=draw.random() < 0.5)
                if how is None:
                    break
                kills += 1
                ways[how] += 1
            same = digests(run) == wanted
            wrong += not same
            print(f"run {runs}: {'the same' if same else 'DIFFERENT'} after {attempt} kills", flush=True)
    print(f"{kills} kills ({ways['in a save']} in a save), {runs} runs: {runs - wrong} passed, {wrong} failed")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
