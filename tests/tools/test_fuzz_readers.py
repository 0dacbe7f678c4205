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
    for content in fuzz_readers.seeds()[: len(known)]:
        assert fuzz_readers.read(known, content) == "read"


def test_most_changed_graphs_are_not_refused_for_their_seal_or_checksum(known):
    seeds, draw = fuzz_readers.seeds()[: len(known)], random.Random(1)
    for reader in (1, 7):
        outcomes = [
            fuzz_readers.read(known, seeds[reader][:1] + fuzz_readers.changed(seeds[reader][1:], draw))
            for _ in range(60)
        ]
        assert sum("DamagedFileError" in outcome for outcome in outcomes) < 30
        assert len(set(outcomes)) > 3


def test_the_smallest_input_for_each_outcome_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz_readers, "CORPUS", tmp_path / "corpus")
    seed = fuzz_readers.seeds()[2]
    fuzz_readers.keep_interesting([b"\3", b"\3\x80", seed + b"\n", seed], tmp_path)
    kept = {path.read_bytes() for path in (tmp_path / "corpus").iterdir()}
    assert seed in kept
    assert seed + b"\n" not in kept
    assert len(kept & {b"\3", b"\3\x80"}) in (1, 2)


def test_other_errors_come_out(tmp_path):
    def broken(content: bytes) -> None:
        raise KeyError(content)

    with pytest.raises(KeyError):
        fuzz_readers.read((broken,), b"\0x")
    fuzz_readers.read((broken,), b"")
    assert isinstance(fuzz_readers.CORPUS, Path)
