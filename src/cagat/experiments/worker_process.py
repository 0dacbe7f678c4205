"""How processes that work for another behave."""

import os
import signal
import threading
import time

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
