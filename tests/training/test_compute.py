import sys

import pytest
import torch

from cagat.training.compute import keep_freed_memory
from processes import in_a_process


def _faults() -> int:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(2**26, dtype=torch.uint8).fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _before_and_after() -> tuple[int, int]:
    before = min(_faults() for _ in range(5))
    keep_freed_memory()
    return before, min(_faults() for _ in range(5))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc is told to keep memory")
def test_memory_of_the_epoch_before_is_used_again():
    fresh, kept = in_a_process(_before_and_after)
    if fresh < 100:
        pytest.skip("the C library keeps large blocks anyway")
    assert kept < fresh / 4
