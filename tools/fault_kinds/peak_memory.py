"""The largest memory that a process had at once."""

from pathlib import Path


def forget_peak() -> None:
    """Let the peak begin anew, at what is held now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """The largest memory since the process began, or since the peak was forgotten."""
    return _status("VmHWM")


def held_bytes() -> int:
    """The memory that is held now."""
    return _status("VmRSS")


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"the system does not tell {key}")
