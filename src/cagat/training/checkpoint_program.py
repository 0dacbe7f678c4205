"""The program in a checkpoint, looked at before torch runs it.

A pickle is a program for a small stack machine. torch refuses one that would execute anything, but not one that is made
to keep it busy: a tuple that names the one before it twice, forty times over, is a few hundred bytes, and to look up
the last in a dictionary takes years. Here the program is only taken apart, and refused if it has what no checkpoint of
ours has.
"""

import pickletools
from typing import Any

# A thousand layers of any model are less.
_MOST_INSTRUCTIONS = 1_000_000
# What a tensor is made of are tuples in a tuple, seven values at most; shapes have few lengths.
_LONGEST_TUPLE, _DEEPEST_TUPLE = 16, 2
# Only the weights of a model have a state beside their items. One that is large could be given again and again.
_MOST_STATES = 8

_DICTIONARY, _TENSOR = "collections OrderedDict", "torch._utils _rebuild_tensor_v2"
_NUMBERS = ("Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double")
_NAMES = {_DICTIONARY, _TENSOR, *(f"torch {kind}Storage" for kind in _NUMBERS)}
_VALUES = {
    "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "EMPTY_TUPLE",
    "EMPTY_LIST", "EMPTY_DICT",
}  # fmt: skip
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
# On the stack there is the name of what is called, or how many tuples are in each other: none in all other values.
_PLAIN = 0
_Item = str | int


def check_program(program: bytes) -> None:
    """Raise an error, of any kind, unless a pickle has only what checkpoints have, in an amount that is soon read."""
    machine, before = _Machine(), ""
    for count, (instruction, argument, _) in enumerate(pickletools.genops(program)):
        if count >= _MOST_INSTRUCTIONS:
            raise ValueError(f"it holds more than {_MOST_INSTRUCTIONS} values")
        machine.step(instruction.name, argument, before)
        before = instruction.name


class _Machine:
    """The stack machine, which makes nothing and only knows what is a tuple and what is a name."""

    def __init__(self) -> None:
        self._stack: list[_Item] = []
        self._below_marks: list[list[_Item]] = []
        self._memo: dict[int, _Item] = {}
        self._states = 0

    def step(self, name: str, argument: Any, before: str) -> None:
        """Follow an instruction; `before` is the name of the one before it."""
        if name in _VALUES:
            self._stack.append(_PLAIN)
        elif name in ("BINPUT", "LONG_BINPUT"):
            self._memo[argument] = self._stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            self._stack.append(self._memo[argument])
        elif name == "MARK":
            self._below_marks.append(self._stack)
            self._stack = []
        elif name == "TUPLE":
            items = self._take_to_mark()
            self._stack.append(_tuple(items))
        elif name in _TUPLES:
            items = [self._stack.pop() for _ in range(_TUPLES[name])]
            self._stack.append(_tuple(items))
        elif name == "GLOBAL" and argument in _NAMES:
            self._stack.append(argument)
        elif not self._filled(name) and not self._called(name, before) and name not in ("PROTO", "STOP"):
            raise ValueError(f"it holds more than numbers and texts: {name} {str(argument)[:80]}")

    def _filled(self, name: str) -> bool:
        """Follow an instruction that puts something into a list or a dictionary; false if it is another one."""
        match name:
            case "APPEND":
                self._stack.pop()
            case "APPENDS":
                self._take_to_mark()
            case "SETITEM":
                self._stack.pop()
                _check_keys([self._stack.pop()])
            case "SETITEMS":
                _check_keys(self._take_to_mark()[::2])
            case _:
                return False
        return True

    def _called(self, name: str, before: str) -> bool:
        """Follow an instruction that calls something, or gives it a state; false if it is another one."""
        match name:
            case "BINPERSID":
                self._stack[-1] = _PLAIN
            case "REDUCE":
                self._stack.pop()
                # A dictionary that is made of a long list would be work for a few bytes; ours are made empty.
                if self._stack[-1] != _TENSOR and (self._stack[-1] != _DICTIONARY or before != "EMPTY_TUPLE"):
                    raise ValueError("it calls what is not called in a checkpoint")
                self._stack[-1] = _PLAIN
            case "BUILD":
                self._stack.pop()
                self._states += 1
                if self._states > _MOST_STATES:
                    raise ValueError(f"it holds more than {_MOST_STATES} values with a state")
            case _:
                return False
        return True

    def _take_to_mark(self) -> list[_Item]:
        taken, self._stack = self._stack, self._below_marks.pop()
        return taken


def _tuple(items: list[_Item]) -> int:
    depth = 1 + max((item for item in items if isinstance(item, int)), default=0)
    if len(items) > _LONGEST_TUPLE or depth > _DEEPEST_TUPLE:
        raise ValueError("a tuple is longer or deeper than those of tensors")
    return depth


def _check_keys(keys: list[_Item]) -> None:
    if any(key != _PLAIN for key in keys):
        raise ValueError("a key of a dictionary is neither a number nor a text")
