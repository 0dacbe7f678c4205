"""What happens between the steps of a compiled pass over a graph in parts: rows and values come from other processes.

A pass calls back into Python, where an :class:`Exchange` sends and receives. A step that makes rows for others goes
over these first; while they travel, it makes the rest.
"""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

SEND, WAIT, SEND_VECTORS, VALUES, VALUES_BACK = range(5)
"""What compiled code may ask for: to send rows, of features or of heads; to wait for all; to exchange values."""

_CALL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)


class Exchange(ABC):
    """What one process exchanges with the others.

    Attributes:
        halo: How many rows of other processes follow ours.
        outer: How many of our rows, which come first, others need.
        values: How many entries in our columns stand in rows of other processes; their values follow ours.
        positions: Which entry of the whole graph each of ours is, and then a zero for each of these values.
    """

    halo: int
    outer: int
    values: int
    positions: Tensor

    @abstractmethod
    def send(self, rows: Tensor) -> None:
        """Begin to send our rows to those who need them, and to receive the halo; shape ``(panels, rows, lanes)``."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until everything has arrived."""

    @abstractmethod
    def exchange_values(self, values: Tensor, *, back: bool) -> None:
        """Get the values of others in our columns; or back: give them theirs, and get those that they have made."""


class Calls:
    """The function that a compiled pass calls.

    Args:
        exchange: What exchanges.
        rows: The shape of rows of features.
        values: That of values at the entries.
        dtype: What the numbers are.
    """

    def __init__(
        self, exchange: Exchange, rows: tuple[int, int, int], values: tuple[int, int], dtype: torch.dtype
    ) -> None:
        self._exchange, self._dtype = exchange, dtype
        self._shapes = {SEND: rows, SEND_VECTORS: (1, rows[1], values[1]), VALUES: values, VALUES_BACK: values}
        self._error: BaseException | None = None
        self._function: Callable[[int, int], None] = _CALL(self._call)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _call(self, what: int, address: int) -> None:
        if self._error is not None:
            return  # What the pass computes from here on is thrown away.
        try:
            if what == WAIT:
                self._exchange.wait()
            elif what in (SEND, SEND_VECTORS):
                self._exchange.send(self._tensor(what, address))
            else:
                self._exchange.exchange_values(self._tensor(what, address), back=what == VALUES_BACK)
        except BaseException as error:  # Compiled code knows no exceptions.
            self._error = error

    def _tensor(self, what: int, address: int) -> Tensor:
        shape = self._shapes[what]
        size = torch.Size(shape).numel() * self._dtype.itemsize
        if size == 0:
            return torch.empty(shape, dtype=self._dtype)
        return torch.frombuffer((ctypes.c_byte * size).from_address(address), dtype=self._dtype).view(shape)

    def check(self) -> None:
        """Raise what went wrong on the way."""
        if self._error is not None:
            raise self._error
