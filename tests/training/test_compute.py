import subprocess
import sys

import pytest

_FAULTS = """
import resource, torch
from cagat.training.compute import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(2**26, dtype=torch.uint8).fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
fresh = min(faults() for _ in range(5))
keep_freed_memory()
print(fresh, min(faults() for _ in range(5)))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc is told to keep memory")
def test_memory_of_the_epoch_before_is_used_again():
    fresh, kept = map(int, subprocess.check_output([sys.executable, "-c", _FAULTS], text=True).split())
    if fresh < 100:
        pytest.skip("the C library keeps large blocks anyway")
    assert kept < fresh / 4
