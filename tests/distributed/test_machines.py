"""Two machines as far as one can play them: networks of their own, and files of which each has only its part."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from distributed.torchrun import ENVIRONMENT
from parts_on_disk import NAME, cut, some_graph

pytestmark = [
    pytest.mark.slow,
    pytest.mark.posix,
    pytest.mark.skipif(
        not shutil.which("ip") or not shutil.which("unshare") or os.geteuid() != 0,
        reason="only root makes networks, with the tools of Linux",
    ),
]
SETTINGS = ("--labels", "5", "--val-labels", "5", "--hidden", "4", "--heads", "2", "--epochs", "3", "--json")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@pytest.fixture
def networks():
    names = [f"cagat-{os.getpid()}-{rank}" for rank in range(2)]
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable", "netns", names[1])
        for rank, name in enumerate(names):
            ip("-n", name, "addr", "add", f"10.77.24.{rank + 1}/24", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", name, "link", "set", device, "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def start(network: str, rank: int, files: Path, place: Path) -> subprocess.Popen[str]:
    """One machine, which finds its own files where the other finds others."""
    torchrun = [
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", "10.77.24.1:29500", "--rdzv-conf", f"is_host={1 - rank}"),
        *("--local-addr", f"10.77.24.{rank + 1}", "-m", "cagat", "train", "--dataset", "parts", *SETTINGS),
        *("--parallel", "graph", "--out", "run"),
    ]
    script = f"mount --bind {files} {place} && cd {place} && exec {shlex.join(torchrun)}"
    return subprocess.Popen(
        ["ip", "netns", "exec", network, "unshare", "--mount", "sh", "-c", script],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | {"GLOO_SOCKET_IFNAME": "cable"},
        start_new_session=True,
    )  # fmt: skip


def test_machines_that_have_only_their_own_parts_train_as_one_does(networks, tmp_path):
    cut(some_graph(), tmp_path / "parts", 2)
    (tmp_path / "place").mkdir()
    machines = []
    for rank, network in enumerate(networks):
        files = tmp_path / str(rank)
        shutil.copytree(tmp_path / "parts", files / "parts", ignore=shutil.ignore_patterns(f"part-0000{1 - rank}"))
        machines.append(start(network, rank, files, tmp_path / "place"))
    try:
        said = [machine.communicate(timeout=300) for machine in machines]
    finally:
        for machine in machines:
            with contextlib.suppress(ProcessLookupError):  # Torchrun's workers are processes of their own.
                os.killpg(machine.pid, signal.SIGKILL)
    assert [machine.returncode for machine in machines] == [0, 0], said
    assert not (tmp_path / "1" / "run").exists()
    words = ("train", "--dataset", NAME, *SETTINGS, "--no-baselines", "--out", str(tmp_path / "alone"))
    subprocess.run([sys.executable, "-m", "cagat", *words], check=True, capture_output=True)
    alone = json.loads((tmp_path / "alone" / "result.json").read_text())
    assert json.loads(said[0][0].splitlines()[-1])["val_loss"] == pytest.approx(alone["val_loss"], rel=1e-5)
