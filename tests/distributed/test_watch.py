"""Processes that die, without torchrun's help: on several machines nobody else would tell."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from distributed.torchrun import ENVIRONMENT

# Works with the others without end, and gives them up sooner than in earnest.
PROGRAM = """
import sys, torch
from cagat.distributed import World, watch
watch.SILENCE = 6.0
with World.joined() as world:
    print("ready", flush=True)
    while True:
        world.sum(torch.ones(1))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def processes(request):
    size = request.param
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**ENVIRONMENT, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    for process in started:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    yield started
    for process in started:
        process.kill()
        process.wait()


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
def test_a_rank_that_dies_or_hangs_ends_all_with_its_name(processes, victim, number, told):
    pid = processes[victim].pid
    os.kill(pid, number)
    struck = time.monotonic()
    for rank, process in enumerate(processes):
        if rank == victim:
            continue
        _, message = process.communicate(timeout=max(0.1, 30 - (time.monotonic() - struck)))
        assert process.returncode == 1
        assert re.search(told.format(pid), message), message
        assert f"Rank {rank} stops, too" in message
    assert time.monotonic() - struck < 30
