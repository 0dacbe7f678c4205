"""Graphs in .safetensors files."""

import json

import numpy as np
import pytest
import safetensors.numpy
import torch
from torch_geometric.data import Data

from cagat.data import load, save
from cagat.errors import DatasetError


@pytest.fixture
def data():
    return Data(
        x=torch.tensor([[1.0, 0.0], [0.0, 0.0], [2.0, 3.0]]),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        y=torch.tensor([1, -1, 0]),
        edge_weight=torch.tensor([1.0, 1.0, 2.5, 2.5]),
        edge_attr=torch.tensor([[1.0], [1.0], [7.0], [7.0]]),
        train_mask=torch.tensor([True, False, False]),
        val_mask=torch.tensor([False, False, False]),
        test_mask=torch.tensor([False, False, True]),
        node_names=["a", "b\nc", "é"],
        class_names=["p", "q"],
        feature_names=["f", "g"],
    )


@pytest.mark.parametrize("suffix", [".safetensors", ".npz"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_data_comes_back_the_same(tmp_path, data, suffix, sparse):
    if sparse:
        data.x = data.x.to_sparse_csr()
    if suffix == ".npz":
        data.node_names[1] = "b"  # Spaces around names do not survive in an .npz, where names are stripped.
    save(data, tmp_path / f"g{suffix}")
    back = load(tmp_path / f"g{suffix}", sparse=sparse)
    assert back.x.layout is data.x.layout
    assert torch.equal(back.x.to_dense(), data.x.to_dense())
    for key in ("edge_index", "y", "edge_weight", "edge_attr", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(back[key], data[key]), key
    for key in ("node_names", "class_names", "feature_names"):
        assert list(back[key]) == list(data[key])


def test_a_bare_data_is_enough(tmp_path):
    save(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2), tmp_path / "g.safetensors")
    back = load(tmp_path / "g.safetensors")
    assert back.directed
    assert back.edge_index.tolist() == [[0], [1]]
    assert back.y.tolist() == [-1, -1]
    assert torch.equal(back.x, torch.eye(2))


def test_what_is_not_saved_is_said(tmp_path, data, caplog):
    data.pos = torch.zeros(3, 2)
    save(data, tmp_path / "g.safetensors")
    assert "pos" in caplog.text


def names(value):
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_index": None}, "edge_index missing"),
        ({"edge_index": np.array([0, 1])}, "edge_index must be"),
        ({"edge_index": np.array([[0], [9]])}, "node 9"),
        ({"edge_index": np.array([[0.0], [1.0]])}, "edge_index must be"),
        ({"labels": np.array([0, 5])}, "label 5"),
        ({"labels": np.array([[0, 5]])}, "labels must be"),
        ({"features": None}, "features.indices, features.indptr, features.shape missing"),
        ({"features": np.array([1.0, 2.0])}, "2 dimensions"),
        ({"features": np.full((2, 1), np.nan)}, "NaN"),
        ({"features": None, "features.indptr": np.array([0, 1, 2])}, "features.indices, features.shape missing"),
        ({"node_names": names([1, 2])}, "node_names must be texts, but one is 1"),
        ({"node_names": names({"a": 1})}, "list of texts"),
        ({"node_names": np.frombuffer(b"[" * 100_000, dtype=np.uint8)}, "not readable"),
        ({"edge_weight": np.array([-1.0])}, "0 or more"),
        ({"edge_weight": np.array([1.0, 1.0])}, "edge_weight has length 2"),
        ({"parts": np.array([7, 0])}, "split code 7"),
        ({"parts": np.array([0.5, 0.5])}, "parts must be"),
    ],
)
def test_files_that_do_not_fit_together(tmp_path, changes, message):
    tensors = {
        "edge_index": np.array([[0], [1]]),
        "labels": np.array([0, 1]),
        "features": np.eye(2, dtype=np.float32),
        "directed": np.array([False]),
        "node_names": names(["a", "b"]),
        "class_names": names(["p", "q"]),
        "feature_names": names([]),
        **changes,
    }
    tensors = {key: value for key, value in tensors.items() if value is not None}
    safetensors.numpy.save_file(tensors, tmp_path / "g.safetensors")
    with pytest.raises(DatasetError, match=message):
        load(tmp_path / "g.safetensors")


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\xff" * 64, (2**40).to_bytes(8, "little") + b"{}", b"text"])
def test_files_that_are_no_tensors(tmp_path, content):
    (tmp_path / "g.safetensors").write_bytes(content)
    with pytest.raises(DatasetError, match=r"not a readable \.safetensors"):
        load(tmp_path / "g.safetensors")


def test_a_damaged_file_is_refused(tmp_path, data):
    save(data, tmp_path / "g.safetensors")
    content = bytearray((tmp_path / "g.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "g.safetensors").write_bytes(content)
    with pytest.raises(DatasetError, match=r"checksum does not match\. Copy or write it again"):
        load(tmp_path / "g.safetensors")


def test_memory_for_names_is_required_first(tmp_path, data, monkeypatch):
    data.node_names[0] = "a" * 10**6
    save(data, tmp_path / "g.safetensors")
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 30 * 10**6}))
    with pytest.raises(DatasetError, match=r"node_names: reading 10000.. bytes of names would need"):
        load(tmp_path / "g.safetensors")
