"""Planetoid's pickles without unpickling."""

import collections
import contextlib
import os
import pickle
import pickletools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from array_pickles import array, csr
from cagat.data import array_pickle
from cagat.data.array_pickle import read_array_pickle
from cagat.errors import DatasetError


def read(tmp_path, program):
    (tmp_path / "p").write_bytes(b"\x80\x02" + program + b".")
    return read_array_pickle(tmp_path / "p")


@pytest.mark.parametrize("dtype", ["<i4", "<i8", "<f4", "<f8"])
def test_arrays(tmp_path, dtype):
    numbers = np.arange(6, dtype=dtype).reshape(2, 3)
    back = read(tmp_path, array(numbers))
    np.testing.assert_array_equal(back, numbers)
    assert back.dtype == numbers.dtype


def test_sparse_matrices(tmp_path):
    dense = np.array([[0, 2, 0], [1, 0, 3]], dtype=np.float32)
    np.testing.assert_array_equal(read(tmp_path, csr(dense)).toarray(), dense)


def test_dictionaries_of_lists_as_pickle_writes_them(tmp_path):
    neighbours = collections.defaultdict(list, {node: [node + 1, 300 * node] for node in range(2500)})
    (tmp_path / "p").write_bytes(pickle.dumps(neighbours, 2))
    assert read_array_pickle(tmp_path / "p") == dict(neighbours)


class Call:
    def __init__(self, function, *arguments):
        self.made = function, arguments

    def __reduce__(self):
        return self.made


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_called(tmp_path, protocol):
    target = tmp_path / "executed"
    for bomb in (Call(os.mkdir, str(target)), Call(eval, f"__import__('os').mkdir({str(target)!r})")):
        for value in (bomb, {1: [bomb]}, [bomb]):
            (tmp_path / "p").write_bytes(pickle.dumps(value, protocol))
            with pytest.raises(DatasetError):
                read_array_pickle(tmp_path / "p")
    assert not target.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cos\nsystem\n(U\x04truetR",  # Calls a function.
        b"(ios\nsystem\n",  # INST, the old way to do so.
        b"c__builtin__\neval\nU\x011\x85R",
        b"ccollections\ndefaultdict\nc__builtin__\neval\n\x85R",  # A permitted name with a function that is not.
        b"c__builtin__\nlist\n)R",  # Permitted, but not to be called.
        b"cnumpy\nndarray\n)\x81",
        b"}}b",  # BUILD on what has no state.
        b"U\x05numpyU\x05dtype\x93",  # STACK_GLOBAL
        b"\x82\x01",  # EXT1
        b"Pid\n",  # PERSID
        b"K\x01",
        b"]K\x01a",
        b"}K\x01]U\x01xas",
        b"}(K\x01K\x02u",
        b"}(K\x01]K\x01u",
        b"a",
        b"t",
        b"h\x07",
        b"",
        array(np.arange(3, dtype="<i4"), shape=(4,)),
        array(np.arange(3, dtype="<i4")).replace(b"U\x02i4", b"U\x02O8"),
        b"cscipy.sparse.csr\ncsr_matrix\n)\x81}b",
    ],
)
def test_everything_else_is_refused(tmp_path, program):
    with pytest.raises(DatasetError):
        read(tmp_path, program)


def test_a_pickle_that_refers_to_itself_stays_small(tmp_path):
    lists = b"]q\x00" + b"".join(
        b"]q%c(h%ch%ce" % (n + 1, n, n) for n in range(200)
    )  # 2**200 leaves, were they copied.
    with pytest.raises(DatasetError):
        read(tmp_path, lists)


def test_a_file_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(array_pickle, "MOST_BYTES", 10)
    with pytest.raises(DatasetError, match="10"):
        read(tmp_path, array(np.arange(3, dtype="<i4")))


@given(st.binary(max_size=200))
def test_noise_never_does_more_than_fail(tmp_path_factory, noise):
    folder = tmp_path_factory.getbasetemp()
    with contextlib.suppress(DatasetError):
        assert read(folder, noise) == {}  # The one thing that so few bytes can be.


@given(st.lists(st.sampled_from([op.code.encode("latin-1") for op in pickletools.opcodes]), max_size=30))
def test_any_sequence_of_instructions_ends_well(tmp_path_factory, codes):
    folder = tmp_path_factory.getbasetemp()
    with contextlib.suppress(DatasetError):
        assert read(folder, b"".join(codes)) == {}


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "ind.x.allx")
    with pytest.raises(DatasetError, match="no regular file"):
        read_array_pickle(tmp_path / "ind.x.allx")
