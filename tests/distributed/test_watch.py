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

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
COMMAND = [
    *(sys.executable, "-m", "cagat", "train", "--dataset", GRAPH, "--labels", "5", "--val-labels", "5"),
    *("--hidden", "4", "--heads", "2", "--threads", "1", "--epochs", "100000", "--patience", "100000"),
    *("--parallel", "graph", "--out", "run"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def processes(request, tmp_path):
    size = request.param
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    started = [
        subprocess.Popen(
            COMMAND,
            env={**ENVIRONMENT, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        for rank in range(size)
    ]
    metrics, deadline = tmp_path / "run" / "metrics.jsonl", time.monotonic() + 120
    while not (metrics.exists() and metrics.stat().st_size > 0):
        assert time.monotonic() < deadline
        assert all(process.poll() is None for process in started), [process.stderr.read() for process in started]
        time.sleep(0.1)
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
