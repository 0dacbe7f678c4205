import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch

from cagat.training.evidence import Evidence
from cagat.training.predictions import Predictions, unguarded, without_formulas, write_table


@pytest.mark.parametrize("text", ["=1+1", "+cmd|x", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "%0A=1", "|x"])
def test_what_a_spreadsheet_would_compute_is_marked(text):
    table, changed = without_formulas(pa.table({"node": [text, "a"], "x": [1.0, 2.0]}))
    assert table["node"].to_pylist() == [f"'{text}", "a"]
    assert changed == 1


@pytest.mark.parametrize("text", ["a=1", "-1", "+3.5", "-1e-5", "", "é", "a-b", None])
def test_other_texts_stay(text):
    table, changed = without_formulas(pa.table({"node": pa.array([text], pa.string())}))
    assert table["node"].to_pylist() == [text]
    assert changed == 0


def test_names_of_columns_are_marked():
    assert without_formulas(pa.table({"=a": [1.0]}))[0].column_names == ["'=a"]


def test_csv_is_marked_and_told_and_parquet_is_exact(tmp_path, caplog):
    table = pa.table({"node": ["=1", "b"]})
    write_table(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[1] == '"\'=1"'
    assert "1 names begin as formulas" in caplog.text
    write_table(table, tmp_path / "t.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet") == table


@pytest.mark.parametrize("text", ["=1+1", "-1", "a", "'a", "", "+3.5", "@x"])
def test_marks_can_be_taken_back(text):
    table, _ = without_formulas(pa.table({"node": [text]}))
    assert unguarded(table["node"][0].as_py()) == text


def test_confidence_and_because_come_last_and_are_marked(tmp_path):
    shares = torch.tensor([[0.9, 0.1], [0.3, 0.7]], dtype=torch.float64)
    evidence = Evidence(torch.tensor([[0, 1, -1], [-1, -1, -1]]), torch.tensor([[0.31, 0.04, 0], [0, 0, 0]]))
    predictions = Predictions(["=x", "b"], ["no", "yes"], shares, ["train", ""], evidence)
    predictions.write(tmp_path / "p.csv")
    table = pyarrow.csv.read_csv(tmp_path / "p.csv")
    assert table.column_names == [
        "node", "predicted", "probability_no", "probability_yes", "split", "confidence", "because",
    ]  # fmt: skip
    assert table["confidence"].to_pylist() == [0.9, 0.7]
    assert table["because"].to_pylist() == ["'=x 31 %; b 4.0 %", ""]
    assert Predictions(["a"], ["no", "yes"], shares[:1], [""]).table()["because"].to_pylist() == [""]
