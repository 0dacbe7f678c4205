"""How many threads our kernels use."""

import torch

_wanted: int | None = None


def set_kernel_threads(number: int | None) -> None:
    """Let our kernels use this many threads, whatever torch uses; ``None`` for as many as torch.

    The bits of our results do not depend on the number of threads, those of torch's dense products do: with torch on
    one thread and the kernels on many, a computation is repeatable and still parallel.
    """
    global _wanted
    if number is not None and number < 1:
        raise ValueError(f"kernels need at least 1 thread, got {number}")
    _wanted = number


def kernel_threads() -> int:
    """The number of threads our kernels may use now."""
    return torch.get_num_threads() if _wanted is None else _wanted
