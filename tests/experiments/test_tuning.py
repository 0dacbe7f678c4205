import csv
import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import yaml

from cagat import data
from cagat.cli.tune import tune
from cagat.errors import CagatError, ConfigError
from cagat.experiments import jobs as scoring
from cagat.experiments import search_report, tuning, workers
from cagat.experiments.search_report import write_report
from cagat.experiments.tuning import Search, TuneOptions, read_trials, search_space
from cagat.training import TrainConfig

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
RESULTS = Path(__file__).parents[2] / "results" / "tuning"


@pytest.fixture(autouse=True, scope="module")
def in_process():
    """Fits in a thread: a process takes seconds to start. `test_the_command` has real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "ProcessPoolExecutor", lambda *options: ThreadPoolExecutor(1))
        yield


def options(out, **changes) -> TuneOptions:
    values = {"model": "cagat", "datasets": (GRAPH,), "labels": (5,), "val_labels": None, "splits": 2}
    values |= {"first_seed": 100, "trials": 3, "epochs": 5, "patience": 100, "jobs": 1, "seed": 0}
    values |= {"space": None, "finalists": None, "data_dir": None, "given": {}}
    return TuneOptions(out=out, **values | changes)


def run(search: Search) -> int:
    trials = []
    search.run(lambda done, total: None, lambda: trials.append(1))
    return len(trials)


def asked(out) -> list[dict]:
    return [json.loads(line)["asked"] for line in (out / "fits.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Search:
    search = Search.open(options(tmp_path_factory.mktemp("tune")))
    assert run(search) == 3
    write_report(search)
    return search


def test_the_preset_is_tried_first(found):
    preset = TrainConfig.from_values({"preset": "paper"})
    first = found.study.trials[0].params
    assert {key: getattr(preset, key) for key in first} == first


def test_finalists_are_judged_again(found, tmp_path):
    again = {"finalists": found.options.out, "trials": 2, "splits": 3, "first_seed": 102}
    search = Search.open(options(tmp_path / "final", **again))
    assert run(search) == 2
    # None of which the search has seen.
    assert {one["seed"] for one in asked(search.options.out)} == {102, 103, 104}
    complete = [trial for trial in found.study.trials if trial.value is not None]
    ranked = sorted(complete, key=lambda trial: trial.value, reverse=True)
    assert [trial.params for trial in search.study.trials] == [trial.params for trial in ranked[:2]]
    assert all(len(trial.intermediate_values) == 3 for trial in search.study.trials)
    with pytest.raises(ConfigError, match=f"only {len(complete)} trials did all their fits"):
        Search.open(options(tmp_path / "more", finalists=found.options.out, trials=4))
    with pytest.raises(ConfigError, match="holds no search"):
        Search.open(options(tmp_path / "none", finalists=tmp_path))


def test_finalists_keep_all_that_their_search_varied(tmp_path):
    space = tmp_path / "space.yaml"
    space.write_text("objective: {choices: [consistent]}\nsamples: {choices: [3]}\nalpha: {low: 0.1, high: 0.3}\n")
    searched = options(tmp_path / "search", space=space, trials=1, splits=1)
    run(Search.open(searched))
    final = Search.open(options(tmp_path / "final", finalists=searched.out, trials=1, splits=1, first_seed=103))
    run(final)
    (tried,) = read_trials(final.options.out)
    assert tried.params == read_trials(searched.out)[0].params
    assert (tried.params["samples"], tried.params["objective"]) == (3, "consistent")
    with pytest.raises(ConfigError, match=r"holds a search for cagat, not gat\. Use --model cagat"):
        Search.open(options(tmp_path / "other", model="gat", finalists=searched.out, trials=1))
    (searched.out / "search.json").write_text("[]")
    with pytest.raises(CagatError, match=r"search\.json: cannot be read.*--space"):
        Search.open(options(tmp_path / "damaged", finalists=searched.out, trials=1))


def test_splits_are_those_no_table_reports(found):
    assert {one["seed"] for one in asked(found.options.out)} == {100, 101}


def test_the_best_has_the_highest_mean_and_can_be_trained(found):
    out, best = found.options.out, found.best()
    assert best.value == max(trial.value for trial in found.study.trials if trial.value is not None)
    text = (out / "best.yaml").read_text()
    assert "seeds 100 to 101" in text
    assert TrainConfig.from_values(yaml.safe_load(text)).values().items() >= best.params.items()
    rows = list(csv.DictReader((out / "trials.csv").open()))
    assert [row["trial"] for row in rows] == ["0", "1", "2"]
    assert (out / "search.png").read_bytes().startswith(b"\x89PNG")


def test_a_score_is_that_of_the_validation_nodes(found):
    line = json.loads((found.options.out / "fits.jsonl").read_text().splitlines()[0])
    values = dict(line["asked"])
    del values["graph"]
    task = scoring.Task(values.pop("dataset"), values.pop("labels"), values.pop("seed"))
    assert scoring.validation_scores(values, task, None) == line["found"]


def test_no_test_label_is_read(monkeypatch):
    values, task = {"epochs": 4}, scoring.Task(GRAPH, 5, 100)
    scoring.cached_graph.cache_clear()
    expected = scoring.validation_scores(values, task, None)
    graph = scoring.cached_graph(GRAPH, None, ())
    split = data.split(graph.y, 5, 20, 100)
    monkeypatch.setattr(data, "split", lambda *arguments, **rest: split)
    graph.y[split.test] = (graph.y[split.test] + 1) % 3
    assert scoring.validation_scores(values, task, None) == expected
    scoring.cached_graph.cache_clear()


def own_graph(path, **parts) -> str:
    """A graph of one's own in a file, perhaps with a split."""
    graph = data.load(GRAPH)
    for part, nodes in parts.items():
        mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
        graph[f"{part}_mask"] = mask.index_fill(0, torch.as_tensor(nodes), True)
    data.save(graph, path)
    return str(path)


