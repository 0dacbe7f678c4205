"""What a fault is, and what came of trying it."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    """What came of one try: the try in words, and what was wrong; nothing if all was as it must be."""

    what: str
    wrong: str = ""


Tries = Callable[[int, random.Random, Path], Iterator[Outcome]]
"""Tries a fault so many times, with random numbers and an empty directory, and says what came of each try."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault: its name for `--only`, what is done, what must come of it, and how often it is tried."""

    name: str
    title: str
    must: str
    tries: int
    quick: int
    run: Tries
