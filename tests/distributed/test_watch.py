"""Processes that die, without torchrun's help: on several machines nobody else would tell."""

import os
import re
import signal
import time

import pytest
import torch

from cagat.distributed import World, watch
from processes import CONTEXT, start_ranks


def work(ready) -> None:
    """Work with the others without end, and give them up sooner than in earnest."""
    torch.set_num_threads(1)
    watch.SILENCE = 4.0
    with World.joined() as world:
        ready.wait()
        while True:
            world.sum(torch.ones(1))


@pytest.fixture
def processes(request, tmp_path):
    ready = CONTEXT.Barrier(request.param + 1)
    started = start_ranks(request.param, work, ready, said=tmp_path)
    ready.wait(60)
    yield started
    for process in started:
        process.kill()
        process.join()


@pytest.mark.posix
@pytest.mark.parametrize(
    ("processes", "victim", "number", "told"),
    [
        (3, 2, "SIGKILL", r"Rank 2 \(process {} on .*\) has died"),
        (2, 1, "SIGSTOP", r"Rank 1 \(process {} on .*\) has not answered for"),
        # The store of all is in rank 0, and ends or falls silent with it.
        (2, 0, "SIGKILL", r"Rank 0 \(process {} on .*\) has died|Rank 0 has died or hangs"),
        (2, 0, "SIGSTOP", "Rank 0 has died or hangs"),
    ],
    indirect=["processes"],
)
def test_a_rank_that_dies_or_hangs_ends_all_with_its_name(processes, victim, number, told, tmp_path):
    pid = processes[victim].pid
    os.kill(pid, signal.Signals[number])
    struck = time.monotonic()
    for rank, process in enumerate(processes):
        if rank == victim:
            continue
        process.join(timeout=max(0.1, 30 - (time.monotonic() - struck)))
        message = (tmp_path / f"{rank}.err").read_text()
        assert process.exitcode == 1, message
        assert re.search(told.format(pid), message), message
        assert f"Rank {rank} stops, too" in message
    assert time.monotonic() - struck < 30
