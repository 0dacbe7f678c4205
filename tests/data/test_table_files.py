"""Own graphs from tables: every form, any names, and files that are wrong."""

import re

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
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said == [
        f"{tmp_path / 'labels.csv'}: columns not used: title",
        f"{tmp_path.name}: 1 self-loop dropped (the layer adds one to every node); 1 duplicate edge merged; "
        "2 nodes outside the largest component kept; 1 node without features.",
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"edges": ""}, "empty"),
        ({"edges": "alice,bob\nbob,cat\n"}, "'alice,bob'.*source,target"),
        ({"edges": "source,target,when\na,b,monday\n"}, r"edges\.csv, column 'when': .*'monday'"),
        ({"edges": "source,target\na,b,c\n"}, "2 columns"),
        ({"edges": "source,target\na,\n"}, "'target': 1 rows are empty, the first being row 1"),
        ({"edges": "source,target\na, \n"}, "empty name in row 1"),
        ({"edges": "source,target,weight\na,b,\n"}, "'weight': 1 cells are empty, the first in row 1"),
        ({"edges": "source,target,weight\na,b,-1\n"}, "-1.0 for the edge from 'a' to 'b'; weights must"),
        ({"edges": "source,target,weight\na,b,nan\n"}, "NaN"),
        ({"edges": "u,u,v,w,w\na,a,b,1,2\n"}, "more than one column is called 'u', 'w'"),
        ({"edges": EDGES, "features": "ann,1\nbob,2\n"}, "no column for the node"),
        ({"edges": EDGES, "features": "node,f\nann,inf\n"}, "infinite, the first for node 'ann', feature 'f'"),
        ({"edges": EDGES, "features": "node,feature,value\nbob,f,1\nann,g,inf\n"}, "for node 'ann', feature 'g'"),
        ({"edges": EDGES, "features": "node,f\nann,nan\n"}, r"features\.csv: column 'f' holds nothing but gaps"),
        ({"edges": EDGES, "features": "node,f,g\nann,,\n"}, "'f' holds nothing but gaps.*'g' holds nothing but gaps"),
        ({"edges": EDGES, "features": "node,f\nann,tall\nbob,tall\n"}, r"features\.csv: no column tells rows apart"),
        ({"edges": EDGES, "features": "node,f\nann,1\nann,2\n"}, "'ann' has more than one row: 1 and 2"),
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
    monkeypatch.setattr("cagat.data.columns._MOST_COLUMNS", 2)
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


TWITCH = {"edges": "id_1,id_2\n5,7\n7,9\n", "target": "id,target\n5,0\n7,1\n9,0\n"}


def test_common_names_of_files_and_columns(tmp_path):
    words = "node_id,feature_id,value\n5,3,1.0\n7,3,1.0\n7,4,2.0\n7,4,2.0\n9,4,1.0\n9,4,4.0\n"
    data = load(folder(tmp_path / "a", **TWITCH, features=words))
    assert data.node_names == ["5", "7", "9"]
    assert data.class_names == ["0", "1"]
    assert data.x.tolist() == [[1, 0], [1, 2], [0, 2.5]]
    for name in ("labels", "label", "targets", "classes", "y"):
        files = {"edges": TWITCH["edges"], name: TWITCH["target"], "nodes": "id,age\n9,3\n7,5\n"}
        data = load(folder(tmp_path / name, **files))
        assert data.y.tolist() == [0, 1, 0]
        assert data.x.tolist() == [[3], [5], [0]]
        assert data.described.tolist() == [True, True, False]
    with pytest.raises(DatasetError, match=r"label\.csv and target\.csv. Keep one"):
        load(folder(tmp_path / "label", **TWITCH))


def test_duplicate_rows_of_a_sparse_table_are_counted(tmp_path, caplog):
    words = "node,feature\n5,a\n5,a\n7,a\n9,b\n9,b\n"
    data = load(folder(tmp_path, **TWITCH, features=words))
    assert data.x.tolist() == [[1, 0], [1, 0], [0, 1]]
    assert "2 duplicate sparse features merged" in caplog.text


