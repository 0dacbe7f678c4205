"""Where and with how many threads a run computes."""

import contextlib
import os
from collections.abc import Iterator

import torch

from cagat.errors import ConfigError
from cagat.kernels import set_kernel_threads


def chosen_device(name: str | None) -> str:
    """The device of this name if it can be had; without a name, a GPU if there is one."""
    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).tolist()
    except (AssertionError, RuntimeError, NotImplementedError, ImportError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"There is no device {name!r} here ({reason}). Use --device cpu.") from error
    return name


@contextlib.contextmanager
def random_numbers_of_its_own(device: torch.device) -> Iterator[None]:
    """Leave the caller's random numbers as they were, whatever is drawn meanwhile."""
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else [device], device_type=device.type):
        yield


@contextlib.contextmanager
def computing(threads: int, deterministic: bool) -> Iterator[None]:
    """Compute with so many threads, and then as before.

    Args:
        threads: For torch and for our kernels.
        deterministic: Whether results must not depend on the number of threads: torch's own products and sums, whose
            bits do, then run on one, and our kernels, whose bits do not, on all of them.
    """
    before = torch.get_num_threads()
    strict = torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1 if deterministic else threads)
    set_kernel_threads(threads if deterministic else None)
    if deterministic:
        # cuBLAS reads this when it is first used; without it torch refuses to be deterministic on a GPU.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        set_kernel_threads(None)
        torch.use_deterministic_algorithms(strict)
