"""What `cagat data partition` writes, and what happens when it is cut off or what it wrote is changed."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from cagat.distributed import World
from cagat.errors import CagatError, ConfigError, DamagedFileError, DatasetError
from cagat.files import WriteError
from cagat.kernels import CSRGraph
from cagat.parts import open_parts, part_files, partition, read_manifest
from cagat.parts.part_files import ARRAYS, read_part
from cagat.parts.tables import Tables
from parts_on_disk import cut, rejoined, some_graph, write_tables


def arrays_of(directory: Path) -> list[dict]:
    manifest = read_manifest(directory)
    return [read_part(directory, number, digest)[1] for number, digest in enumerate(manifest.parts)]


def dense(graph) -> torch.Tensor:
    weight = getattr(graph, "edge_weight", None)
    whole = CSRGraph.from_edge_index(graph.edge_index, graph.num_nodes, weight)
    A = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    A[whole.pattern.rows(), whole.pattern.col.long()] = whole.adjacency
    return A


@pytest.mark.parametrize("method", ["metis", "stream"])
@pytest.mark.parametrize("kind", [{}, {"weighted": True, "dense": True}, {"directed": True, "weighted": True}])
def test_the_parts_are_the_graph(tmp_path, kind, method):
    graph = some_graph(**kind)
    manifest = cut(graph, tmp_path / "parts", 3, method)
    parts = arrays_of(tmp_path / "parts")
    A, x = rejoined(parts, manifest)
    assert torch.equal(A, dense(graph))
    assert torch.equal(x, graph.x.to_dense())
    assert manifest.directed == kind.get("directed", False)
    assert all(part.keys() <= ARRAYS.keys() for part in parts)
    sizes = np.diff(manifest.bounds)
    assert sizes.sum() == 200
    assert sizes.max() <= 1.1 * 200 / 3
    owner = np.empty(200, dtype=int)
    for number, part in enumerate(parts):
        owner[part["nodes"]] = number
    apart = torch.from_numpy(owner)[:, None] != torch.from_numpy(owner)
    assert manifest.cut_entries == int(((A != 0) & apart).sum())
    old = np.concatenate([part["nodes"] for part in parts])
    for number, part in enumerate(parts):
        # What the others send is what is awaited here, in this order.
        sent = []
        for other in parts:
            ends = np.cumsum([0, *other["sent_counts"]])
            sent.append(other["nodes"][other["sent"][ends[number] : ends[number + 1]]])
        assert np.array_equal(np.concatenate(sent), old[part["halo"]])


def test_streaming_finds_blocks(tmp_path):
    assert cut(some_graph(), tmp_path / "parts", 4, "stream").cut < 0.5  # By chance it would be three quarters.


@pytest.mark.parametrize("each_way", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_read_in_blocks_are_the_graph(tmp_path, monkeypatch, weighted, each_way):
    monkeypatch.setattr("cagat.parts.tables._BUCKET_ENTRIES", 100)
    graph = some_graph(weighted=weighted, dense=True)
    write_tables(tmp_path / "tables", graph, weighted=weighted, split=True)
    if each_way:  # With the same weights, an edge that is told twice is one edge.
        lines = (tmp_path / "tables" / "edges.csv").read_text().splitlines()
        swapped = [",".join([*line.split(",")[1::-1], *line.split(",")[2:]]) for line in lines[1:]]
        (tmp_path / "tables" / "edges.csv").write_text("\n".join([*lines, *swapped]) + "\n")
    manifest = partition.partition(Tables.of(tmp_path / "tables"), tmp_path / "parts", 3, "stream")
    A, x = rejoined(arrays_of(tmp_path / "parts"), manifest)
    torch.testing.assert_close(A, dense(graph))
    torch.testing.assert_close(x, graph.x)
    assert manifest.has_split
    opened = open_parts(tmp_path / "parts", World())
    codes = dict(zip(opened.arrays["nodes"], opened.arrays["split"], strict=True))
    assert [codes[node] for node in range(5)] == [1, 2, 3, 0, 1]
    labels = dict(zip(opened.arrays["nodes"], opened.arrays["labels"], strict=True))
    assert [labels[node] for node in range(200)] == graph.y.tolist()
    assert not (tmp_path / "parts" / ".work").exists()


@pytest.mark.parametrize(
    ("edges", "told"),
    [
        ("source,target\n0,1\n1,x\n", "edges.csv: .*'x'.*whole numbers from 0 on.*--method metis"),
        ("source,target\n0,-1\n", "'target': node -1 is below 0"),
        ("source,target\n0,\n", "'target': 1 rows are empty"),
        ("source,target,weight\n0,1,-2\n", "not negative"),
        ("source,target\n0,9999999999999\n", "numbered up to 9999999999999 would need .*without gaps"),
    ],
)
def test_tables_that_cannot_be_read_in_blocks(tmp_path, edges, told):
    (tmp_path / "edges.csv").write_text(edges)
    (tmp_path / "features.csv").write_text("node,a\n0,1\n1,2\n")
    with pytest.raises(CagatError, match=told):
        partition.partition(Tables.of(tmp_path), tmp_path / "parts", 1, "stream")


def test_a_node_without_features_is_told(tmp_path, caplog):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    (tmp_path / "features.csv").write_text("node,a\n0,1\n1,2\n")
    assert partition.partition(Tables.of(tmp_path), tmp_path / "parts", 1, "stream").num_nodes == 3
    assert "1 nodes without features" in caplog.text


def test_a_partition_that_was_cut_off_goes_on(tmp_path, monkeypatch):
    graph, out, write = some_graph(), tmp_path / "parts", partition.write_part
    whole = cut(graph, tmp_path / "other", 4)

    def fail(directory, info, arrays):
        if info.number == 2:
            (directory / f".part-0000{info.number}.dead.part").mkdir()
            raise KeyboardInterrupt
        return write(directory, info, arrays)

    monkeypatch.setattr(partition, "write_part", fail)
    with pytest.raises(KeyboardInterrupt):
        cut(graph, out, 4)
    assert not (out / "graph.json").exists()
    made = {path.name: path.stat().st_ino for path in out.glob("part-*")}
    assert sorted(made) == ["part-00000", "part-00001"]
    monkeypatch.setattr(partition, "write_part", write)
    monkeypatch.setattr(partition, "metis_parts", lambda *given: pytest.fail("cut twice"))
    assert cut(graph, out, 4) == whole
    assert {name: (out / name).stat().st_ino for name in made} == made
    assert not list(out.glob(".part*"))


def test_a_full_disk(tmp_path, monkeypatch):
    graph, save = some_graph(), np.save

    def full(stream, array, **options):
        if len(list((tmp_path / "parts").glob("part-*"))) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(stream, array, **options)

    monkeypatch.setattr(part_files.np, "save", full)
    with pytest.raises(WriteError, match=r"part-00001: cannot be written \(No space left.*Make room"):
        cut(graph, tmp_path / "parts", 3)
    assert [path.name for path in (tmp_path / "parts").glob("*part-*")] == ["part-00000"]
    monkeypatch.setattr(part_files.np, "save", save)
    assert cut(graph, tmp_path / "parts", 3).num_parts == 3


@pytest.mark.posix
def test_a_full_disk_while_tables_are_put_in_order(tmp_path, monkeypatch):
    write_tables(tmp_path / "tables", some_graph(dense=True))

    def full(file, start, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        # Not by writing to a mapping, which would end the process.
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(WriteError, match=r"\.work: cannot be written \(No space left.*Make room"):
            partition.partition(Tables.of(tmp_path / "tables"), tmp_path / "parts", 2, "stream")
    assert partition.partition(Tables.of(tmp_path / "tables"), tmp_path / "parts", 2, "stream").num_parts == 2


def test_another_plan_is_refused(tmp_path):
    cut(some_graph(), tmp_path / "parts", 2)
    with pytest.raises(DatasetError, match=r"holds 2 parts by metis of this graph\. Choose another"):
        cut(some_graph(), tmp_path / "parts", 3)
    with pytest.raises(DatasetError, match="2 parts by metis of another graph"):
        cut(some_graph(weighted=True), tmp_path / "parts", 2)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").touch()
    with pytest.raises(DatasetError, match=r"holds other files, such as 'thesis\.tex'"):
        cut(some_graph(), tmp_path / "taken", 2)
    with pytest.raises(WriteError, match=r"thesis\.tex: cannot be written"):
        cut(some_graph(), tmp_path / "taken" / "thesis.tex", 2)


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_a_part_that_is_damaged_missing_or_from_another_partition(tmp_path):
    graph, out = some_graph(), tmp_path / "parts"
    manifest = cut(graph, out, 2)
    damage(out / "part-00001" / "halo.npy")
    with pytest.raises(DamagedFileError, match=r"part-00001/halo\.npy: is damaged or was changed.*cagat data part"):
        open_parts(out, World())
    (out / "part-00001" / "halo.npy").unlink()
    with pytest.raises(DamagedFileError, match=r"halo\.npy: is missing or damaged"):
        open_parts(out, World())
    # Each process looks at its own part only.
    assert open_parts(out, World(0, 2)).num_nodes == manifest.bounds[1]
    assert cut(graph, out, 2) == manifest
    assert open_parts(out, World(1, 2)).num_nodes == 200 - manifest.bounds[1]
    (out / "part-00001").rename(tmp_path / "away")
    with pytest.raises(DatasetError, match="part-00001: the part is missing"):
        open_parts(out, World())
    cut(graph, tmp_path / "other", 2, "stream")
    (tmp_path / "other" / "part-00001").rename(out / "part-00001")
    with pytest.raises(DamagedFileError, match=r"part-00001: is not the part that .*graph\.json was written with"):
        open_parts(out, World())
    assert cut(graph, out, 2) == manifest  # Made anew, not taken for ours.
    # A partition that was cut off does not know the checksums of its parts yet, but their nodes.
    shutil.rmtree(out / "part-00001")
    shutil.copytree(tmp_path / "away", out / "part-00001")
    shutil.rmtree(out / "part-00000")
    shutil.copytree(tmp_path / "other" / "part-00000", out / "part-00000")
    (out / "graph.json").unlink()
    assert cut(graph, out, 2) == manifest
    (out / "graph.json").write_text("{}")
    with pytest.raises(DamagedFileError, match=r"graph\.json: is damaged, or from another version"):
        open_parts(out, World())


def test_processes_that_do_not_divide_the_parts(tmp_path):
    cut(some_graph(), tmp_path / "parts", 4)
    with pytest.raises(ConfigError, match=r"3 processes cannot share 4 parts equally\. Start 1, 2 or 4"):
        open_parts(tmp_path / "parts", World(0, 3))


def test_names_are_kept(tmp_path):
    graph = some_graph()
    graph.node_names = [f"né {number}" for number in range(200)]
    cut(graph, tmp_path / "parts", 4)
    for size in (1, 2, 4):
        for rank in range(size):
            opened = open_parts(tmp_path / "parts", World(rank, size))
            nodes = opened.arrays["nodes"].tolist()
            assert opened.names(0, 30) + opened.names(30, len(nodes)) == [graph.node_names[node] for node in nodes]


def test_the_file_of_the_graph_is_small(tmp_path):
    cut(some_graph(), tmp_path / "parts", 2)
    assert len(json.loads((tmp_path / "parts" / "graph.json").read_text())["bounds"]) == 3
    assert (tmp_path / "parts" / "graph.json").stat().st_size < 2000
