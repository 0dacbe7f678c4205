"""How processes that work for another behave."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from cagat.errors import CagatError
from cagat.training.freed_memory import keep_freed_memory

_SECONDS_BETWEEN_LOOKS = 2.0


def settle_as_worker() -> None:
    """Keep freed memory, leave Ctrl-C, which goes to all of a terminal's processes, to the parent, and end with it."""
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, name="cagat-parent-watch", daemon=True).start()


@contextmanager
def told_errors() -> Iterator[None]:
    """End a worker with one message, as the command line ends, where the input or the machine is at fault."""
    try:
        yield
    except CagatError as error:
        _end(str(error))
    except OSError as error:
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)[:200]}: "
        _end(f"{place}{error.strerror or error}. Check who may read and write there, and the space left.")
    except (MemoryError, RuntimeError) as error:
        # torch tells that memory is short with a RuntimeError of several lines.
        if not isinstance(error, MemoryError) and "can't allocate memory" not in str(error):
            raise
        _end("There is not enough memory. Work with fewer --jobs, or use a machine with more.")


def _end(message: str) -> NoReturn:
    print(f"Error: {message}", file=sys.stderr)
    sys.exit(1)
