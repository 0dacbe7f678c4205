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
from pathlib import Path

import psutil
import torch.distributed as dist

from cagat.errors import CagatError

_SECONDS_BETWEEN_LOOKS = 0.5
# A process on another machine is given up when it has said nothing for so long.
SILENCE = 18.0
# How long a process whose communication failed waits to learn who is to blame.
_SECONDS_FOR_A_VERDICT = SILENCE + 4.0
_SECONDS_TO_READ_THE_VERDICT = 4 * _SECONDS_BETWEEN_LOOKS
_STORE_TIMEOUT = timedelta(seconds=10)

_LEFT = "left"


class Watch:
    """Tells the other processes that this one is alive, and ends it when one of them is not.

    Each process counts in a store that all see. The count of one that died stands still; on the same machine its
    process is also looked for, which is faster. Who notices first writes down the verdict, so that those who die of the
    first death are not taken for its cause.

    Args:
        rank: The number of this process.
        size: The number of processes.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        # A connection of its own: that of the process group may be waiting for something when it matters.
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = dist.TCPStore(  # type: ignore[attr-defined]
            address, port, is_master=False, timeout=_STORE_TIMEOUT, wait_for_workers=False
        )
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        self._store = dist.PrefixStore(f"cagat-watch-{attempt}", store)  # type: ignore[attr-defined]
        self._where = f"{address}:{port}"
        self._host, self._processes = socket.gethostname(), _processes_seen_here()
        self._beats = 0
        self._others = [other for other in range(size) if other != rank]
        self._heard = dict.fromkeys(self._others, (b"", time.monotonic()))
        self._ending = threading.Event()
        self._answered = time.monotonic()
        self._thread = threading.Thread(target=self._look_again_and_again, name="cagat-watch", daemon=True)
        self._second = threading.Thread(target=self._watch_the_store, name="cagat-watch-store", daemon=True)

    @classmethod
    @contextlib.contextmanager
    def over(cls, rank: int, size: int) -> Iterator[None]:
        """Watch the other processes for as long as this one works with them."""
        watch = cls(rank, size)
        watch._say(watch._alive())
        dist.barrier()  # From here on, everybody has said something.
        watch._answered = time.monotonic()
        watch._thread.start()
        watch._second.start()
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
        if _is_of_communication(error):
            if threading.current_thread() is threading.main_thread():
                # torchrun, too, ends the others when one dies; not before they have said which.
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(_SECONDS_FOR_A_VERDICT)
        reason = str(error) or type(error).__name__
        with contextlib.suppress(RuntimeError):
            self._store.compare_set("verdict", "", f"Rank {self.rank} ended: {reason}")

    def _leave(self) -> None:
        self._ending.set()
        self._thread.join(timeout=SILENCE)  # It may wait for a store that never answers.
        with contextlib.suppress(RuntimeError):  # The store may have ended with its process.
            self._say(_LEFT)

    def _alive(self) -> str:
        self._beats += 1
        return f"{self._beats} {os.getpid()} {self._processes} {self._host}"

    def _say(self, words: str) -> None:
        self._store.set(str(self.rank), words)

    def _look_again_and_again(self) -> None:
        while not self._ending.wait(_SECONDS_BETWEEN_LOOKS):
            try:
                self._say(self._alive())
                verdict = self._verdict()
            except RuntimeError:
                verdict = self._silent_store()
            self._answered = time.monotonic()
            if verdict is not None and not self._ending.is_set():
                self._end(verdict)

    def _watch_the_store(self) -> None:
        """Ask nobody: a store whose machine says nothing keeps those waiting who ask, whatever its timeout."""
        while not self._ending.wait(_SECONDS_BETWEEN_LOOKS):
            if time.monotonic() - self._answered > SILENCE:
                self._end(self._silent_store())

    def _silent_store(self) -> str:
        return f"Rank 0 has died or hangs: the store at {self._where}, on its machine, does not answer"

    def _verdict(self) -> str | None:
        if self._store.check(["verdict"]):
            return str(self._store.get("verdict").decode())
        dead = self._first_dead()
        return None if dead is None else str(self._store.compare_set("verdict", "", dead).decode())

    def _first_dead(self) -> str | None:
        now = time.monotonic()
        for other, words in zip(self._others, self._store.multi_get([str(o) for o in self._others]), strict=True):
            if words == _LEFT.encode():
                continue
            known, since = self._heard[other]
            if words != known:
                self._heard[other] = (words, now)
                since = now
            _, process, processes, host = words.decode().split(" ", 3)
            if processes == self._processes and not _is_alive(int(process)):
                return f"Rank {other} (process {process} on {host}) has died"
            if now - since > SILENCE:
                return f"Rank {other} (process {process} on {host}) has not answered for {now - since:.0f} s"
        return None

    def _end(self, verdict: str) -> None:
        is_refusal = " ended: " in verdict  # By a process that has said itself what to do.
        hint = "" if is_refusal else " When the cause is gone, go on with: cagat train --resume DIR"
        print(f"Error: {verdict.rstrip('.')}. Rank {self.rank} stops, too.{hint}", file=sys.stderr, flush=True)
        if self.rank == 0:
            time.sleep(_SECONDS_TO_READ_THE_VERDICT)  # The store ends with this process.
        # The main thread may wait for the dead process, and then nothing else would end it.
        os._exit(1)


def _processes_seen_here() -> str:
    """Which numbers of processes mean the same as here: those of this machine, and of this container on it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}-{os.readlink('/proc/self/ns/pid')}"
    except OSError:  # Where there is no /proc, the name and the address of the network card must do.
        return f"{socket.gethostname()}-{uuid.getnode()}".replace(" ", "-")


def _is_of_communication(error: BaseException) -> bool:
    """Whether another process may be to blame; gloo raises plain RuntimeErrors, so that only their text tells."""
    words = ("gloo", "nccl", "peer", "connection", "timed out")
    is_candidate = isinstance(error, RuntimeError) and not isinstance(error, CagatError)
    return is_candidate and any(word in str(error).lower() for word in words)


def _is_alive(process: int) -> bool:
    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
