"""Read the arrays in Planetoid's Python 2 pickles without unpickling.

A pickle is a program for a small stack machine, and its danger lies in the instructions that import a name and call it.
Here `pickletools` only takes the program apart, and :class:`_Machine` runs the few instructions that plain arrays need.
It imports nothing and calls nothing: the five names that such pickles mention stand for five stand-ins of our own.
"""

import math
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cagat.data.csr import checked_csr
from cagat.errors import DatasetError
from cagat.files import read_bounded

MOST_BYTES = 64 * 2**20
"""Planetoid's files are smaller than this; what is built from a pickle stays within a small multiple of its size."""

_DTYPES = {"i1", "i2", "i4", "i8", "f4", "f8"}
_CSR, _RECONSTRUCT = "scipy.sparse.csr csr_matrix", "numpy.core.multiarray _reconstruct"
_NDARRAY, _DTYPE = "numpy ndarray", "numpy dtype"
_DEFAULTDICT, _LIST = "collections defaultdict", "__builtin__ list"
_NAMES = {_CSR, _RECONSTRUCT, _NDARRAY, _DTYPE, _DEFAULTDICT, _LIST}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {"BININT", "BININT1", "BININT2", "BINSTRING", "SHORT_BINSTRING"}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}

# A tuple that names the one before it twice is small, but to hash, compare or print forty of them takes years. Arrays
# need tuples of nine values, and tuples in tuples.
_LONGEST_TUPLE, _DEEPEST_TUPLE = 16, 3
_MOST_SHOWN = 80


class _Name(str):
    """The name of something that a real unpickler would import."""


class _Standin:
    """What a name makes when it is called, and the state it is given afterwards."""

    def __init__(self, kind: str, arguments: tuple[Any, ...]) -> None:
        self.kind, self.arguments, self.state = kind, arguments, None


def read_array_pickle(path: Path) -> Any:
    """Read an array, a CSR matrix or a dictionary of lists of integers from a pickle.

    Returns:
        A NumPy array, a `scipy.sparse.csr_matrix`, or a `dict[int, list[int]]`.

    Raises:
        DatasetError: The pickle contains anything else.
    """
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise DatasetError(f"{path.name}: has {size} bytes, but no Planetoid file has more than {MOST_BYTES}.")
    try:
        return _plain(path.name, _Machine(path.name).run(read_bounded(path, MOST_BYTES)))
    except DatasetError:
        raise
    except Exception as error:  # Whatever a broken or hostile program runs into; none of it is ours to mend.
        raise DatasetError(f"{path.name}: is not a pickle of arrays ({error}). Fetch the file again.") from error


class _Machine:
    """The stack machine, reduced to what data needs."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def run(self, program: bytes) -> Any:
        argument: Any
        for instruction, argument, position in pickletools.genops(program):
            name = instruction.name
            if name in _VALUES:
                self.stack.append(argument)
            elif name in _CONSTANTS:
                self.stack.append(_CONSTANTS[name])
            elif name in _TUPLES:
                self.stack.append(_tuple(self._take(_TUPLES[name])))
            elif name in ("BINPUT", "LONG_BINPUT"):
                self.memo[argument] = self.stack[-1]
            elif name == "GLOBAL" and argument in _NAMES:
                self.stack.append(_Name(argument))
            elif name == "STOP":
                return self.stack.pop()
            elif name != "PROTO" and not self._structural(name, argument):
                raise DatasetError(
                    f"{self.what}: instruction {name} {_shown(argument)} at byte {position} is not needed for arrays, "
                    "so the file is not what it should be. Nothing of it was executed. Fetch the file again."
                )
        raise DatasetError(f"{self.what}: ends too early. Fetch the file again.")

    def _structural(self, name: str, argument: Any) -> bool:
        """Run an instruction that builds something out of the stack; false if it is not a permitted one."""
        match name:
            case "BINGET" | "LONG_BINGET":
                self.stack.append(self.memo[argument])
            case "MARK":
                self.marks.append(len(self.stack))
            case "TUPLE":
                self.stack.append(_tuple(self._take_to_mark()))
            case "EMPTY_LIST":
                self.stack.append([])
            case "EMPTY_DICT":
                self.stack.append({})
            case "APPEND":
                (item,) = self._take(1)
                self._top(list).append(item)
            case "APPENDS":
                items = self._take_to_mark()
                self._top(list).extend(items)
            case "SETITEMS":
                items = self._take_to_mark()
                if not all(type(key) in (int, str) for key in items[::2]):
                    raise ValueError("a key of a dictionary is neither a number nor a text")
                self._top(dict).update(zip(items[::2], items[1::2], strict=True))
            case "REDUCE" | "NEWOBJ":
                made, arguments = self._take(2)
                self.stack.append(_made(made, arguments))
            case "BUILD":
                (state,) = self._take(1)
                self._top(_Standin).state = state
            case _:
                return False
        return True

    def _top(self, kind: type) -> Any:
        if not isinstance(self.stack[-1], kind):
            raise ValueError(f"a {kind.__name__} is expected, not a {type(self.stack[-1]).__name__}")
        return self.stack[-1]

    def _take(self, count: int) -> list[Any]:
        return self._take_from(len(self.stack) - count)

    def _take_to_mark(self) -> list[Any]:
        return self._take_from(self.marks.pop())

    def _take_from(self, start: int) -> list[Any]:
        if start < (self.marks[-1] if self.marks else 0):
            raise ValueError("an instruction takes more than there is")
        taken = self.stack[start:]
        del self.stack[start:]
        return taken


def _tuple(items: list[Any]) -> tuple[Any, ...]:
    made = tuple(items)
    if len(made) > _LONGEST_TUPLE or _depth(made) > _DEEPEST_TUPLE:
        raise ValueError("a tuple is longer or deeper than those of arrays")
    return made


def _depth(value: Any) -> int:
    """How many tuples are in each other; each of them was short and not too deep when it was made."""
    return 1 + max(map(_depth, value), default=0) if isinstance(value, tuple) else 0


def _shown(argument: Any) -> str:
    """The beginning of an instruction's argument, without making a text of all of it."""
    return f"{argument[:_MOST_SHOWN] if isinstance(argument, (str, bytes)) else argument!r:.{_MOST_SHOWN}}"


