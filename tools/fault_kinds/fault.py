"""What a fault is, and what comes of trying it."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Outcome(NamedTuple):
    """What came of one try.

    Attributes:
        what: The try, in words.
        wrong: What was not as it must be; nothing if all was.
    """

    what: str
    wrong: str = ""


Tries = Callable[[int, random.Random, Path], Iterator[Outcome]]
"""Tries a fault so many times, with random numbers and an empty directory, and says what came of each try."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes:
        name: What `--only` takes.
        title: What is done.
        must: What must come of it.
        tries: How often it is tried for the whole table.
        quick: How often it is tried with `--quick`.
        run: Does it.
    """

    name: str
    title: str
    must: str
    tries: int
    quick: int
    run: Tries
