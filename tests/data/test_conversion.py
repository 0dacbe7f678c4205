"""Tables in, one file out."""

import time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import torch

from cagat.data import convert, load
from cagat.errors import DatasetError


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "edges.tsv").write_text("source\ttarget\tweight\tkind\na\tb\t2\t1\nb\tc\t1\t0\n")
    (tmp_path / "features.csv").write_text("node,f\nc,1\na,2\n")
    (tmp_path / "labels.csv").write_text("node,label,split\na,p,train\nb,,\nc,q,test\n")
    return [tmp_path / "edges.tsv", tmp_path / "features.csv", tmp_path / "labels.csv"]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("directed", [False, True])
def test_the_file_holds_what_the_tables_hold(tmp_path, tables, suffix, directed):
    convert(tmp_path / f"out{suffix}", *tables, directed=directed)
    converted, direct = load(tmp_path / f"out{suffix}"), load(tmp_path, directed=directed)
    assert converted.directed is directed
    for key in ("x", "edge_index", "y", "edge_weight", "edge_attr", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(converted[key], direct[key]), key
    for key in ("node_names", "class_names", "feature_names"):
        assert list(converted[key]) == list(direct[key])


def test_a_wrong_ending_is_noticed_before_anything_is_read(tmp_path):
    with pytest.raises(DatasetError, match=r"out\.csv: .*\.npz or \.safetensors"):
        convert(tmp_path / "out.csv", tmp_path / "nowhere.csv")


def test_what_is_missing_is_named_and_nothing_is_left(tmp_path, tables):
    with pytest.raises(DatasetError, match=r"nowhere\.csv: there is no such file"):
        convert(tmp_path / "out.npz", tables[0], tmp_path / "nowhere.csv")
    with pytest.raises(DatasetError, match=r"a table ends in \.csv, \.tsv, \.parquet, not in '\.xls'"):
        convert(tmp_path / "out.npz", tmp_path / "edges.xls")
    assert not list(tmp_path.glob("*out*"))


def test_half_a_million_edges_take_seconds(tmp_path):
    pairs = np.random.default_rng(0).integers(0, 50_000, (500_000, 2)) + 10**9
    pyarrow.csv.write_csv(pa.table({"source": pairs[:, 0], "target": pairs[:, 1]}), tmp_path / "edges.csv")
    started = time.perf_counter()
    graph = convert(tmp_path / "out.npz", tmp_path / "edges.csv")
    assert time.perf_counter() - started < 10
    distinct = {(min(s, t), max(s, t)) for s, t in pairs.tolist() if s != t}
    assert graph.edge_index.shape[1] == 2 * len(distinct)