def _made(name: Any, arguments: Any) -> Any:
    if not isinstance(name, _Name) or not isinstance(arguments, tuple):
        raise ValueError(f"a {type(name).__name__} cannot be called with a {type(arguments).__name__}")
    if name == _DEFAULTDICT and arguments == (_Name(_LIST),):
        return {}
    if name in (_CSR, _RECONSTRUCT, _DTYPE):
        return _Standin(str(name), arguments)
    raise ValueError(f"{name} cannot be called with these {len(arguments)} arguments")


def _plain(what: str, value: Any) -> Any:
    """The result, with stand-ins replaced by arrays."""
    if isinstance(value, dict):
        # A list that is there again and again would make much of a small file, and much work.
        if len({id(items) for items in value.values()}) < len(value):
            raise ValueError("two keys of the dictionary have the same list")
        if not all(isinstance(key, int) and _is_list_of_integers(items) for key, items in value.items()):
            raise ValueError("the dictionary holds more than lists of integers")
        return value
    if not isinstance(value, _Standin):
        raise ValueError(f"a {type(value).__name__} is no array")
    if value.kind == _CSR:
        state: Any = value.state
        data, indices, indptr = (_array(state[part]) for part in ("data", "indices", "indptr"))
        rows, columns = (int(length) for length in state["_shape"])
        return checked_csr(what, data, indices, indptr, (rows, columns))
    return _array(value)


def _is_list_of_integers(items: Any) -> bool:
    return isinstance(items, list) and all(type(item) is int for item in items)


def _array(value: Any) -> NDArray[Any]:
    if not isinstance(value, _Standin) or value.kind != _RECONSTRUCT or value.arguments[0] != _NDARRAY:
        raise ValueError("an array is expected")
    state: Any = value.state
    _, shape, dtype, fortran_order, content = state
    if not isinstance(dtype, _Standin) or dtype.kind != _DTYPE or dtype.arguments[0] not in _DTYPES:
        raise ValueError("an array of numbers is expected")
    dtype_state: Any = dtype.state
    order = dtype_state[1]
    if order not in ("<", ">", "|"):
        raise ValueError("an array of a known order of bytes is expected")
    if not isinstance(shape, tuple) or not all(type(length) is int for length in shape):
        raise ValueError("the shape of an array must be a tuple of numbers")
    numbers: NDArray[Any] = np.frombuffer(content.encode("latin-1"), dtype=order + dtype.arguments[0])
    if len(numbers) != math.prod(shape):
        raise ValueError(f"an array of shape {shape} cannot have {len(numbers)} numbers")
    array: NDArray[Any] = numbers.reshape(shape, order="F" if fortran_order else "C")
    return array
