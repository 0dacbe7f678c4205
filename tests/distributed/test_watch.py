"""Processes that die, without torchrun's help: on several machines nobody else would tell."""

import multiprocessing
import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest
import torch

from cagat.distributed import World, watch


def work(place: dict[str, str], said: Path, ready) -> None:
    """Work with the others without end, and give them up sooner than in earnest."""
    os.environ.update(place)
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
    torch.set_num_threads(1)
    watch.SILENCE = 6.0
    with World.joined() as world:
        ready.set()
        while True:
            world.sum(torch.ones(1))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def processes(request, tmp_path):
    """Processes that are forked from one that has all modules, but no threads; what they say is in files by rank."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["cagat.training"])
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(request.param)}
    started, ready = [], [context.Event() for _ in range(request.param)]
    for rank, event in enumerate(ready):
        environment = {**place, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        started.append(context.Process(target=work, args=(environment, tmp_path / str(rank), event)))
        started[-1].start()
    assert all(event.wait(60) for event in ready)
    yield started
    for process in started:
        process.kill()
        process.join()


@pytest.mark.parametrize(
    ("processes", "victim", "number", "told"),
    [
        (3, 2, signal.SIGKILL, r"Rank 2 \(process {} on .*\) has died"),
        (2, 1, signal.SIGSTOP, r"Rank 1 \(process {} on .*\) has not answered for"),
        # The store of all is in rank 0, and ends or falls silent with it.
        (2, 0, signal.SIGKILL, r"Rank 0 \(process {} on .*\) has died|Rank 0 has died or hangs"),
        (2, 0, signal.SIGSTOP, "Rank 0 has died or hangs"),
    ],
    indirect=["processes"],
)
def test_a_rank_that_dies_or_hangs_ends_all_with_its_name(processes, victim, number, told, tmp_path):
    pid = processes[victim].pid
    os.kill(pid, number)
    struck = time.monotonic()
    for rank, process in enumerate(processes):
        if rank == victim:
            continue
        process.join(timeout=max(0.1, 30 - (time.monotonic() - struck)))
        message = (tmp_path / str(rank)).read_text()
        assert process.exitcode == 1, message
        assert re.search(told.format(pid), message), message
        assert f"Rank {rank} stops, too" in message
    assert time.monotonic() - struck < 30
