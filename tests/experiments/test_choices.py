import csv
import pickle
import sys
from dataclasses import replace

import pytest

from cagat import data
from cagat.cli import main
from cagat.experiments.choices import MULTIPLES, ChosenJob, cached_space, fit_on
from cagat.experiments.experiment import Row, suggest
from cagat.experiments.jobs import Job, JobStore, Task
from cagat.suggestions import STRATEGIES

GRAPH = "synthetic:nodes=120,degree=6,classes=3,features=16,seed=0"
CHANGES = (("val_labels", 0), ("fixed_epochs", 2), ("hidden", 4))


def job(strategy: str, labels: int, seed: int = 100) -> ChosenJob:
    return ChosenJob("gcn", "ref", Task(GRAPH, labels, seed), CHANGES, strategy=strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_job_labels_what_its_strategy_chooses_and_tests_on_the_rest(strategy):
    one = job(strategy, 2)
    fitted = one.fit(None)
    train, val, test = fitted.split
    assert (len(train), len(val), len(test)) == (6, 0, 114)
    assert not set(train.tolist()) & set(test.tolist())
    assert one.scores(fitted)["labelled"] == 6
    assert 0 <= one.run(None)["test_accuracy"] <= 1


def test_a_strategy_that_asks_a_model_chooses_in_stages(monkeypatch):
    asked = []

    def spy(space, n, *, probabilities, labelled, **further):
        from cagat.suggestions.suggest import suggest_in

        asked.append((n, len(labelled), probabilities is not None))
        return suggest_in(space, n, probabilities=probabilities, labelled=labelled, **further)

    monkeypatch.setattr("cagat.experiments.choices.suggest_in", spy)
    job("age", 5).fit(None)
    assert asked == [(3, 0, False), (3, 3, True), (9, 6, True)]
    asked.clear()
    job("coverage", 5).fit(None)
    assert asked == [(15, 0, False)]


def test_jobs_differ_by_strategy_and_from_jobs_on_splits(tmp_path):
    ours, other = job("coverage", 2), job("random", 2)
    plain = Job("gcn", "ref", Task(GRAPH, 2, 100), CHANGES)
    store = JobStore(tmp_path, "suggest")
    store.records.add(ours.asked, {"test_accuracy": 0.5, "seconds": 1, "labelled": 6})
    assert store.found(ours) is not None
    assert store.found(other) is None
    assert store.found(plain) is None
    assert pickle.loads(pickle.dumps(ours)) == ours


def test_nothing_is_drawn_from_the_chosen_nodes():
    fitted = fit_on([5, 3], {"model": "gcn", **dict(CHANGES)}, Task(GRAPH, 1, 100), None)
    assert fitted.split.train.tolist() == [3, 5]
    assert cached_space(GRAPH, None) is cached_space(GRAPH, None)


def test_the_experiment():
    experiment = suggest()
    assert {row.strategy for row in experiment.rows if row.method == "cagat"} == set(STRATEGIES)
    for model in ("gcn", "appnp"):
        assert {row.strategy for row in experiment.rows if row.method == model} == {"coverage", "random", "grain"}
    assert experiment.labels == MULTIPLES
    assert list(experiment.seeds("cora", experiment.rows[0])) == list(range(10, 20))
    assert list(experiment.seeds("pubmed", experiment.rows[0])) == list(range(10, 15))
    part = experiment.restricted(["cora"], ["gcn"], [2], 2)
    assert {one.task.seed for one in part.jobs()} == {10, 11}
    assert all(dict(one.changes)["val_labels"] == 0 for one in part.jobs())


def test_the_command_writes_its_table_and_a_picture(tmp_path, monkeypatch, capsys):
    rows = tuple(Row("gcn", "ref", CHANGES, strategy=strategy) for strategy in ("coverage", "random"))
    rows += (Row("cagat", "tuned", (*CHANGES, ("heads", 1)), strategy="coverage"),)
    small = replace(suggest(), rows=rows, datasets=(GRAPH,), first_seed=100)
    monkeypatch.setattr("cagat.experiments.experiment.suggest", lambda: small)
    monkeypatch.setitem(sys.modules["cagat.experiments.experiment"].EXPERIMENTS, "suggest", lambda: small)
    store = JobStore(tmp_path, "suggest")
    for one in small.restricted(labels=[1, 2], splits=2).jobs():
        store.records.add(one.asked, {"test_accuracy": 0.5, "seconds": 1, "labelled": 3 * one.task.labels})
    monkeypatch.setattr(ChosenJob, "run", lambda self, data_dir: pytest.fail("nothing is left to do"))
    monkeypatch.setattr(
        sys, "argv", ["cagat", "reproduce", "suggest", "--labels", "1", "2", "--seeds", "2", "--out", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    with (tmp_path / "suggest.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ["strategy", "model", "dataset", "labels", "mean", "std", "n"]
    assert [(one["strategy"], one["model"], one["labels"], one["n"]) for one in lines][:3] == [
        ("coverage", "gcn", "3", "2"),
        ("coverage", "gcn", "6", "2"),
        ("random", "gcn", "3", "2"),
    ]
    assert (tmp_path / "suggest.png").stat().st_size > 0
    text = (tmp_path / "suggest.md").read_text()
    assert "from seed 100 on" in text
    assert f"{GRAPH}, 6 labels" in text, "in all, not per class"


@pytest.mark.parametrize(
    ("labelled", "labels", "message"),
    [(100, 1, "20 of 120 nodes have no label"), (120, 40, "of 120 nodes 120 would be chosen")],
)
def test_a_graph_that_strategies_cannot_be_compared_on_is_refused_at_once(
    tmp_path, monkeypatch, capsys, labelled, labels, message
):
    graph = data.load(GRAPH)
    graph.y[labelled:] = -1
    data.save(graph, tmp_path / "mine.npz")
    words = ["reproduce", "suggest", "--datasets", tmp_path / "mine.npz", "--labels", labels, "--out", tmp_path / "out"]
    monkeypatch.setattr(sys, "argv", ["cagat", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert f"mine: {message}" in capsys.readouterr().err.replace(" with --labels 40", "")
    assert not (tmp_path / "out").exists()
