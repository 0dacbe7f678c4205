"""Starting processes as torchrun does."""

import os
import subprocess
import sys
from pathlib import Path

# Processes with one thread each do not wait for each other on a small machine. What they run is measured elsewhere.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
ENVIRONMENT["OMP_NUM_THREADS"] = "1"


def torchrun(processes: int, *arguments: object, cwd: Path | None = None, timeout: float = 120) -> str:
    """Run to the end, and return what was printed; a hang is a failure."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=cwd,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
