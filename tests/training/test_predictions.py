import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from cagat.training.predictions import without_formulas, write_table


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
