"""Small files that say the same again and again, and so ask for years of work or much more memory than they have.

Each function makes the files of one attack in an empty directory and returns what reads them.
"""

import json
import struct
from pathlib import Path

from cagat import data
from cagat.training.run_directory import RunDirectory
from cagat.training.weights_file import read_weights
from fault_kinds.attack import Reading, attacks


def weights_with_a_very_long_head(folder: Path) -> Reading:
    """A head of 34 megabytes, of which the parser would make more than a gigabyte."""
    head = b'{"__metadata__": {"cagat": "{}"}, "a": [' + b"{}," * (11 * 10**6) + b"{}]}"
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head)
    return lambda: read_weights(path)


def safetensors_with_a_very_long_head(folder: Path) -> Reading:
    """A graph with very many empty tensors."""
    empty = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    head = json.dumps({str(number): empty for number in range(10**6)}).encode()
    path = folder / "g.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head)
    return lambda: data.load(path)


def metrics_of_many_lines(folder: Path) -> Reading:
    """A record of very many epochs of which nothing is known."""
    directory = RunDirectory(folder)
    directory.metrics.write_bytes(b"\n" * 2**26)
    return directory.history


def metrics_of_one_line(folder: Path) -> Reading:
    """A record of one line, of which the parser would make more than a gigabyte."""
    directory = RunDirectory(folder)
    directory.metrics.write_bytes(b"[" + b"{}," * (2**26 // 3 - 2) + b"{}]")
    return directory.history


STRUCTURES = attacks(
    (weights_with_a_very_long_head, "the header claims to have"),
    (safetensors_with_a_very_long_head, "the header claims to have"),
    (metrics_of_many_lines, "metrics.jsonl: is damaged"),
    (metrics_of_one_line, "metrics.jsonl: is damaged"),
)
