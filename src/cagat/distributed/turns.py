"""Processes that are none: threads that take turns, so that one machine needs memory for one of them at a time."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor

from cagat.distributed.disk_memory import DiskMemory, LargeTensorsOnDisk
from cagat.distributed.world import World

T = TypeVar("T")


class _EndedError(BaseException):
    """Another thread has failed; not an Exception, so that nobody takes it for one of this thread."""


class _Table:
    """Where threads meet: only one of them runs at any time."""

    def __init__(self, size: int) -> None:
        self.condition = threading.Condition()
        self.turn = 0
        self.failure: BaseException | None = None
        self.slots: dict[int, list[Any]] = {}
        self._running = [True] * size
        self._step = 1

    def pass_on(self) -> None:
        """Let the next thread run; to and fro, so that who comes to an end of the row goes on at once."""
        size = len(self._running)
        for _ in range(2 * size):
            if not 0 <= self.turn + self._step < size:
                self._step = -self._step
                continue
            self.turn += self._step
            if self._running[self.turn]:
                break
        self.condition.notify_all()

    def end(self, rank: int) -> None:
        """This thread takes no more turns."""
        self._running[rank] = False
        if self.turn == rank and any(self._running):
            self.pass_on()
            if not self._running[self.turn]:
                self.turn = self._running.index(True)
        self.condition.notify_all()


@dataclass
class TurnWorld(World):
    """A world whose processes are threads of one process, which take turns.

    Attributes:
        table: Where they meet.
        memory: Where the large tensors of this one lie when it is not its turn.
    """

    table: _Table = field(default_factory=lambda: _Table(1))
    memory: DiskMemory | None = None
    _meetings: int = 0
    _random: Tensor = field(default_factory=torch.get_rng_state)

    @property
    def meets_in_passes(self) -> bool:
        """Not those that take turns: the threads within a pass would wait busily for each other all the time."""
        return False

    def kept(self, array: NDArray[Any]) -> NDArray[Any]:
        """See :meth:`World.kept`."""
        assert self.memory is not None
        kept: NDArray[Any] = self.memory.copy(torch.from_numpy(array)).numpy()
        return kept

    def sum(self, tensor: Tensor) -> Tensor:
        """See :meth:`World.sum`."""
        self.traffic = replace(self.traffic, reduced=self.traffic.reduced + tensor.nbytes)
        first, *others = self._meet(tensor.detach())
        total: Tensor = first.clone(memory_format=torch.contiguous_format)
        for other in others:
            total += other
        return total

    def broadcast(self, tensor: Tensor) -> None:
        """See :meth:`World.broadcast`."""
        # A copy: the first process goes on before the others have read it.
        sent = self._meet(tensor.detach().clone() if self.is_first else None)[0]
        if not self.is_first:
            tensor.detach().copy_(sent)

    def exchange(self, rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        """See :meth:`World.exchange`."""
        self.traffic = replace(self.traffic, halo=self.traffic.halo + rows.nbytes)
        pieces = self._meet(torch.split(rows.detach(), sent))
        return torch.cat([piece[self.rank] for piece in pieces])

    def all_of(self, value: T) -> list[T]:
        """See :meth:`World.all_of`."""
        return [json.loads(one) for one in self._meet(json.dumps(value))]

    def _meet(self, value: Any) -> list[Any]:
        """What all threads bring to their next meeting, when all have come."""
        table, number = self.table, self._meetings
        self._meetings += 1
        slot = table.slots.setdefault(number, [None, 0, *[None] * self.size])
        slot[2 + self.rank] = value
        slot[1] += 1
        while slot[1] < self.size:
            self._wait_for_turn()
        slot[0] = (slot[0] or 0) + 1
        if slot[0] == self.size:
            del table.slots[number]
        return slot[2:]

    def _wait_for_turn(self) -> None:
        """Let others run until it is this one's turn again."""
        with self._away(), self.table.condition:
            self.table.pass_on()
            self.take_turn()

    def take_turn(self) -> None:
        """Wait until this one may run; the table's condition is held."""
        while self.table.turn != self.rank and self.table.failure is None:
            self.table.condition.wait()
        if self.table.failure is not None:
            raise _EndedError

    @contextlib.contextmanager
    def _away(self) -> Iterator[None]:
        """Put away what this one works with; random numbers go on where they were."""
        self._random = torch.get_rng_state()
        assert self.memory is not None
        self.memory.release()
        try:
            yield
        finally:
            torch.set_rng_state(self._random)


def take_turns(size: int, scratch: Path, first: Callable[[World], T], other: Callable[[World], object]) -> T:
    """Let threads do what processes would do under torchrun, one at a time; the first is this thread.

    Args:
        size: How many there are.
        scratch: A directory on a disk with room for what one process would have in memory.
        first: What the first one does.
        other: What each of the others does.
    """
    table, random, strict = _Table(size), torch.get_rng_state(), torch.are_deterministic_algorithms_enabled()
    worlds = [TurnWorld(rank, size, table=table, memory=DiskMemory(scratch)) for rank in range(size)]

    def work(world: TurnWorld, what: Callable[[World], T]) -> T | None:
        try:
            with table.condition:
                world.take_turn()
            torch.set_rng_state(world._random)
            assert world.memory is not None
            with LargeTensorsOnDisk(world.memory):
                return what(world)
        except _EndedError:
            return None
        except BaseException as error:
            table.failure = table.failure or error
            return None
        finally:
            with table.condition:
                table.end(world.rank)

    threads = [threading.Thread(target=work, args=(world, other), name=f"part {world.rank}") for world in worlds[1:]]
    for thread in threads:
        thread.start()
    try:
        result = work(worlds[0], first)
    finally:
        for thread in threads:
            thread.join()
        torch.set_rng_state(random)
        torch.use_deterministic_algorithms(strict)
    if table.failure is not None:
        raise table.failure
    return result  # type: ignore[return-value]
