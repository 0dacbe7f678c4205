"""Trainings that are killed; `tools/faults.py` does the same to the command line, and more often."""

import multiprocessing
import random
import time
from pathlib import Path

import pytest

KILLS = 20
COMPARED = ("model.safetensors", "metrics.jsonl", "predictions.csv", "config.yaml")


def train(path: Path, ready) -> None:
    from cagat.training import Run, TrainConfig

    if (path / "config.yaml").exists():
        run = Run.resume(path)
    else:
        run = Run.start(TrainConfig.from_values({"dataset": "cora", "epochs": 30, "xi": 0.0, "threads": 1}), path)
    # More often than in earnest, so that many kills fall into a save.
    run.save_every = 0
    ready.set()
    run.train()


@pytest.mark.timeout(900)
def test_killed_runs_resume_to_the_bits_of_an_unbroken_one(tmp_path):
    # Processes that are forked from one that has all modules, but no threads, start at once.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["cagat.training"])
    draw = random.Random(0)

    def process_for(path: Path) -> multiprocessing.Process:
        ready = context.Event()
        process = context.Process(target=train, args=(path, ready))
        process.start()
        assert ready.wait(60)
        return process

    process_for(tmp_path / "warm-up").join()
    started = time.monotonic()
    process_for(tmp_path / "unbroken").join()
    length = time.monotonic() - started
    unbroken = {name: (tmp_path / "unbroken" / name).read_bytes() for name in COMPARED}

    kills = runs = 0
    while kills < KILLS:
        runs += 1
        path = tmp_path / f"run-{runs}"
        while True:
            process = process_for(path)
            process.join(draw.uniform(0, 0.7 * length) if kills < KILLS else None)
            if process.exitcode is not None:
                assert process.exitcode == 0
                break
            process.kill()
            process.join()
            kills += 1
        assert {name: (path / name).read_bytes() for name in COMPARED} == unbroken, f"after {kills} kills"
        assert not list(path.glob(".*.part"))
    assert runs > 1
