"""Where a run computes: device, threads, random numbers, memory."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator

import torch

from cagat.errors import ConfigError
from cagat.kernels import set_kernel_threads

# glibc's names for what mallopt can set (malloc.h), and the values that keep freed memory.
_KEEPING = {"M_MMAP_MAX": (-4, 0), "M_TRIM_THRESHOLD": (-1, -1), "M_TOP_PAD": (-2, 2**28)}
# And those that give it back, however many threads take turns.
_RETURNING = {"M_MMAP_THRESHOLD": (-3, 2**18), "M_ARENA_MAX": (-8, 1)}


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
def computing(threads: int, deterministic: bool) -> Iterator[None]:
    """Compute with so many threads, and then as before.

    If deterministic, torch's own products and sums, whose bits depend on the number of threads, run on one, and our
    kernels, whose bits do not, on all of them.
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
        if deterministic:  # Not always: torch imports its compiler for it.
            torch.use_deterministic_algorithms(strict)


def keep_freed_memory() -> None:
    """Let the C library keep large blocks that are freed, where it is glibc; elsewhere nothing happens.

    Otherwise every tensor above 32 MB is given back to the operating system and taken anew in each epoch, with a page
    fault for every 4 kB. Only for processes of our own: a library must not decide this for its callers.
    """
    _tell_malloc(_KEEPING)


def give_back_freed_memory() -> None:
    """Let the C library give freed blocks back at once, likewise: for work that is to take little memory.

    Otherwise each of the threads that take turns would keep blocks of up to 32 MB for itself.
    """
    _tell_malloc(_RETURNING)


def _tell_malloc(settings: dict[str, tuple[int, int]]) -> None:
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        for parameter, value in settings.values():
            library.mallopt(parameter, value)
