"""Processes that are forked from one that has all modules, but no threads: they start at once."""

import os
import socket
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path

from cagat.cli import main
from cagat.experiments.workers import worker_context

CONTEXT = worker_context()
CONTEXT.set_forkserver_preload([worker_context.__module__, "matplotlib.pyplot"])


def in_a_process(function, *arguments):
    """What a function of a test module returns, or raises, in a process of its own."""
    with ProcessPoolExecutor(1, CONTEXT) as pool:
        return pool.submit(function, *arguments).result()


def start(function, *arguments, said: Path, environment: dict[str, str] | None = None) -> BaseProcess:
    """Start a process that prints into two files, for standard output and standard error: `said`.out and `said`.err."""
    process = CONTEXT.Process(target=_run, args=(function, arguments, said, environment or {}))
    process.start()
    return process


def _run(function, arguments, said: Path, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    for stream, suffix in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(said.with_suffix(suffix), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", buffering=1, closefd=False) for stream in (1, 2))
    function(*arguments)


def cagat(*words: object) -> None:
    """The command line."""
    sys.argv = ["cagat", *map(str, words)]
    main()


def start_ranks(size: int, function, *arguments, said: Path) -> list[BaseProcess]:
    """Start processes with what torchrun tells each of its own; what rank r prints is in `said`/r.out and .err."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1]), "WORLD_SIZE": str(size)}
    ranks = [{**place, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)]
    return [start(function, *arguments, said=said / name["RANK"], environment=name) for name in ranks]


def run_ranks(size: int, function, *arguments, said: Path) -> None:
    """Run processes like torchrun's to their end; a hang is a failure."""
    processes = start_ranks(size, function, *arguments, said=said)
    try:
        for rank, process in enumerate(processes):
            process.join(120)
            assert process.exitcode == 0, (said / f"{rank}.err").read_text()
    finally:
        for process in processes:
            process.kill()
