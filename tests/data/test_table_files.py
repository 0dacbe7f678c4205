"""Own graphs from tables: every form, any names, and files that are wrong."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

from cagat.data import load
from cagat.data.table_files import read_table
from cagat.errors import DatasetError

EDGES = "source,target\nann,bob\nbob,cat\ncat,ann\ncat,dan\n"
FEATURES = "node,age,height\nbob,30,1.5\nann,20,0\ncat,40,1.8\n"
LABELS = "node,label\ncat,tall\nann,small\nbob,\n"


def folder(path, **files):
    path.mkdir(exist_ok=True)
    for name, content in files.items():
        stem, _, suffix = name.partition("_")
        target = path / f"{stem}.{suffix or 'csv'}"
        if isinstance(content, str):
            target.write_text(content, encoding="utf-8")
        else:
            pyarrow.parquet.write_table(content, target)
    return path


def test_csv_tables(tmp_path):
    data = load(folder(tmp_path / "g", edges=EDGES, features=FEATURES, labels=LABELS))
    assert data.node_names == ["bob", "ann", "cat", "dan"]  # As in the features, then whoever else there is.
    assert data.class_names == ["small", "tall"]
    assert data.feature_names == ["age", "height"]
    assert data.y.tolist() == [-1, 0, 1, -1]
    torch.testing.assert_close(data.x, torch.tensor([[30, 1.5], [20, 0], [40, 1.8], [0, 0]]))
    assert data.edge_index.tolist() == [[0, 0, 1, 1, 2, 2, 2, 3], [1, 2, 0, 2, 0, 1, 3, 2]]
    assert data.name == "g"


def test_tsv_and_parquet_hold_the_same(tmp_path):
    expected = load(folder(tmp_path / "csv", edges=EDGES, features=FEATURES, labels=LABELS))
    tables = {
        "edges_tsv": EDGES.replace(",", "\t"),
        "features_parquet": pa.table({"node": ["bob", "ann", "cat"], "age": [30, 20, 40], "height": [1.5, 0, 1.8]}),
        "labels_parquet": pa.table({"node": ["cat", "ann", "bob"], "label": ["tall", "small", None]}),
    }
    data = load(folder(tmp_path / "other", **tables))
    for key in ("x", "y", "edge_index"):
        assert torch.equal(data[key], expected[key])
    assert data.node_names == expected.node_names
    assert data.class_names == expected.class_names


def test_sparse_features(tmp_path):
    words = "node,feature,value\nann,w10,2\nann,w2,1\nbob,w2,3\n"
    data = load(folder(tmp_path, edges=EDGES, features=words))
    assert data.feature_names == ["w10", "w2"]
    assert data.x.tolist() == [[2, 1], [0, 3], [0, 0], [0, 0]]
    numbers = words.replace("w", "")
    data = load(folder(tmp_path, edges=EDGES, features=numbers), sparse=True)
    assert data.feature_names == ["2", "10"]
    assert data.x.to_dense().tolist() == [[1, 2], [3, 0], [0, 0], [0, 0]]
    data = load(folder(tmp_path, edges=EDGES, features="node,feature\nann,x\nbob,y\n"))
    assert data.x.tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]


def test_weights_edge_features_and_directions(tmp_path):
    edges = "from,to,weight,years,kin\n1,2,0.5,3,1\n3,1,2,4,0\n"
    data = load(folder(tmp_path, edges=edges), directed=True)
    assert data.node_names == ["1", "3", "2"]
    assert data.edge_index.tolist() == [[0, 1], [2, 0]]
    assert data.edge_weight.tolist() == [0.5, 2]
    assert data.edge_attr.tolist() == [[3, 1], [4, 0]]
    both = load(tmp_path)
    assert both.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert both.edge_weight.tolist() == [2, 0.5, 2, 0.5]


@pytest.mark.parametrize(
    "edges",
    [
        "1,2\n2,3\n",
        "source,target\n1,2\n2,3\n",
        "\ufeffsource,target\r\n 1 , 2\r\n2,3\r\n",
        "u,v\n1,2\n2,3",
        "\ufeff1,2\n2,3",
    ],
)
def test_headers_spaces_and_line_ends(tmp_path, edges):
    data = load(folder(tmp_path, edges=edges))
    assert data.node_names == ["1", "2", "3"]
    assert data.num_edges == 4


def test_names_of_any_kind(tmp_path):
    names = ["007", "7", "-1", "Zoë, Jr.", "a b", "1e5", "NA"]
    edges = "source,target\n" + "".join(f'"{name}",{names[0]}\n' for name in names[1:])
    labels = "node,label\nNA,NA\n7,None\n-1,-1\n"
    data = load(folder(tmp_path, edges=edges, labels=labels))
    assert sorted(data.node_names) == sorted(names)
    assert data.class_names == ["-1", "None"]
    assert data.y[data.node_names.index("NA")] == -1


def test_whole_numbers_name_the_same_node_in_every_file_form(tmp_path):
    edges = pa.table({"source": pa.array([1, 2], pa.int16()), "target": pa.array(["2", "3"]).dictionary_encode()})
    labels = pa.table({"node": [3.0, 1.0], "label": [1.0, None]})
    data = load(folder(tmp_path, edges_parquet=edges, labels_parquet=labels, features="id,f\n1,5\n2,6\n3,7\n"))
    assert data.node_names == ["1", "2", "3"]
    assert data.y.tolist() == [-1, -1, 0]
    assert data.class_names == ["1"]


def test_classes_that_are_numbers_are_sorted_by_value(tmp_path):
    data = load(folder(tmp_path, edges="1,2\n2,3\n", labels="node,class\n1,10\n2,9\n3,-1\n4,NA\n"))
    assert data.class_names == ["-1", "9", "10"]
    assert data.y.tolist() == [2, 1, 0, -1]


def test_given_splits_become_masks(tmp_path):
    data = load(
        folder(tmp_path / "a", edges=EDGES, labels="node,label,split\nann,p,train\nbob,q,Test\ncat,p,\ndan,q,valid\n")
    )
    assert [data.node_names[node] for node in data.train_mask.nonzero()] == ["ann"]
    assert [data.node_names[node] for node in data.val_mask.nonzero()] == ["dan"]
    assert [data.node_names[node] for node in data.test_mask.nonzero()] == ["bob"]
    other = load(folder(tmp_path / "b", edges=EDGES, splits="node,split\nann,train\nbob,test\n"))
    assert other.train_mask.sum() == other.test_mask.sum() == 1


def test_what_was_cleaned_and_unused_columns_are_said_once(tmp_path, caplog):
    edges = "source,target\na,a\na,b\na,b\nc,d\n"
    load(folder(tmp_path, edges=edges, features="node,f\na,1\nb,1\nc,1\n", labels="node,label,title\na,p,Hello\n"))
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"{tmp_path / 'labels.csv'}: columns not used: title",
        f"{tmp_path.name}: 1 self-loop dropped (the layer adds one to every node); 1 duplicate edge merged; "
        "2 nodes outside the largest component kept; 1 node without features; "
        "classes too small for 20 training and 20 validation nodes: p (1).",
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"edges": ""}, "empty"),
        ({"edges": "alice,bob\nbob,cat\n"}, "'alice,bob'.*source,target"),
        ({"edges": "source,target,when\na,b,monday\n"}, r"edges\.csv, column 'when': .*'monday'"),
        ({"edges": "source,target\na,b,c\n"}, "2 columns"),
        ({"edges": "source,target\na,\n"}, "1 rows are empty"),
        ({"edges": "source,target\na, \n"}, "empty name"),
        ({"edges": "source,target,weight\na,b,\n"}, "'weight': 1 cells are empty"),
        ({"edges": "source,target,weight\na,b,-1\n"}, "weights must be 0 or more"),
        ({"edges": "source,target,weight\na,b,nan\n"}, "NaN"),
        ({"edges": "source,target,weight,weight\na,b,1,2\n"}, "'weight' is there twice"),
        ({"edges": EDGES, "features": "ann,1\nbob,2\n"}, "no column for the node"),
        ({"edges": EDGES, "features": "node,f\nann,nan\n"}, "NaN"),
        ({"edges": EDGES, "features": "node,f\nann,\n"}, "'f': 1 cells are empty"),
        ({"edges": EDGES, "features": "node,f\nann,tall\n"}, r"features\.csv"),
        ({"edges": EDGES, "features": "node,f\nann,1\nann,2\n"}, "'ann' has more than one row"),
        ({"edges": EDGES, "features": "node,feature,value\nann,f,1\nann,f,2\n"}, "another row"),
        ({"edges": EDGES, "labels": "node,colour\nann,red\n"}, "no column for the label"),
        ({"edges": EDGES, "labels": "node,label\nann,a\nann,b\n"}, "'ann' has more than one row"),
        ({"edges": EDGES, "labels": "node,label,split\nann,p,training\nbob,q,later\n"}, "'later' is no part"),
        (
            {
                "edges": EDGES,
                "labels": LABELS.replace("label", "label,split", 1).replace(",\n", ",,\n").replace("l\n", "l,\n"),
                "splits": "node,split\nann,test\n",
            },
            "Keep one of the two",
        ),
        ({"features": FEATURES}, "no edges file"),
        ({"edges": EDGES, "edges_tsv": EDGES.replace(",", "\t")}, r"edges\.csv and edges\.tsv"),
        ({"edges_parquet": "not parquet"}, r"edges\.parquet"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, files, message):
    with pytest.raises(DatasetError, match=message):
        load(folder(tmp_path, **files))


def test_fractions_are_no_names(tmp_path):
    with pytest.raises(DatasetError, match="whole numbers"):
        load(folder(tmp_path, edges_parquet=pa.table({"source": [0.5], "target": [1.0]})))
    with pytest.raises(DatasetError, match="texts in UTF-8 or whole numbers, not list"):
        load(folder(tmp_path, edges_parquet=pa.table({"source": [[1]], "target": [1]})))
    with pytest.raises(DatasetError, match="column 'kind' must be numbers"):
        load(folder(tmp_path, edges_parquet=pa.table({"source": [1], "target": [1], "kind": ["x"]})))


def test_a_graph_may_have_no_edges(tmp_path):
    data = load(folder(tmp_path, edges="source,target,weight,length\n", features="node,f\na,1\nb,2\n"))
    assert data.edge_index.shape == (2, 0)
    assert data.num_nodes == 2


def test_bytes_that_are_not_utf8(tmp_path):
    (tmp_path / "edges.csv").write_bytes(b"source,target\na,\xff\xfe\n")
    with pytest.raises(DatasetError, match=r"edges\.csv"):
        load(tmp_path)


def test_many_blocks_give_one_graph(tmp_path, monkeypatch):
    monkeypatch.setattr("cagat.data.table_files._BLOCK_BYTES", 500)
    random = np.random.default_rng(0)
    pairs = random.integers(0, 300, (2000, 2))
    pyarrow.csv.write_csv(pa.table({"source": pairs[:, 0], "target": pairs[:, 1]}), tmp_path / "edges.csv")
    data = load(tmp_path)
    found = {(int(data.node_names[s]), int(data.node_names[t])) for s, t in data.edge_index.T.tolist()}
    assert found == {(s, t) for s, t in [*pairs.tolist(), *pairs[:, ::-1].tolist()] if s != t}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_long_names_are_held_once_whatever_their_type(tmp_path, kind):
    long = "a" * 1_000_000
    names = pa.array([long, "b"], pa.large_string()).cast(kind)
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 1500, pa.int32()), names)
    table = pa.table({"source": column, "target": column})
    # Without the schema of Arrow, which would have texts read as they were written: with each text once.
    pyarrow.parquet.write_table(table, tmp_path / "edges.parquet", store_schema=False)
    if pa.types.is_large_string(kind):
        rows = pa.table({"source": pa.array([long] * 200, kind), "target": pa.array(["b"] * 200, kind)})
        pyarrow.parquet.write_table(rows, tmp_path / "edges.parquet", row_group_size=100)
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    table = read_table(tmp_path / "edges.parquet", "edges")
    assert pool.bytes_allocated() - before < 2**24
    assert load(tmp_path).node_names == [long, "b"]


def test_texts_that_unpack_to_very_much_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("cagat.data.validation._BOMB_BYTES", 2**24)
    texts = pa.array([f"{number}" + "a" * 100_000 for number in range(300)])
    table = pa.table({"source": texts, "target": texts})
    pyarrow.parquet.write_table(
        table, tmp_path / "edges.parquet", compression="zstd", use_dictionary=False, row_group_size=10
    )
    assert (tmp_path / "edges.parquet").stat().st_size < 100_000
    with pytest.raises(DatasetError, match="300 rows of 2 columns would unpack to"):
        load(tmp_path)


def varint(number):
    """A whole number as Parquet's metadata holds it."""
    number, digits = 2 * number, []
    while number:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits[:-1], digits[-1] & 127])


