"""Graphs in .npz and .safetensors files: published forms, our own, and files that are wrong, damaged or hostile."""

import contextlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import safetensors.numpy
import torch
from scipy import sparse
from torch_geometric.data import Data

from cagat.data import load, save
from cagat.data.graph import RawGraph
from cagat.data.graph_files import read_arrays, read_npz, write_arrays, write_npz
from cagat.errors import DatasetError

ADJACENCY = sparse.csr_matrix(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=np.float32))
FEATURES = sparse.csr_matrix(np.array([[1, 0], [0, 0], [0, 2]], dtype=np.float32))


def arrays(separator="_", **changes):
    names = {"_": ("adj_", "attr_"), ".": ("adj_matrix.", "attr_matrix.")}[separator]
    made = {
        prefix + part: np.asarray(getattr(matrix, part))
        for prefix, matrix in zip(names, (ADJACENCY, FEATURES), strict=True)
        for part in ("data", "indices", "indptr", "shape")
    }
    made |= {
        "labels": np.array([0, 1, -1]),
        "node_names": np.array(["a", "b\n", "c"]),
        "class_names": np.array(["p", "q"]),
    }
    return {key: value for key, value in {**made, **changes}.items() if value is not None}


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


def texts_of_codes(order, *codes):
    """Texts of one letter each, by the numbers of the letters, whether there are such letters or not."""
    return np.array(codes, dtype=f"{order}u4").view(f"{order}U1")


@pytest.mark.parametrize("separator", ["_", "."])
def test_both_published_forms(tmp_path, separator):
    graph = read_npz(saved(tmp_path / "g.npz", **arrays(separator))).check()
    assert graph.edge_index.tolist() == [[0, 1, 2], [1, 2, 0]]
    np.testing.assert_array_equal(graph.features.toarray(), FEATURES.toarray())
    assert graph.labels.tolist() == [0, 1, -1]
    assert graph.node_names == ["a", "b", "c"]
    assert graph.class_names == ["p", "q"]
    assert graph.edge_weight is None


def test_names_labels_and_features_may_be_missing_or_dense(tmp_path):
    missing = dict.fromkeys(["labels", "node_names", "class_names", *(f"attr_{part}" for part in ("indptr", "shape"))])
    graph = read_npz(saved(tmp_path / "g.npz", **arrays(**missing))).check()
    assert graph.labels.tolist() == [-1, -1, -1]
    assert graph.node_names == ["0", "1", "2"]
    assert graph.class_names == []
    np.testing.assert_array_equal(graph.features.toarray(), np.eye(3))
    graph = read_npz(saved(tmp_path / "g.npz", **arrays(**missing, attr_matrix=np.ones((3, 2)))))
    np.testing.assert_array_equal(graph.features, np.ones((3, 2)))


def test_entries_are_weights_and_zeros_no_edges(tmp_path, caplog):
    data = load(saved(tmp_path / "g.npz", **arrays(adj_data=np.array([2.0, 0.0, 1.0]))), directed=True)
    assert data.edge_index.tolist() == [[0, 2], [1, 0]]
    assert data.edge_weight.tolist() == [2, 1]
    assert "1 edge of weight 0 dropped" in caplog.text


def graph_with_everything():
    return RawGraph(
        edge_index=np.array([[2, 0], [0, 1]]),
        features=FEATURES,
        labels=np.array([1, -1, 0]),
        node_names=["x", "é", "z"],
        class_names=["p", "q"],
        feature_names=["f", "g"],
        edge_weight=np.array([0.5, 3], dtype=np.float32),
        edge_attr=np.array([[1, 2], [3, 4]], dtype=np.float32),
        split_codes=np.array([1, 0, 3], dtype=np.int8),
        directed=True,
        name="g",
    )