@pytest.fixture
def nodes_seen(monkeypatch) -> list[tuple[set[int], set[int]]]:
    """The training and the validation nodes of every fit."""
    seen, fit = [], scoring.fit

    def noting(model, inputs, train, val, options):
        seen.append((set(train.nodes.tolist()), set(val.nodes.tolist())))
        return fit(model, inputs, train, val, options)

    monkeypatch.setattr(scoring, "fit", noting)
    return seen


@pytest.fixture
def no_picture(monkeypatch):
    """A report without its picture, which takes longer than the search."""
    monkeypatch.setattr(search_report, "_draw", lambda *_: None)


THIRDS = {part: list(range(start, 90, 3)) for start, part in enumerate(("train", "val", "test"))}


@pytest.mark.usefixtures("no_picture")
@pytest.mark.parametrize(
    "asked_for", [{"labels": (5,)}, {"labels": (5,), "val_labels": 5}, {"val_labels": 5}, {}], ids=str
)
def test_a_given_split_is_respected(tmp_path, nodes_seen, asked_for):
    path = own_graph(tmp_path / "mine.npz", **THIRDS)
    chosen = {"datasets": (path,), "labels": (None,), "trials": 1} | asked_for
    search = Search.open(options(tmp_path / "out", **chosen))
    run(search)
    assert len(nodes_seen) == 2
    for train, val in nodes_seen:
        assert not train & val
        assert not (train | val) & set(THIRDS["test"])
        if not asked_for:
            assert (train, val) == (set(THIRDS["train"]), set(THIRDS["val"]))
    if asked_for.get("labels"):
        assert {len(train) for train, _ in nodes_seen} == {15}
        assert nodes_seen[0] != nodes_seen[1]
    write_report(search)
    best = (tmp_path / "out" / "best.yaml").read_text()
    assert "30 test nodes take no part" in best.replace("\n# ", " ")
    # Trained from there, the split is the graph's own again.
    assert not {"labels", "val_labels"} & yaml.safe_load(best).keys()


