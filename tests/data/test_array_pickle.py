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


# Each names the one before it twice; twenty times, so that a failure of the tests is no endless one.
DOUBLED_TUPLE = b")" + b"".join(b"q%ch%c\x86" % (n, n) for n in range(20))
DOUBLED_LIST = b"]" + b"".join(b"q%c]h%cah%ca" % (n, n, n) for n in range(20))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (DOUBLED_TUPLE + b")R", "a tuple is longer or deeper"),
        (b"}(" + DOUBLED_TUPLE + b"K\x01u", "a tuple is longer or deeper"),
        (DOUBLED_LIST + b")R", "a list cannot be called with a tuple"),
        (DOUBLED_LIST + b"q\x30c__builtin__\nlist\nh\x30\x85R", "list cannot be called with these 1 arguments"),
        (b"}()\x85K\x01u", "a key of a dictionary is neither"),
        (b"(" + 17 * b"K\x01" + b"t", "a tuple is longer or deeper"),
        (b")\x85\x85\x85", "a tuple is longer or deeper"),
        (b"}(K\x01]q\x00K\x02h\x00u", "two keys of the dictionary have the same list"),
        (
            array(np.arange(3, dtype="<i4")).replace(
                b"(K\x01(M\x03\0t", b"(K\x01](" + 1000 * b"J\xff\xff\xff\x7f" + b"e"
            ),
            "shape of an array must be a tuple of numbers",
        ),
        (array(np.arange(3, dtype="<i4")).replace(b"(M\x03\0t", b"(U\x01xt"), "must be a tuple of numbers"),
        (array(np.arange(3, dtype="<i4")).replace(b"U\x01<", b"U\x01x"), "a known order of bytes"),
    ],
)
def test_what_would_be_work_without_end_is_refused_before(tmp_path, program, message):
    with pytest.raises(DatasetError, match=message) as caught:
        read(tmp_path, program)
    assert len(str(caught.value)) < 300


def test_of_a_long_argument_only_the_beginning_is_told(tmp_path):
    with pytest.raises(DatasetError, match="instruction BINUNICODE") as caught:
        read(tmp_path, b"X" + (10**6).to_bytes(4, "little") + bytes(10**6))
    assert len(str(caught.value)) < 500


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
