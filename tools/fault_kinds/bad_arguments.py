"""Arguments that cannot be used, for the layer, the model, the estimator, configurations, data and the command line."""

import random
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

from cagat.memory import OutOfMemoryError
from fault_kinds.bad_calls import COMMANDS, CONFIG, DATA, ESTIMATOR, BadCall
from fault_kinds.bad_network_calls import LAYER, MODEL
from fault_kinds.fault import Fault, Outcome
from fault_kinds.forked import command

CALLS = {
    f"{room}: {name}": call
    for room, calls in (
        ("layer", LAYER), ("model", MODEL), ("estimator", ESTIMATOR), ("config", CONFIG), ("data", DATA),
    )
    for name, call in calls.items()
}  # fmt: skip
_TYPES = (ValueError, TypeError, IndexError, OutOfMemoryError)
_FOREIGN = ("torch", "torch_geometric", "numba", "llvmlite")


def bad_arguments(tries: int, draw: random.Random, folder: Path) -> Iterator[Outcome]:
    """Make all calls, or a random choice of them."""
    names = [*CALLS, *COMMANDS]
    for name in names if tries >= len(names) else draw.sample(names, tries):
        if name in CALLS:
            yield Outcome(name, wrong_error(CALLS[name]))
        else:
            line, pattern = COMMANDS[name]
            ended = command(*line, folder=folder).wait(120)
            # The message may be in a box, and broken into lines.
            said = re.sub(r"[\s│]+", " ", ended.err)
            told = ended.code in (1, 2) and not ended.traceback and re.search(pattern, said)
            yield Outcome(f"command line: {name}", "" if told else f"exit code {ended.code}: {ended.err}")


def wrong_error(bad: BadCall) -> str:
    """What is wrong with the error that a call raises; nothing if it is typed, ours, and names value and remedy."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bad.call()
    except _TYPES as error:
        innermost = traceback.extract_tb(sys.exc_info()[2])[-1].filename
        if any(f"/site-packages/{package}/" in innermost for package in _FOREIGN):
            return f"raised inside {innermost}: {error}"
        for pattern in (bad.names, bad.remedy):
            if not re.search(pattern, str(error)):
                return f"does not say {pattern!r}: {error}"
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "was taken"


BAD_ARGUMENTS = Fault(
    "bad-arguments",
    "bad arguments to layer, model, estimator, configuration, data and command line",
    "a typed error that names the value and the remedy; no traceback from inside torch or numba",
    tries=len(CALLS) + len(COMMANDS),
    quick=len(CALLS) + len(COMMANDS),
    run=bad_arguments,
)