def test_of_ones_own_graph_all_labelled_nodes_take_part(tmp_path, nodes_seen):
    graph = data.load(GRAPH)
    graph.y[::2] = -1
    data.save(graph, tmp_path / "mine.npz")
    chosen = {"datasets": (str(tmp_path / "mine.npz"),), "labels": (None,), "trials": 1}
    search = Search.open(options(tmp_path / "out", **chosen))
    run(search)
    labelled = set((graph.y >= 0).nonzero().flatten().tolist())
    assert all(train | val == labelled and not train & val for train, val in nodes_seen)
    assert [len(val) for _, val in nodes_seen] == [12, 12]
    assert nodes_seen[0] != nodes_seen[1]
    (sentence,) = search.options.nodes_used()
    assert (
        "33 nodes train and 12 validate in each of 2 splits, drawn from 45 labelled nodes, which all take" in sentence
    )
    assert asked(tmp_path / "out")[0]["labels"] is None
    run(Search.open(options(tmp_path / "more", **chosen, val_labels=2)))
    assert {len(val) for _, val in nodes_seen[2:]} == {6}
    with pytest.raises(ConfigError, match="holds a search with val_labels=2, not None"):
        Search.open(options(tmp_path / "more", **chosen))


@pytest.mark.usefixtures("no_picture")
def test_columns_and_class_weights_are_passed_on(tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "edges.csv").write_text("from,to\n" + "".join(f"n{i},n{(i + 1) % 40}\n" for i in range(40)))
    rows = "".join(f"n{i},{i % 7},{'rare' if i % 5 == 0 else 'common'}\n" for i in range(40))
    (folder / "labels.csv").write_text("who,number,kind\n" + rows)
    given = {"source": "from", "target": "to", "node": "who", "label": "kind"}
    weights, fit = [], scoring.fit

    def noting(model, inputs, train, *rest):
        weights.append(train.class_weight)
        return fit(model, inputs, train, *rest)

    monkeypatch.setattr(scoring, "fit", noting)
    chosen = {"datasets": (str(folder),), "labels": (None,), "trials": 1, "splits": 1}
    search = Search.open(options(tmp_path / "out", **chosen, given=given))
    run(search)
    run(Search.open(options(tmp_path / "none", **chosen, given=given | {"class_weight": "none"})))
    assert weights[0][1] == 4 * weights[0][0]
    assert weights[1] is None
    write_report(search)
    assert yaml.safe_load((tmp_path / "out" / "best.yaml").read_text()).items() >= given.items()


def test_a_graph_with_a_name_is_searched_by_the_papers_protocol(tmp_path):
    searched = options(tmp_path, datasets=("cora", "pubmed"), labels=(None,)).searched()
    assert searched == [("cora", 20), ("pubmed", 20)]
    searched = options(tmp_path, datasets=("cora", "./cora"), labels=(None,)).searched()
    assert searched == [("cora", 20), ("./cora", None)]


def test_an_interrupted_search_ends_as_an_unbroken_one(tmp_path):
    space = tmp_path / "space.yaml"
    space.write_text("lam: {low: 0.1, high: 1.0}\nhidden: {choices: [4, 8]}\n")
    unbroken = Search.open(options(tmp_path / "unbroken", space=space, trials=4))
    run(unbroken)
    fits = []

    def interrupt(done, total):
        fits.append(done)
        if len(fits) == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Search.open(options(tmp_path / "broken", space=space, trials=4)).run(interrupt, lambda: None)
    again = Search.open(options(tmp_path / "broken", space=space, trials=4))
    assert again.finished == 3
    assert [trial.intermediate_values for trial in again.study.trials] == [
        trial.intermediate_values for trial in unbroken.study.trials[:3]
    ]
    run(again)
    assert (tmp_path / "broken" / "trials.csv").read_text() == (tmp_path / "unbroken" / "trials.csv").read_text()
    assert asked(tmp_path / "broken") == asked(tmp_path / "unbroken"), "nothing is fitted twice"
    assert run(Search.open(options(tmp_path / "broken", space=space, trials=4))) == 0