@pytest.mark.parametrize("checksum", [True, False])
def test_everything_survives_a_round_trip(tmp_path, checksum):
    graph = graph_with_everything()
    write_npz(tmp_path / "g.npz", graph, checksum=checksum)
    back = read_npz(tmp_path / "g.npz")
    assert back.edge_index.tolist() == [[0, 2], [1, 0]]
    assert back.edge_weight.tolist() == [3, 0.5]
    assert back.edge_attr.tolist() == [[3, 4], [1, 2]]
    np.testing.assert_array_equal(back.features.toarray(), FEATURES.toarray())
    for key in ("node_names", "class_names", "feature_names", "directed", "name"):
        assert getattr(back, key) == getattr(graph, key)
    np.testing.assert_array_equal(back.labels, graph.labels)
    np.testing.assert_array_equal(back.split_codes, graph.split_codes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"adj_indices": np.array([1, 2, -1])}, r"adj_shape \(3, 3\) does not fit .* must be >= 0"),
        ({"adj_indices": np.array([1, 2, 3])}, "does not fit .* must be < 3"),
        ({"adj_indices": np.array([1.0, 2.0, 0.0])}, "integers"),
        ({"adj_indices": None}, "adj_indices missing"),
        ({"adj_indptr": None}, "no adjacency"),
        ({"adj_indptr": np.array([0, 1, 2])}, "does not fit"),
        ({"adj_indptr": np.array([0, 2, 1, 3])}, "does not fit"),
        ({"adj_indptr": np.array([0, -1, 1, 3])}, "does not fit"),
        ({"adj_indptr": np.array([0, 1, 2, 2**40])}, "does not fit"),
        ({"adj_shape": np.array([3, 4])}, "square"),
        ({"adj_shape": np.array([2**62, 2**62])}, "does not fit"),
        ({"adj_shape": np.array([-3, 3])}, "does not fit"),
        ({"adj_shape": np.array([3])}, r"adj_shape must be integers of shape \(2\)"),
        ({"adj_data": np.array([1.0, 2.0])}, "2 entries, 3 indices"),
        ({"adj_data": np.array([1.0, -2.0, 1.0])}, "0 or more"),
        ({"adj_data": np.array([1.0, np.inf, 1.0])}, "NaN or infinite"),
        ({"attr_data": np.array([np.nan, 1.0])}, "1 values that are NaN"),
        ({"attr_data": np.array([1e300, 1.0])}, "infinite"),
        ({"attr_data": np.array(["1", "2"])}, "data must be numbers"),
        ({"attr_shape": np.array([2, 2])}, "does not fit"),
        ({"labels": np.array([0, 1])}, r"shape \(3\), but"),
        ({"labels": np.array([0, 1, 2])}, "label 2 is out of range: there are 2 classes"),
        ({"labels": np.array([0, 1, -2])}, "label -2 is out of range"),
        ({"labels": np.array([0.0, 1.0, np.nan])}, "integer"),
        (
            {"labels": np.array([0, 1, 1], dtype=object)},
            r"'labels\.npy': cannot be read, because it is an object array: .*would execute code",
        ),
        ({"node_names": np.array(["a", "b"])}, "length 2, expected 3"),
        ({"node_names": np.array(["a", "b", "a"])}, "'a' occurs more than once"),
        ({"node_names": np.array(["", "", ""])}, "'' occurs more than once"),
        ({"node_names": np.array([b"a", b"\xff", b"c"])}, "UTF-8"),
        ({"node_names": np.array(["a", "b\ud800", "c"])}, r"the node name 'b\\ud800' holds half"),
        ({"class_names": np.array(["p", "\udfff"])}, r"the class name '\\udfff' holds"),
        ({"attr_names": np.array(["\ud800", "\udc00"])}, r"the feature name '\\ud800' holds"),
        ({"node_names": texts_of_codes("<", 97, 98, 0x110000)}, "node_names holds .* codes that are no characters"),
        ({"node_names": texts_of_codes(">", 97, 98, 0xFFFFFFFF)}, "node_names holds .* codes that are no characters"),
        ({"node_names": np.eye(3)}, "texts"),
        ({"edge_attr": np.ones((2, 1))}, "edge_attr"),
        ({"edge_attr": np.ones(3)}, "edge_attr must be numbers in 2 dimensions"),
        ({"parts": np.array([0, 1, 4])}, "split code 4 is out of range"),
        ({"parts": np.array([0, 257, 0])}, "split code 257"),
        ({"parts": np.array([0.5, 1, 2])}, "parts must be"),
    ],
)
def test_files_that_do_not_fit_together(tmp_path, changes, message):
    path = saved(tmp_path / "g.npz", **arrays(**changes))
    with pytest.raises(DatasetError, match=message):
        load(path)


def test_names_of_any_byte_order(tmp_path):
    names = ["a", "é", "\U0010ffff"]
    for kind in ("<U1", ">U5"):
        assert (
            read_npz(saved(tmp_path / "g.npz", **arrays(node_names=np.array(names).astype(kind)))).node_names == names
        )


def test_an_npz_with_very_long_names_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 10**6}))
    names = ["x" * 10**6, "y"]
    graph = RawGraph(np.zeros((2, 0), dtype=np.int64), np.eye(2, dtype=np.float32), np.array([-1, -1]), names, [])
    with pytest.raises(DatasetError, match="safetensors"):
        write_npz(tmp_path / "g.npz", graph)
    assert list(tmp_path.iterdir()) == []


