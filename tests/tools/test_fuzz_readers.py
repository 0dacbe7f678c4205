"""What fuzzing found interesting is read again, and the readers with random changes."""

import random
from pathlib import Path

import pytest

import fuzz_readers


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    return fuzz_readers.readers(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("path", sorted(fuzz_readers.CORPUS.glob("*")), ids=lambda path: path.name)
def test_the_corpus_is_read_or_refused(known, path):
    fuzz_readers.read(known, path.read_bytes())


def test_changed_files_are_read_or_refused(known):
    start, draw = fuzz_readers.seeds(), random.Random(0)
    for _ in range(300):
        fuzz_readers.read(known, fuzz_readers.changed(draw.choice(start), draw))


def test_seeds_are_valid(known):
    """Or nearly: a dictionary is no array, and the checkpoint is none of ours."""
    for content in fuzz_readers.seeds()[:7]:
        known[content[0]](content[1:])


def test_other_errors_come_out(tmp_path):
    def broken(content: bytes) -> None:
        raise KeyError(content)

    with pytest.raises(KeyError):
        fuzz_readers.read((broken,), b"\0x")
    fuzz_readers.read((broken,), b"")
    assert isinstance(fuzz_readers.CORPUS, Path)