def test_searches_are_not_mixed(found, tmp_path):
    with pytest.raises(ConfigError, match=r"holds a search with splits=2, not 3\. Choose another --out"):
        Search.open(options(found.options.out, splits=3))
    with pytest.raises(ConfigError, match=r"holds a search with seed=0, not 1\. Choose"):
        Search.open(options(found.options.out, seed=1))
    with pytest.raises(ConfigError, match="holds a search with class_weight=auto, not none"):
        Search.open(options(found.options.out, given={"class_weight": "none"}))
    with pytest.raises(ConfigError, match="holds a search with finalists=None"):
        Search.open(options(found.options.out, finalists=found.options.out, trials=1))
    (tmp_path / "fits.jsonl").touch()
    with pytest.raises(ConfigError, match=r"of an earlier version of cagat.*Choose another --out"):
        Search.open(options(tmp_path))


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*/trials.csv")), ids=lambda path: path.parent.name)
def test_committed_searches_can_be_gone_on_with(path):
    """Their fits are found again, and give the values of their trials."""
    question = json.loads((path.parent / "search.json").read_text())
    chosen = {key: question[key] for key in ("model", "splits", "first_seed", "epochs", "patience")}
    chosen["val_labels"] = question.get("val_labels")
    chosen |= {"datasets": tuple(question["datasets"]), "labels": tuple(question["labels"])}
    space, records = question["space"], tuning.Records(path.parent / "fits.jsonl")
    study = tuning.Search(options(path.parent, **chosen), _study(), records, space, question["graphs"], [])
    for trial in read_trials(path.parent):
        study._replay(trial)
        replayed = study.study.trials[-1]
        assert replayed.params == trial.params
        assert len(replayed.intermediate_values) == trial.fits
        if trial.value is not None:
            assert replayed.intermediate_values[trial.fits - 1] == pytest.approx(trial.value)


def _study():
    import optuna

    return optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler())


def test_spaces(tmp_path):
    assert "lam" not in search_space("gat")
    assert {"dropout", "weight_decay"} <= search_space("gat").keys()
    path = tmp_path / "space.yaml"
    path.write_text("lma: {low: 0, high: 1}")
    with pytest.raises(ConfigError, match=r"no 'lma' to search\. Did you mean lam"):
        search_space("cagat", path)
    for text, message in (
        ("[0, 1]", "must have choices, or low and high"),
        ("{choices: []}", "must be a list that is not empty"),
        ("{low: 1, high: 0}", "from a smaller to a larger number"),
        ("{low: much, high: 1}", "lam must be a number from 0 to 1, but is 'much'"),
    ):
        path.write_text(f"lam: {text}")
        with pytest.raises(ConfigError, match=message):
            search_space("cagat", path)
    path.write_text("lr: {low: 1e-4, high: 1e-2, log: true}")  # Words to YAML.
    assert search_space("cagat", path) == {"lr": {"low": 1e-4, "high": 1e-2, "log": True}}
    path.write_text("stopping: {choices: [none]}\nconsistency: {low: 0, high: 2}")  # Not the preset's, but training's.
    assert search_space("gcn", path).keys() == {"stopping", "consistency"}


def test_what_cannot_be_had_together_is_given_up(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text("support: {choices: [edges]}\naffinity: {choices: [full]}\n")
    chosen = options(tmp_path / "out", space=path, trials=2)
    run(Search.open(chosen))
    search = Search.open(chosen)
    assert {trial.state.name for trial in search.study.trials} == {"PRUNED"}
    assert search.best() is None
    assert "affinity" in search.commonest_reason()


@pytest.mark.usefixtures("no_picture")
def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(workers, "ProcessPoolExecutor", ProcessPoolExecutor)
    tune(out=tmp_path / "t", dataset=[GRAPH], labels=[5], splits=1, trials=1, epochs=2, patience=5)
    out = capsys.readouterr().out
    assert "15 nodes train and 60 validate in one split, drawn from 90 labelled nodes; the other 15 take no part" in out
    assert "Try it: cagat train --config" in out
    assert (tmp_path / "t" / "best.yaml").exists()
