"""Files of graphs that somebody made to do harm.

Each function makes the files of one attack in an empty directory and returns what reads them.
"""

import io
import json
import pickle
import stat
import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from cagat import data
from cagat.data.planetoid import read_array_pickle, read_planetoid
from fault_kinds.attack import HUGE, MAY_BE_READ, ZEROS, Bomb, Reading, attacks, put_zeros
from fault_kinds.hostile_structures import STRUCTURES


def npy_bytes(descr: str, shape: tuple[int, ...], content: bytes) -> bytes:
    """An array as a file, whatever its header says."""
    head = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + content


def archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    """A zip archive with just these members."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def graph_members(**others: bytes) -> dict[str, bytes]:
    """The members of a graph of three nodes, some of them replaced."""
    arrays = {
        "adj_indices": np.array([1, 0, 2, 1]),
        "adj_indptr": np.array([0, 1, 3, 4]),
        "adj_shape": np.array([3, 3]),
        "labels": np.array([0, 1, -1]),
    }
    members = {}
    for key, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array)
        members[f"{key}.npy"] = buffer.getvalue()
    return members | {f"{key}.npy": content for key, content in others.items()}


def object_array_in_npz(folder: Path) -> Reading:
    """An array of objects, which only unpickling could read."""
    labels = npy_bytes("|O", (3,), pickle.dumps([Bomb(folder / "executed")] * 3))
    path = archive(folder / "g.npz", graph_members(labels=labels))
    return lambda: data.load(path)


def pickle_called_npz(folder: Path) -> Reading:
    """A pickle that is called .npz."""
    path = folder / "g.npz"
    path.write_bytes(pickle.dumps(Bomb(folder / "executed")))
    return lambda: data.load(path)


def structured_array_in_npz(folder: Path) -> Reading:
    """An array of records, one field of which holds objects."""
    head = "{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }"
    head += " " * (117 - len(head)) + "\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + pickle.dumps(Bomb(folder / "executed"))
    path = archive(folder / "g.npz", graph_members(labels=content))
    return lambda: data.load(path)


def planetoid_with_code(folder: Path) -> Reading:
    """A Planetoid file that calls a function."""
    path = folder / "ind.evil.allx"
    path.write_bytes(pickle.dumps(Bomb(folder / "executed"), protocol=2))
    return lambda: read_array_pickle(path)


def planetoid_folder_with_code(folder: Path) -> Reading:
    """A whole Planetoid graph that calls functions."""
    for part in ("x", "y", "tx", "ty", "allx", "ally", "graph"):
        (folder / f"ind.evil.{part}").write_bytes(pickle.dumps(Bomb(folder / "executed"), protocol=2))
    (folder / "ind.evil.test.index").write_text("1\n")
    return lambda: read_planetoid(folder, "evil")


def planetoid_that_grows(folder: Path) -> Reading:
    """A pickle that doubles a list again and again by naming it twice."""
    path = folder / "ind.evil.graph"
    path.write_bytes(b"\x80\x02]q\x00" + b"(h\x00h\x00h\x00h\x00e" * 30_000 + b".")
    return lambda: read_array_pickle(path)


def parquet_bomb(folder: Path) -> Reading:
    """A small Parquet file of very many equal rows."""
    path, rows = folder / "edges.parquet", 5_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int32)), pa.array(["a"]))
    table = pa.table({"source": column, "target": column})
    with pyarrow.parquet.ParquetWriter(path, table.schema) as writer:
        for _ in range(16):
            writer.write_table(table, row_group_size=rows)
    return lambda: data.load(folder)


def zip_bomb(folder: Path) -> Reading:
    """A small archive that unpacks to two gigabytes."""
    path = folder / "g.npz"
    with zipfile.ZipFile(path, "w") as file:
        for name, content in graph_members().items():
            file.writestr(name, content)
        count = 2 * HUGE // ZEROS
        put_zeros(file, "attr_matrix.npy", npy_bytes("<f4", (3, count * ZEROS // 12), b""), count)
    return lambda: data.load(path)


def parquet_with_long_texts(folder: Path) -> Reading:
    """A small Parquet file whose texts unpack to more than half a gigabyte."""
    names = [f"{number}" + "a" * 2**20 for number in range(30)]
    _parquet(folder / "edges.parquet", names, 10, compression="zstd", use_dictionary=False)
    return lambda: data.load(folder)


def parquet_with_a_long_name_in_every_row(folder: Path) -> Reading:
    """A small Parquet file that would be three gigabytes if every row had its own copy of the name."""
    _parquet(folder / "edges.parquet", ["a" * 2**20] * 75, 20)
    data.load("karate")  # So that what reading a graph imports is not counted.
    return lambda: data.load(folder)


def _parquet(path: Path, names: list[str], count: int, **options: object) -> None:
    """Edges between equal nodes, and all of them so many times again, by and by, so that making it takes no memory."""
    column = pa.array(names, pa.large_string())
    table = pa.table({"source": column, "target": column})
    with pyarrow.parquet.ParquetWriter(path, table.schema, **options) as writer:
        for _ in range(count):
            writer.write_table(table)


def zip_slip(folder: Path) -> Reading:
    """A graph in an archive with more members, which would be unpacked elsewhere."""
    elsewhere = ("../escaped.npy", "../../escaped.npy", f"{folder.parent}/absolute.npy", "../../adj_indptr.npy")
    path = archive(folder / "g.npz", graph_members() | dict.fromkeys(elsewhere, b"x"))
    data.load("karate")  # So that what reading a graph imports is not counted.
    return lambda: data.load(path)


def names_that_are_half_characters(folder: Path) -> Reading:
    """Names that could be computed with, but never be written."""
    names = np.array(["a", "b", "\ud800"])
    path = archive(folder / "g.npz", graph_members(node_names=npy_bytes("<U1", (3,), names.tobytes())))
    return lambda: data.load(path)


def names_that_are_no_characters(folder: Path) -> Reading:
    """Names of codes beyond the last character, on which Python itself fails."""
    codes = np.array([97, 98, 0x110000], dtype="<u4")
    path = archive(folder / "g.npz", graph_members(node_names=npy_bytes("<U1", (3,), codes.tobytes())))
    return lambda: data.load(path)


def symlink_in_zip(folder: Path) -> Reading:
    """An archive whose member is a link to a file of the system."""
    path = folder / "g.npz"
    with zipfile.ZipFile(path, "w") as file:
        for name, content in graph_members().items():
            file.writestr(name, content)
        link = zipfile.ZipInfo("attr_matrix.npy")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        file.writestr(link, "/etc/passwd")
    return lambda: data.load(path)


def huge_shape_in_npy(folder: Path) -> Reading:
    """An array that says it has very many numbers, and has eight."""
    path = archive(folder / "g.npz", graph_members(labels=npy_bytes("<i8", (10**15,), bytes(64))))
    return lambda: data.load(path)


def overflowing_shape_in_npy(folder: Path) -> Reading:
    """An array whose size in bytes is 0 modulo 2**64."""
    path = archive(folder / "g.npz", graph_members(labels=npy_bytes("<i8", (2**32, 2**32), bytes(64))))
    return lambda: data.load(path)


def negative_shape_in_npy(folder: Path) -> Reading:
    """An array of -1 numbers."""
    path = archive(folder / "g.npz", graph_members(labels=npy_bytes("<i8", (-1,), bytes(64))))
    return lambda: data.load(path)


def huge_header_in_npy(folder: Path) -> Reading:
    """An array whose header is a very long expression."""
    head = b"{'descr': '<i8', 'fortran_order': False, 'shape': (" + b"(" * 60_000 + b"), }\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", min(len(head), 65535)) + head
    path = archive(folder / "g.npz", graph_members(labels=content))
    return lambda: data.load(path)


def huge_sparse_shape(folder: Path) -> Reading:
    """Three sparse features, in a matrix of 10**15 columns, asked for as dense."""
    arrays = {"attr_indices": [0, 1, 2], "attr_indptr": [0, 1, 2, 3], "attr_shape": [3, 10**15]}
    others = {key: npy_bytes("<i8", (len(value),), np.array(value).tobytes()) for key, value in arrays.items()}
    path = archive(folder / "g.npz", graph_members(**others))
    return lambda: data.load(path)


def huge_adjacency_shape(folder: Path) -> Reading:
    """A graph that says it has 10**15 nodes."""
    path = archive(folder / "g.npz", graph_members(adj_shape=npy_bytes("<i8", (2,), np.array([10**15] * 2).tobytes())))
    return lambda: data.load(path)


def huge_shape_in_safetensors(folder: Path) -> Reading:
    """A tensor that says it has very many numbers."""
    head = json.dumps({"labels": {"dtype": "I64", "shape": [10**15], "data_offsets": [0, 64]}}).encode()
    path = folder / "g.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(64))
    return lambda: data.load(path)


def huge_head_in_safetensors(folder: Path) -> Reading:
    """A head that says it has very many bytes."""
    path = folder / "g.safetensors"
    path.write_bytes(struct.pack("<Q", 2**62) + bytes(64))
    return lambda: data.load(path)


def csv_with_a_long_field(folder: Path) -> Reading:
    """A table with a field of a billion characters."""
    path = folder / "edges.csv"
    path.write_text("source,target\na,")
    with path.open("r+b") as stream:
        # The system stores the zeros between as a hole, so that the file costs no disk.
        stream.truncate(HUGE)
    return lambda: data.load(folder)


def csv_with_a_long_header(folder: Path) -> Reading:
    """A table whose first line has a billion characters."""
    path = folder / "edges.csv"
    with path.open("wb") as stream:
        stream.truncate(HUGE)
    return lambda: data.load(folder)


def csv_with_many_columns(folder: Path) -> Reading:
    """A table of a million columns, each with a name of its own and a number."""
    count = 1_000_000
    (folder / "edges.csv").write_text("source,target\na,b\n")
    names = ",".join(f"x{number}" for number in range(count))
    (folder / "features.csv").write_text(f"node,{names}\na{',1' * count}\n")
    return lambda: data.load(folder)


def csv_with_an_open_quote(folder: Path) -> Reading:
    """A quote that never ends."""
    (folder / "edges.csv").write_text('source,target\na,"' + "b\n" * 10_000_000)
    return lambda: data.load(folder)


GRAPHS = attacks(
    (object_array_in_npz, "Object arrays cannot be loaded .* would execute code"),
    (pickle_called_npz, "is damaged or cut short"),
    (structured_array_in_npz, "Object arrays cannot be loaded .* would execute code"),
    (planetoid_with_code, "it names .*system, .* nothing was executed"),
    (planetoid_folder_with_code, "it names .*system, .* nothing was executed"),
    (planetoid_that_grows, "holds a list that is no array"),
    (zip_bomb, "its arrays would unpack to"),
    (parquet_bomb, "80000000 rows of 2 columns would unpack to"),
    (parquet_with_long_texts, "300 rows of 2 columns would unpack to"),
    (parquet_with_a_long_name_in_every_row, MAY_BE_READ),
    (zip_slip, MAY_BE_READ),
    (names_that_are_half_characters, r"'\\ud800' of node 2"),
    (names_that_are_no_characters, "node_names holds .* codes that are no characters"),
    (symlink_in_zip, "the magic string is not correct"),
    (huge_shape_in_npy, "labels.npy.: cannot be read|not a readable .npz"),
    (overflowing_shape_in_npy, "labels.npy.: cannot be read|not a readable .npz"),
    (negative_shape_in_npy, "labels.npy.: cannot be read|not a readable .npz"),
    (huge_header_in_npy, r"Header info length \(60056\) is large"),
    (huge_sparse_shape, "3 x 1000000000000000 dense features would need"),
    (huge_adjacency_shape, r"does not fit a matrix of shape \(1000000000000000, "),
    (huge_shape_in_safetensors, "invalid shape, data type, or offset"),
    (huge_head_in_safetensors, "the header claims to have"),
    (csv_with_a_long_field, "straddles two block boundaries"),
    (csv_with_a_long_header, "field larger than field limit"),
    (csv_with_many_columns, "has 1000001 columns"),
    (csv_with_an_open_quote, "Expected 2 columns, got 1"),
)
# Those of runs among them are here, too, since they are made in the same ways.
GRAPHS |= STRUCTURES
