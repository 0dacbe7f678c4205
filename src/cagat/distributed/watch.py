"""Noticing that another process has died, and saying which."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path

import psutil
import torch.distributed as dist

from cagat.errors import CagatError

_SECONDS_BETWEEN_BEATS = 0.5
# A process on another machine is given up when it has said nothing for so long.
SILENCE = 18.0
# How long a process whose communication failed waits to learn who is to blame.
_SECONDS_FOR_A_VERDICT = SILENCE + 4.0
_LEFT = "left"


class Watch:
    """Tells the other processes that this one is alive, and ends it when one of them is not.

    Each process writes heartbeats into a store that all see. Those of one that died stand still; on the same machine
    its process is also looked for, which is faster. Who notices first writes down the verdict, so that those who die of
    the first death are not taken for its cause.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        # A connection of its own: that of the process group may be waiting for something when it matters.
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = dist.TCPStore(  # type: ignore[attr-defined]
            address, port, is_master=False, timeout=timedelta(seconds=10), wait_for_workers=False
        )
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._store = dist.PrefixStore(f"cagat-watch-{attempt}", store)  # type: ignore[attr-defined]
        self._silent_store = f"Rank 0 has died or hangs: the store at {address}:{port}, on its machine, does not answer"
        self._identity = f"{os.getpid()} {_process_namespace()} {socket.gethostname()}"
        self._heard = {other: (b"", time.monotonic()) for other in range(size) if other != rank}
        self._ending = threading.Event()
        self._answered = time.monotonic()
        self._thread = threading.Thread(target=self._watch_the_others, name="cagat-watch", daemon=True)

    @classmethod
    @contextlib.contextmanager
    def over(cls, rank: int, size: int) -> Iterator[None]:
        """Watch the other processes for as long as this one works with them."""
        watch = cls(rank, size)
        watch._beat()
        dist.barrier()  # From here on, everybody has a heartbeat.
        watch._answered = time.monotonic()
        watch._thread.start()
        threading.Thread(target=watch._watch_the_store, name="cagat-watch-store", daemon=True).start()
        try:
            yield
        except BaseException as error:
            watch._explain(error)
            raise
        else:
            dist.barrier()
        finally:
            watch._leave()

    def _explain(self, error: BaseException) -> None:
        """Tell the others why this process ends; if others are to blame, the watch ends it meanwhile."""
        # gloo raises plain RuntimeErrors, so that only their text tells whether another process may be to blame.
        words = ("gloo", "nccl", "peer", "connection", "timed out")
        is_candidate = isinstance(error, RuntimeError) and not isinstance(error, CagatError)
        if is_candidate and any(word in str(error).lower() for word in words):
            if threading.current_thread() is threading.main_thread():
                # torchrun, too, ends the others when one dies; not before they have said which.
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(_SECONDS_FOR_A_VERDICT)
        with contextlib.suppress(RuntimeError):
            self._store.compare_set("verdict", "", f"Rank {self.rank} ended: {str(error) or type(error).__name__}")

    def _leave(self) -> None:
        self._ending.set()
        self._thread.join(timeout=SILENCE)  # It may wait for a store that never answers.
        with contextlib.suppress(RuntimeError):  # The store may have ended with its process.
            self._store.set(str(self.rank), _LEFT)

    def _beat(self) -> None:
        self._store.set(str(self.rank), f"{time.monotonic()} {self._identity}")

    def _watch_the_others(self) -> None:
        while not self._ending.wait(_SECONDS_BETWEEN_BEATS):
            try:
                self._beat()
                verdict = self._verdict()
            except RuntimeError:
                verdict = self._silent_store
            self._answered = time.monotonic()
            if verdict is not None and not self._ending.is_set():
                self._end(verdict)

    def _watch_the_store(self) -> None:
        """Ask nobody: a store whose machine says nothing keeps those waiting who ask, whatever its timeout."""
        while not self._ending.wait(_SECONDS_BETWEEN_BEATS):
            if time.monotonic() - self._answered > SILENCE:
                self._end(self._silent_store)

    def _verdict(self) -> str | None:
        if self._store.check(["verdict"]):
            return str(self._store.get("verdict").decode())
        dead = self._first_dead()
        return None if dead is None else str(self._store.compare_set("verdict", "", dead).decode())

    def _first_dead(self) -> str | None:
        now = time.monotonic()
        for other, beat in zip(self._heard, self._store.multi_get(list(map(str, self._heard))), strict=True):
            if beat == _LEFT.encode():
                continue
            if beat != self._heard[other][0]:
                self._heard[other] = (beat, now)
            _, process, namespace, host = beat.decode().split(" ", 3)
            if namespace == _process_namespace() and not _is_alive(int(process)):
                return f"Rank {other} (process {process} on {host}) has died"
            if (silence := now - self._heard[other][1]) > SILENCE:
                return f"Rank {other} (process {process} on {host}) has not answered for {silence:.0f} s"
        return None

    def _end(self, verdict: str) -> None:
        is_refusal = " ended: " in verdict  # By a process that has said itself what to do.
        hint = "" if is_refusal else " Once the cause is fixed, continue with: cagat train --resume DIR"
        print(f"Error: {verdict.rstrip('.')}. Rank {self.rank} stops, too.{hint}", file=sys.stderr, flush=True)
        if self.rank == 0:
            time.sleep(4 * _SECONDS_BETWEEN_BEATS)  # The store ends with this process; the others read it first.
        # The main thread may wait for the dead process, and then nothing else would end it.
        os._exit(1)


@cache
def _process_namespace() -> str:
    """Where process ids mean the same as here: on this machine, and in this container on it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}-{os.readlink('/proc/self/ns/pid')}"
    except OSError:  # Where there is no /proc, the name and the address of the network card must do.
        return f"{socket.gethostname()}-{uuid.getnode()}".replace(" ", "-")


def _is_alive(process: int) -> bool:
    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