def test_a_file_that_tells_smaller_sizes_than_it_has(tmp_path, monkeypatch):
    monkeypatch.setattr("cagat.data.validation._BOMB_BYTES", 2**24)
    texts = pa.array([f"{number}" + "a" * 100_000 for number in range(300)])
    path, options = tmp_path / "edges.parquet", {"compression": "zstd", "use_dictionary": False, "row_group_size": 10}
    pyarrow.parquet.write_table(pa.table({"source": texts, "target": texts}), path, **options)
    metadata, content = pyarrow.parquet.read_metadata(path), path.read_bytes()
    body, footer = content[: -8 - metadata.serialized_size], content[-8 - metadata.serialized_size :]
    for size in {metadata.row_group(g).column(c).total_uncompressed_size for g in range(30) for c in range(2)}:
        told = varint(size)
        footer = footer.replace(told, b"\x82" + b"\x80" * (len(told) - 2) + b"\0")  # 1, in as many bytes.
    path.write_bytes(body + footer)
    assert pyarrow.parquet.read_metadata(path).row_group(0).column(0).total_uncompressed_size == 1
    with pytest.raises(DatasetError, match="300 rows of 2 columns would unpack to 1"):
        load(tmp_path)


def test_very_many_columns_are_refused(tmp_path, monkeypatch):
    names = [f"x{number}" for number in range(60_000)]
    text = ",".join(["node", *names]) + "\n" + ",".join(["ann", *(["1"] * len(names))]) + "\n"
    with pytest.raises(
        DatasetError, match=r"features\.csv: has 60001 columns.* Use fewer; .*node,feature,value.*\.npz"
    ):
        load(folder(tmp_path / "csv", edges=EDGES, features=text))
    monkeypatch.setattr("cagat.data.tables._MOST_COLUMNS", 2)
    table = pa.table({"node": ["ann"], "x": [1], "y": [2]})
    with pytest.raises(DatasetError, match=r"features\.parquet: has 3 columns"):
        load(
            folder(tmp_path / "parquet", edges_parquet=pa.table({"source": [1], "target": [2]}), features_parquet=table)
        )


def test_a_matrix_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    path = folder(tmp_path, edges=EDGES, features=FEATURES)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 60}))
    with pytest.raises(DatasetError, match=r"a matrix of 4 nodes and 2 features would need .*node,feature,value"):
        load(path)


def test_parquet_texts_that_are_not_utf8(tmp_path):
    offsets = pa.py_buffer(np.array([0, 1, 2], dtype=np.int32))
    names = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xffa")])
    with pytest.raises(DatasetError, match=r"edges\.parquet, column 'source': names must be texts in UTF-8"):
        load(folder(tmp_path, edges_parquet=pa.table({"source": names, "target": ["a", "b"]})))
