import json

import warm_starts


def test_it_measures_and_compares(tmp_path, capsys, monkeypatch):
    epochs = {"fixed_epochs": 2}
    config = warm_starts.TrainConfig.from_values
    monkeypatch.setattr(warm_starts.TrainConfig, "from_values", lambda values: config(values | epochs))
    for seed in (100, 101):
        warm_starts.measure("synthetic:nodes=90,degree=4,classes=3,features=8,seed=0", seed, None)
    said = capsys.readouterr().out
    lines = [json.loads(line) for line in said.splitlines()]
    assert [line["labels"] for line in lines] == [6, 9, 12, 15] * 4
    assert all(0 <= line[key] <= 1 for line in lines for key in ("accuracy", "confidence", "calibration_error"))
    path = tmp_path / "lines.jsonl"
    path.write_text(said)
    head, _, anew, last = warm_starts.table(path).strip().splitlines()
    assert "difference (paired)" in head
    assert "| anew |" in anew
    assert "[" in last, "an interval"
