"""How processes that work for another behave."""

import os
import signal
import threading
import time

_SECONDS_BETWEEN_LOOKS = 2.0


def settle_as_worker() -> None:
    """Leave Ctrl-C, which goes to all processes of a terminal, to the parent, and end when it ends, even if killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, name="cagat-parent-watch", daemon=True).start()