def test_columns_that_the_user_names(tmp_path):
    files = {"edges": "who,whom,weight\na,b,2\n", "nodes": "user,age,colour\na,1,red\nb,2,blue\nc,3,\n"}
    names = {"source": "Who", "target": "whom", "node": "user", "label": "colour"}
    data = load(folder(tmp_path, **files), names=names)
    assert data.class_names == ["blue", "red"]
    assert data.y.tolist() == [1, 0, -1]
    assert data.feature_names == ["age"]
    assert data.edge_weight.tolist() == [2, 2]
    with pytest.raises(DatasetError, match=r"edges\.csv: there is no column 'x' for the source .*Correct --source"):
        load(tmp_path, names=names | {"source": "x"})
    with pytest.raises(DatasetError, match="'colours' that could be named"):
        load(tmp_path, names={"colours": "colour"})
    files = {"edges": "from,other\na,b\n", "labels": "node,colour\na,red\n"}
    data = load(folder(tmp_path / "one", **files), names={"target": "other", "label": "colour"})
    assert data.num_edges == 2
    with pytest.raises(DatasetError, match=r"'kind' for the label .*Correct --label"):
        load(tmp_path / "one", names={"target": "other", "label": "kind"})


def test_labels_and_split_beside_the_features(tmp_path, caplog):
    nodes = "id,age,label,split\na,1,x,train\nb,2,y,test\nc,3,,\n"
    data = load(folder(tmp_path, edges="a,b\n".replace("a,b", "source,target\na,b"), nodes=nodes))
    assert data.y.tolist() == [0, 1, -1]
    assert data.train_mask.tolist() == [True, False, False]
    assert data.x.tolist() == [[1], [2], [3]]
    load(tmp_path, names={"label": "kind"})
    assert "there is no column 'kind', so no node has a label" in caplog.text


MIXED = """node,age,country,joined,active,bio
ann,31,de,2020-01-31,true,"likes cats, and
dogs"
bob,,fr,2021-05-01,false,"runs far"
cat,45,de,,true,"reads, and reads"
"""


def test_a_mixed_table_is_encoded(tmp_path):
    data = load(folder(tmp_path, edges=EDGES, features=MIXED, labels=LABELS))
    assert data.node_names == ["ann", "bob", "cat", "dan"]
    assert data.encoder.kinds == {
        "age": "number",
        "country": "category",
        "joined": "date",
        "active": "boolean",
        "bio": "category",
    }
    assert list(data.feature_names) == data.encoder.names
    assert data.x.shape == (4, len(data.encoder.names))
    assert data.x.isfinite().all()
    assert data.x[3].eq(0).all()
    assert data.described.tolist() == [True, True, True, False]
    named = dict(zip(data.feature_names, data.x.T.tolist(), strict=True))
    assert named["age missing"] == [0, 1, 0, 0]
    assert named["country_de"] == [1, 0, 1, 0]
    again = load(tmp_path, encoder=data.encoder)
    assert torch.equal(again.x, data.x)


def test_parquet_and_frames_are_encoded_as_csv_is(tmp_path):
    import pandas as pd

    from cagat.data import from_frames

    expected = load(folder(tmp_path / "csv", edges=EDGES, features=MIXED))
    frame = pd.read_csv(tmp_path / "csv" / "features.csv", parse_dates=["joined"])
    data = from_frames(pd.read_csv(tmp_path / "csv" / "edges.csv"), frame)
    assert torch.equal(data.x, expected.x)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.set_column(3, "joined", table["joined"].cast(pa.date32()))
    table = table.set_column(2, "country", table["country"].dictionary_encode())
    data = load(folder(tmp_path / "parquet", edges_tsv=EDGES.replace(",", "\t"), nodes_parquet=table))
    assert torch.equal(data.x, expected.x)
    assert data.encoder.kinds == expected.encoder.kinds


