"""Features from tables of mixed columns."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from cagat.data.encoding import TableEncoder
from cagat.errors import DamagedFileError, DatasetError

ROWS = 120


def mixed_frame(rows=ROWS, seed=0):
    random = np.random.RandomState(seed)
    words = np.array(["cat", "dog", "house", "tree", "code", "music", "river"])
    return pd.DataFrame(
        {
            "age": np.where(random.rand(rows) < 0.2, np.nan, random.randint(18, 80, rows)),
            "income": random.lognormal(8, 2, rows),
            "country": random.choice(["de", "fr", "us"], rows),
            "city": [f"town {number}" for number in random.randint(0, 60, rows)],
            "joined": pd.Series(pd.date_range("2020-01-01", periods=rows)).where(random.rand(rows) > 0.1),
            "active": random.rand(rows) < 0.5,
            "bio": [" ".join(random.choice(words, 6)) for _ in range(rows)],
        }
    )


@pytest.fixture(scope="module")
def fitted():
    frame = mixed_frame()
    return frame, TableEncoder.fit(frame)


def test_every_kind_of_column(fitted):
    frame, encoder = fitted
    gaps = frame["age"].isna().sum(), frame["joined"].isna().sum()
    assert encoder.describe() == [
        f"age: number, {gaps[0]} gaps",
        "income: number",
        "country: category, 3 values, one-hot",
        f"city: category, {frame['city'].nunique()} values, 30 components",
        f"joined: date, 5 parts, {gaps[1]} gaps",
        "active: boolean",
        "bio: text, 30 components",
    ]
    x = encoder.transform(frame)
    assert x.dtype == np.float32
    assert x.shape == (ROWS, len(encoder.names))
    assert np.isfinite(x).all()
    named = dict(zip(encoder.names, x.T, strict=True))
    np.testing.assert_array_equal(named["age missing"], frame["age"].isna())
    np.testing.assert_array_equal(named["age"][frame["age"].isna()], 0)
    np.testing.assert_array_equal(named["country_fr"], frame["country"] == "fr")
    np.testing.assert_array_equal(named["active_true"], frame["active"])
    assert abs(np.median(named["income"])) < 0.01
    assert np.abs(named["income"]).max() <= 3
    np.testing.assert_array_equal(np.argsort(named["income"]), np.argsort(frame["income"]))


def test_texts_of_a_csv_are_encoded_as_typed_columns(fitted):
    frame, encoder = fitted
    texts = pd.read_csv(io.StringIO(frame.to_csv(index=False)), dtype=str)
    assert TableEncoder.fit(texts).kinds == encoder.kinds
    np.testing.assert_array_equal(encoder.transform(texts), encoder.transform(frame))


def test_what_is_stored_comes_back_the_same(fitted):
    frame, encoder = fitted
    content = encoder.to_bytes()
    again = TableEncoder.from_bytes(content)
    for key in ("names", "kinds", "digest"):
        assert getattr(again, key) == getattr(encoder, key)
    assert again.describe() == encoder.describe()
    np.testing.assert_array_equal(again.transform(frame), encoder.transform(frame))
    assert TableEncoder.fit(frame).digest == encoder.digest
    assert TableEncoder.fit(mixed_frame(seed=1)).digest != encoder.digest
    assert len(content) < 100_000


def test_a_row_is_encoded_alone_as_among_others(fitted):
    frame, encoder = fitted
    np.testing.assert_allclose(encoder.transform(frame.tail(3)), encoder.transform(frame)[-3:], rtol=1e-6, atol=1e-7)


def test_what_was_not_there_at_fitting_is_ignored_and_counted(fitted, caplog):
    frame, encoder = fitted
    new = frame.head(4).astype(object)
    new["country"] = ["xx", "yy", "xx", "de"]
    new["age"] = ["old", "5", "", None]
    new["bio"] = ["zzz qqq cat", "dog", None, "dog"]
    new["joined"] = ["2020-05-05", "then", None, "2020-05-06"]
    new["shoes"] = 1
    x = dict(zip(encoder.names, encoder.transform(new, what="new.csv").T, strict=True))
    assert [x[f"country_{name}"].tolist() for name in ("de", "fr", "us")] == [[0, 0, 0, 1], [0] * 4, [0] * 4]
    assert x["age missing"].tolist() == [1, 0, 1, 1]
    assert x["joined missing"].tolist() == [0, 1, 1, 0]
    assert caplog.messages == [
        "new.csv: ignored, because the model was trained without them: columns 'shoes'; 1 cell of 'age' with no "
        "number; 2 values of 'country' ('xx', 'yy'); 1 cell of 'joined' with no date; 2 words of 'bio'."
    ]


def test_columns_that_are_missing_are_all_named(fitted):
    frame, encoder = fitted
    with pytest.raises(DatasetError, match=r"columns are missing .* 'age', 'bio'"):
        encoder.transform(frame.drop(columns=["age", "bio"]))
    with pytest.raises(DatasetError, match=r"missing .* 'age'\. Add .*; column 'bio' holds a list in a cell"):
        encoder.transform(frame.drop(columns="age").assign(bio=[[1]] * len(frame)))


def test_all_problems_are_told_at_once():
    frame = pd.DataFrame({"a": [None, None], "b": [[1], [2]], "c": ["x", "2"], "d": ["a", "b"], "e": [1j, 2j]})
    with pytest.raises(DatasetError) as raised:
        TableEncoder.fit(frame, {"c": "number", "d": "date", "z": "text"}, what="nodes.csv")
    for told in (
        "nodes.csv: there is no column 'z'",
        "column 'a' holds nothing but gaps in its 2 rows",
        "column 'b' holds a list in a cell",
        "column 'c' is said to be a number, but row 1 holds 'x'",
        "column 'd' is said to hold dates, but row 1 holds 'a'",
        "column 'e' holds complex numbers",
    ):
        assert told in str(raised.value)


def test_tables_that_tell_nothing():
    with pytest.raises(DatasetError, match="no column is left"):
        TableEncoder.fit(pd.DataFrame({"a": [1, 2]}), {"a": "drop"})
    with pytest.raises(DatasetError, match="no column tells rows apart"):
        TableEncoder.fit(pd.DataFrame({"a": ["x", "x"], "b": [3, 3]}))
    with pytest.raises(DatasetError, match="pandas frame, but is a ndarray"):
        TableEncoder.fit(np.eye(2))


def test_kinds_that_are_given():
    frame = pd.DataFrame({"zip": [7, 7, 8, None], "year": ["1", "2", "3", "x"], "note": ["a b", "b", "c", "d"]})
    encoder = TableEncoder.fit(frame, {"zip": "category", "note": "text", "year": "drop"})
    assert encoder.describe()[0] == "zip: category, 2 values, one-hot, 1 gap"
    assert encoder.describe()[2] == "year: dropped"
    assert encoder.kinds == {"zip": "category", "note": "text"}
    assert encoder.names[:2] == ["zip_7", "zip_8"]


def test_dates_and_booleans_are_recognised():
    days = pd.DataFrame({"day": ["31.01.2020", "28.02.2020", "01.03.2020"], "flag": ["Y", "n", "y"]})
    encoder = TableEncoder.fit(days)
    assert encoder.kinds == {"day": "date", "flag": "boolean"}
    month = encoder.transform(days)[:, encoder.names.index("day_month")]
    assert month[0] < month[1] < month[2]
    zoned = pd.DataFrame({"day": pd.to_datetime(days["day"], format="%d.%m.%Y", utc=True), "flag": [True, False, True]})
    assert TableEncoder.fit(zoned).kinds == encoder.kinds
    np.testing.assert_array_equal(TableEncoder.fit(zoned).transform(zoned)[:, :5], encoder.transform(days)[:, :5])


def test_columns_of_other_types():
    frame = pd.DataFrame(
        {
            "length": pd.to_timedelta([1, 2, 3], unit="h"),
            "quarter": pd.period_range("2020Q1", periods=3, freq="Q"),
            "size": pd.Categorical(["s", "m", "s"]),
            "count": pd.array([1, None, 3], dtype="Int64"),
            "ok": pd.array([True, None, False], dtype="boolean"),
            5: [0.5, 0.25, 1],
        }
    )
    encoder = TableEncoder.fit(frame)
    kinds = ["number", "date", "category", "number", "boolean", "number"]
    assert encoder.kinds == dict(zip(map(str, frame.columns), kinds, strict=True))
    assert np.isfinite(encoder.transform(frame)).all()


def test_a_column_of_numbers_with_a_stray_text_is_told_of(caplog):
    frame = pd.DataFrame({"size": [*map(str, range(50)), "12a"]})
    assert TableEncoder.fit(frame).kinds == {"size": "text"}
    assert "column 'size': row 51 holds '12a', which is no number, as all but 1 of its cells are" in caplog.text


@pytest.mark.parametrize("kind", ["cut", "empty", "other", "hostile"])
def test_files_that_are_no_encoder(fitted, kind):
    import skops.io

    content = {
        "cut": fitted[1].to_bytes()[:-100],
        "empty": b"",
        "other": skops.io.dumps({"names": []}),
        "hostile": skops.io.dumps({"names": subprocess.run}),
    }[kind]
    with pytest.raises(DamagedFileError, match=r"encoder\.skops: is no encoder that this version can read"):
        TableEncoder.from_bytes(content)


def test_a_small_file_that_unpacks_to_very_much(fitted, monkeypatch):
    monkeypatch.setattr("cagat.data.validation._BOMB_BYTES", 2**20)
    stream = io.BytesIO(fitted[1].to_bytes())
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros.npy", bytes(2**25))
    with pytest.raises(DamagedFileError, match="would unpack to"):
        TableEncoder.from_bytes(stream.getvalue())


def test_nothing_heavy_is_imported_before_it_is_needed():
    program = (
        "import sys, cagat.data.encoding, cagat.data.loading; print({'skrub', 'skops', 'pandas'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"
