"""The example with all kinds of columns: from the command line, from pandas, and with new rows."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from cagat import CaGATClassifier, data
from cagat.cli import app

EXAMPLE = Path(__file__).parents[2] / "examples" / "mixed-table"
TABLES = ("edges.csv", "nodes.csv", "target.csv")


def cagat(*arguments, code=0):
    threads = torch.get_num_threads()
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    torch.set_num_threads(threads)
    assert done.exit_code == code, (done.output, done.exception)
    return done.output


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("mixed") / "run"
    cagat("train", "--dataset", EXAMPLE, "--epochs", "20", "--no-baselines", "--out", out, "--json")
    return out


def test_the_example_is_what_its_script_makes(tmp_path):
    shutil.copy(EXAMPLE / "make.py", tmp_path)
    subprocess.run([sys.executable, tmp_path / "make.py"], check=True)
    for table in TABLES:
        assert (tmp_path / table).read_bytes() == (EXAMPLE / table).read_bytes()


def test_info_says_what_becomes_of_each_column():
    said = cagat("data", "info", EXAMPLE)
    assert "columns      pages: number, 40 gaps\n             language: category, 3 values, one-hot\n" in said
    assert "shelf: dropped" in said
    assert (
        json.loads(cagat("data", "info", EXAMPLE, "--json"))["columns"]
        == [line.removeprefix("columns").strip() for line in said.splitlines()][-7:]
    )


def test_it_trains_and_predicts_without_any_option(run, tmp_path):
    assert (run / "encoder.skops").exists()
    cagat("predict", run, "--out", tmp_path / "genres.csv")
    found = pd.read_csv(tmp_path / "genres.csv")
    known = pd.read_csv(EXAMPLE / "target.csv").set_index("id")["target"]
    assert len(found) == 240
    right = found.set_index("node")["predicted"].loc[known.index] == known
    assert right.mean() > 0.6


def test_pandas_frames_give_the_same_features():
    edges, nodes, target = (pd.read_csv(EXAMPLE / table) for table in TABLES)
    graph = data.from_frames(edges, nodes, target, columns={"publisher": "category", "shelf": "drop"})
    expected = data.load(EXAMPLE)
    assert torch.equal(graph.x, expected.x)
    assert torch.equal(graph.y, expected.y)
    assert graph.encoder.describe() == expected.encoder.describe()
    # Where pandas has other types than texts.
    nodes["published"] = pd.to_datetime(nodes["published"])
    nodes["pages"] = nodes["pages"].astype("Int64")
    nodes["language"] = nodes["language"].astype("category")
    graph = data.from_frames(edges, nodes, target, columns={"publisher": "category", "shelf": "drop"})
    torch.testing.assert_close(graph.x, expected.x)


def test_the_classifier_is_trained_on_the_same_frames():
    edges, nodes, target = (pd.read_csv(EXAMPLE / table) for table in TABLES)
    number = {book: place for place, book in enumerate(nodes["id"])}
    genres = nodes["id"].map(dict(target.to_numpy()))  # NaN for books without a genre.
    classifier = CaGATClassifier(epochs=20, random_state=0, columns={"publisher": "category", "shelf": "drop"})
    ends = np.array([edges[end].map(number) for end in edges])
    classifier.fit(nodes.drop(columns="id"), genres, graph=np.concatenate([ends, ends[::-1]], axis=1))
    assert classifier.encoder_.describe() == data.load(EXAMPLE).encoder.describe()
    assert (classifier.transduction_ == genres)[genres.notna()].mean() > 0.6


def bigger(folder, *, only_new):
    """The example with two books more, or only these and the edges that attach them."""
    folder.mkdir()
    nodes, edges = pd.read_csv(EXAMPLE / "nodes.csv", dtype=str), pd.read_csv(EXAMPLE / "edges.csv")
    new = nodes.iloc[:2].assign(id=["new-1", "new-2"], language=["xx", "de"], cover=["zzyzx alibi", None])
    more = pd.DataFrame({"id_1": ["new-1", "new-1", "new-2"], "id_2": ["book-003", "book-010", "new-1"]})
    (new if only_new else pd.concat([nodes, new])).to_csv(folder / "nodes.csv", index=False)
    (more if only_new else pd.concat([edges, more])).to_csv(folder / "edges.csv", index=False)
    return folder


def test_new_rows_alone_are_labelled_as_in_the_bigger_graph(run, tmp_path):
    found = {}
    for only_new in (False, True):
        out = tmp_path / f"{only_new}.csv"
        folder = bigger(tmp_path / f"graph-{only_new}", only_new=only_new)
        said = cagat("predict", run, "--dataset", folder, "--out", out)
        assert "1 value of 'language' ('xx'); 1 word of 'cover'" in said
        found[only_new] = pd.read_csv(out)
    pd.testing.assert_frame_equal(found[False], found[True])
    assert found[True]["node"].tolist()[-2:] == ["new-1", "new-2"]


def test_a_missing_column_is_named(run, tmp_path):
    folder = bigger(tmp_path / "graph", only_new=True)
    pd.read_csv(folder / "nodes.csv").drop(columns=["pages", "cover"]).to_csv(folder / "nodes.csv", index=False)
    done = CliRunner().invoke(app, ["predict", str(run), "--dataset", str(folder), "--out", str(tmp_path / "p.csv")])
    assert "missing that the model was trained with: 'pages', 'cover'" in str(done.exception)
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize(("change", "said"), [("missing", "is missing"), ("other", "is from another run")])
def test_an_encoder_from_another_run_is_refused(run, tmp_path, change, said):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "encoder.skops").unlink()
    if change == "other":
        other = data.from_frames(*(pd.read_csv(EXAMPLE / table) for table in TABLES)).encoder
        (copy / "encoder.skops").write_bytes(other.to_bytes())
    done = CliRunner().invoke(app, ["predict", str(copy), "--out", str(tmp_path / "p.csv")])
    assert f"encoder.skops: {said}" in str(done.exception)


def test_a_resumed_run_keeps_its_encoder(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    before = (copy / "encoder.skops").read_bytes()
    cagat("train", "--resume", copy, "--epochs", "21", "--json")
    assert (copy / "encoder.skops").read_bytes() == before