def test_a_yaml_file_says_what_columns_hold(tmp_path):
    features = "node,zip,size,remark\nann,1,3,x\nbob,2,4,y\ncat,1,5,z\n"
    path = folder(tmp_path / "g", edges=EDGES, features=features)
    (path / "columns.yaml").write_text("columns: {zip: category, remark: drop}\n")
    data = load(path)
    assert list(data.feature_names) == ["zip_1", "zip_2", "size"]
    assert data.encoder.describe() == ["zip: category, 2 values, one-hot", "size: number", "remark: dropped"]
    other = tmp_path / "other.yaml"
    other.write_text("columns: {remark: drop}\n")
    data = load(path, columns=other)
    assert "encoder" not in data
    assert data.x.tolist() == [[1, 3], [2, 4], [1, 5], [0, 0]]
    assert load(path, columns={"zip": "drop"}).feature_names[0] == "size"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("columns: {zip: categories}", "zip is said to be 'categories'.* Did you mean category"),
        ("zip: category", "must be of the form"),
        ("columns: [", "is not YAML"),
        ("columns: {zap: drop, zop: text}", r"features\.csv: there is no column 'zap', 'zop'"),
        ("columns: {zip: number, size: date}", "'zip' is said to be a number, but row 2 holds 'b'.*'size' is said to"),
    ],
)
def test_a_yaml_file_that_is_wrong(tmp_path, text, message):
    path = folder(tmp_path, edges=EDGES, features="node,zip,size\nann,1,long\nbob,b,short\n")
    (path / "columns.yaml").write_text(text)
    with pytest.raises(DatasetError, match=message):
        load(path)


def test_tables_of_numbers_are_read_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cagat.data.encoding", None)
    data = load(folder(tmp_path, edges=EDGES, features=FEATURES))
    assert data.x[:3].tolist() == torch.tensor([[30, 1.5], [20, 0], [40, 1.8]]).tolist()


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "classes"), [("twitch", 7126, 35324, 2), ("lastfm", 7624, 27806, 18)]
)
def test_graphs_as_their_publishers_wrote_them(own_graphs, name, nodes, edges, classes, caplog):
    data = load(own_graphs / name, sparse=True)
    assert (data.num_nodes, data.num_edges // 2, len(data.class_names)) == (nodes, edges, classes)
    assert (data.y >= 0).all()
    assert ("535 duplicate sparse features merged" in caplog.text) == (name == "twitch")


@pytest.mark.parametrize(("others", "told"), [("1 0", True), ("1 1", False)])
def test_labels_of_minus_one_may_be_meant_otherwise(tmp_path, caplog, others, told):
    labels = "node,label\nann,-1\n" + "".join(f"n{place},{one}\n" for place, one in enumerate(others.split()))
    graph = load(folder(tmp_path / "a", edges=EDGES, labels=labels))
    assert graph.class_names == sorted({"-1", *others.split()}, key=int)
    assert ("leave these labels empty" in caplog.text) == told


def test_tables_about_other_nodes(tmp_path, caplog):
    caplog.set_level("INFO")
    features = "id,age\n1,5\n2,6\n"
    with pytest.raises(
        DatasetError, match=r"edges\.csv: none of its nodes is in .*features\.csv. Row 1 is about 'ann'"
    ):
        load(folder(tmp_path / "a", edges=EDGES, features=features))
    labels = "id,label\n1,x\n2,y\n"
    message = r"labels\.csv: none of its nodes is in .*edges\.csv. Row 1 is about '1', but nodes there .* 'ann'.*--node"
    with pytest.raises(DatasetError, match=message):
        load(folder(tmp_path / "b", edges=EDGES, labels=labels))
    load(folder(tmp_path / "c", edges="1,2\n2,3\n4,3\n", features=features))
    message = r"nodes without a row in .*features\.csv: 2, the first being '3' in row 2, column 'target'"
    assert re.search(message, caplog.text)
    caplog.clear()
    load(folder(tmp_path / "d", edges="1,2\n", features=features, labels="id,label\n1,x\n7,y\n"))
    message = r"labels\.csv: nodes without a row in .* or .*: 1, the first being '7' in row 2, column 'id'. Nothing"
    assert re.search(message, caplog.text)