# The archive itself.


class Bomb:
    """Unpickling this would create a directory."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def npy(descr="'<f4'", shape="(2,)", content=b"\0" * 8):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def archive(path, method=zipfile.ZIP_DEFLATED, **members):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def test_arrays_are_read_back_and_by_numpy(tmp_path):
    made = {
        "a": np.arange(6).reshape(2, 3),
        "b": np.array(["é"]),
        "c": np.asfortranarray(np.eye(3)),
        "d": np.array(True),
    }
    write_arrays(tmp_path / "a.npz", made, checksum=True)
    back = read_arrays(tmp_path / "a.npz", [*made, "absent"])
    assert set(back) == set(made)
    for key, array in made.items():
        np.testing.assert_array_equal(back[key], array)
        np.testing.assert_array_equal(np.load(tmp_path / "a.npz")[key], array)


def test_bytes_depend_on_the_arrays_alone(tmp_path):
    write_arrays(tmp_path / "1.npz", {"a": np.arange(3), "b": np.ones(2)})
    write_arrays(tmp_path / "2.npz", {"b": np.ones(2), "a": np.arange(3)})
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


def test_object_arrays_are_never_unpickled(tmp_path):
    bomb = npy("'|O'", "()", pickle.dumps(Bomb(tmp_path / "executed")))
    path = archive(tmp_path / "a.npz", metadata=bomb, labels=npy())
    assert list(read_arrays(path, ["labels"])) == ["labels"]  # One that nobody wants is skipped.
    with pytest.raises(DatasetError, match="would execute code"):
        read_arrays(path, ["metadata"])
    assert not (tmp_path / "executed").exists()


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.npz", labels=npy("'|i1'", "(20000000,)", bytes(20_000_000)))
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 30_000_000}))
    with pytest.raises(DatasetError, match="would need"):
        read_arrays(path, ["labels"])
    monkeypatch.setattr("cagat.data.validation._BOMB_BYTES", 2**20)
    with pytest.raises(DatasetError, match="would unpack to 2"):
        read_arrays(path, ["labels"])


def test_a_size_that_lies_is_not_believed(tmp_path):
    path = archive(tmp_path / "a.npz", labels=npy("'|i1'", "(20000000,)", bytes(20_000_000)))
    content = bytearray(path.read_bytes())
    central = content.index(b"PK\x01\x02")
    content[central + 24 : central + 28] = (1000).to_bytes(4, "little")  # The unpacked size in the directory.
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=r"expected 20000000 bytes|CRC"):
        read_arrays(path, ["labels"])


HEADER = b"\x93NUMPY\x01\x00"


@pytest.mark.parametrize(
    "content",
    [
        npy(shape="(3,)"),
        npy(shape="(-2,)"),
        npy(shape="(4611686018427387904, 4)"),
        npy(descr="[('a', '|O')]"),
        npy(descr="[('a', '<f4')]"),
        npy(descr="'<M8[s]'", shape="(1,)"),
        npy(descr="__import__('os').getcwd()"),
        HEADER + b"\xff\xff" + b" " * 65535,
        HEADER + b"\x88\x13" + b"(" * 5000,
        HEADER + b"\x0b\x00{'descr': 5}",
        b"\x93NUMPY\x09\x00",
        b"not an array",
        b"",
    ],
)
def test_members_that_are_no_arrays(tmp_path, content):
    with pytest.raises(DatasetError):
        read_arrays(archive(tmp_path / "a.npz", labels=content), ["labels"])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"plain text", pickle.dumps({"a": 1})])
def test_files_that_are_no_archives(tmp_path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DatasetError, match=r"a\.npz"):
        read_arrays(tmp_path / "a.npz", ["labels"])


def test_every_changed_bit_and_every_cut_is_noticed(tmp_path):
    path = tmp_path / "a.npz"
    write_arrays(path, {"labels": np.arange(3), "x": np.ones(1)}, checksum=True)
    whole = path.read_bytes()
    cuts = [whole[:length] for length in range(0, len(whole), 5)]
    flips = [bytes([*whole[:n], whole[n] ^ (1 << n % 8), *whole[n + 1 :]]) for n in range(len(whole))]
    for changed in (*cuts, *flips):
        path.write_bytes(changed)
        with pytest.raises(DatasetError, match=r"a\.npz: is damaged or cut short|not a readable"):
            read_arrays(path, ["labels", "x"])


def test_without_a_checksum_a_changed_byte_of_an_array_is_noticed(tmp_path):
    write_arrays(tmp_path / "a.npz", {"labels": np.arange(5)})
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[content.index(np.arange(5).tobytes()) + 8] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DatasetError, match="CRC"):
        read_arrays(tmp_path / "a.npz", ["labels"])


def test_a_file_of_version_0_1_0_has_the_same_checksum(tmp_path):
    write_arrays(tmp_path / "a.npz", {"a": np.arange(2, dtype=np.int8)}, checksum=True)
    digest = "5f1c623d967680a3e8c1dcfcc2c3c8068543019a103f602e9525030a45e8899a"
    assert (tmp_path / "a.npz").read_bytes().endswith(digest.encode())


def test_paths_in_an_archive_lead_nowhere(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("../../evil.npy", npy())
        file.writestr("/etc/labels.npy", npy())
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (folder / "a.npz").write_bytes(buffer.getvalue())
    assert read_arrays(folder / "a.npz", ["labels", "evil"]) == {}
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.npz"]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_changed_file_never_does_more_than_fail(tmp_path, method):
    path = archive(tmp_path / "a.npz", method, labels=npy("'<i8'", "(20,)", np.arange(20).tobytes()))
    whole, random = path.read_bytes(), np.random.default_rng(0)
    for _ in range(200):
        changed = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            changed[random.integers(len(changed))] = random.integers(256)
        path.write_bytes(changed)
        with contextlib.suppress(DatasetError):
            assert set(read_arrays(path, ["labels"])) <= {"labels"}


# The other file form.


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
def test_tensors_that_do_not_fit_together(tmp_path, changes, message):
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


def test_numbers_of_classes_may_be_any(tmp_path):
    graph = read_npz(saved(tmp_path / "g.npz", **arrays(class_names=None, labels=np.array([5, -1, 2**40]))))
    assert graph.labels.tolist() == [0, -1, 1]
    assert graph.class_names == ["5", str(2**40)]


def edge_list_arrays(**changes):
    return {
        "edges": np.array([[0, 1], [1, 2], [2, 3]]),
        "node_features": np.eye(4, 2, dtype=np.float32),
        "node_labels": np.array([0, 3, 3, 7]),
        "train_masks": np.array([[1, 0, 0, 0], [0, 0, 0, 1]], dtype=bool),
        "val_masks": np.array([[0, 1, 0, 0], [0, 0, 1, 0]], dtype=bool),
        "test_masks": np.array([[0, 0, 1, 1], [1, 1, 0, 0]], dtype=bool),
    } | changes


def test_npz_that_lists_edges(tmp_path):
    path = tmp_path / "g.npz"
    np.savez(path, **edge_list_arrays())
    graph = read_npz(path)
    assert graph.edge_index.tolist() == [[0, 1, 2], [1, 2, 3]]
    assert graph.split_codes.tolist() == [1, 2, 3, 3]
    assert graph.labels.tolist() == [0, 1, 1, 2]  # No class is empty, and their names are the old numbers.
    assert graph.class_names == ["0", "3", "7"]
    columns = {f"{part}_masks": edge_list_arrays()[f"{part}_masks"].T for part in ("train", "val", "test")}
    np.savez(path, **edge_list_arrays(**columns))
    assert read_npz(path).split_codes.tolist() == [1, 2, 3, 3]
    np.savez(path, edges=np.array([[0, 1]]))
    assert read_npz(path).labels.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edges": np.array([[0, 1, 2]])}, r"edges must be integers of shape \(any, 2\)"),
        ({"edges": np.array([[0, 4]])}, "node 4 is out of range"),
        ({"node_labels": np.array([0, 1])}, "node_labels must be integers"),
        ({"train_masks": np.zeros((2, 3), dtype=bool)}, r"train_masks must be truth values of shape \(splits, 4\)"),
        ({"node_features": np.array([[1], [None], [2], [3]], dtype=object)}, "is an object array"),
    ],
)
def test_what_is_wrong_with_a_list_of_edges(tmp_path, changes, message):
    np.savez(tmp_path / "g.npz", **edge_list_arrays(**changes))
    with pytest.raises(DatasetError, match=message):
        read_npz(tmp_path / "g.npz").check()


def test_a_heterophilous_graph_as_published(own_graphs):
    graph = read_npz(own_graphs / "minesweeper.npz")
    assert (graph.num_nodes, graph.edge_index.shape, graph.features.shape) == (10000, (2, 39402), (10000, 7))
    assert np.bincount(graph.split_codes).tolist() == [0, 5000, 2500, 2500]
