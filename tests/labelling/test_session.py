import csv

import numpy as np
import pytest

from cagat.labelling.fitting import BackgroundFit, Start, fit, fitted
from cagat.labelling.open_graph import open_graph
from cagat.labelling.results import write_results
from cagat.labelling.session import AHEAD, Session
from cagat.labelling.store import LabelError
from cagat.settings import TrainConfig
from cagat.suggestions import suggest
from cagat.training.run import Run

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"
FAST = {"dataset": GRAPH, "protocol": "all", "fixed_epochs": 8, "epochs": 8}


@pytest.fixture
def opened(tmp_path):
    found = open_graph(GRAPH, labels=tmp_path / "labels.csv")
    yield found._replace(config=TrainConfig.from_values(FAST))
    found.store.close()


@pytest.fixture
def session(opened):
    session = Session(*opened)
    yield session
    session.close()


def truth(session, node):
    return session.graph.class_names[session.graph.y[node]]


def settled(session, wait_for):
    wait_for(lambda: not session.background.busy)
    return session.state()


def test_nodes_are_suggested_in_the_order_of_suggest(session, wait_for):
    expected = [one.index for one in suggest(GRAPH, 5)]
    found = []
    for _ in range(5):
        found.append(session.suggested())
        session.label(found[-1], truth(session, found[-1]))
    assert found == expected
    settled(session, wait_for)


def test_every_node_can_be_labelled_or_skipped(session, wait_for):
    seen = []
    while (node := session.suggested()) is not None:
        seen.append(node)
        if len(seen) % 3:
            session.skip(node)
        else:
            session.label(node, truth(session, node))
        assert len(seen) <= 90
    assert sorted(seen) == list(range(90))
    assert len(seen) > AHEAD
    assert settled(session, wait_for)["suggested"] is None
    said, node = session.undo()
    assert node == seen[-1]
    assert session.suggested() == node
    assert "Undone" in said


def test_the_accuracy_is_estimated_from_enough_labels_only(session, wait_for):
    nodes = [node for kind in range(3) for node in np.flatnonzero(session.graph.y.numpy() == kind)[:5].tolist()]
    for node in nodes[:7]:
        session.label(node, truth(session, node))
    assert settled(session, wait_for)["curve"] == []  # Five, two and none.
    for node in nodes[7:14]:
        session.label(node, truth(session, node))
    session.label(nodes[14], truth(session, nodes[14]))
    state = settled(session, wait_for)
    assert state["model"] == {"labels": 15, "calibrated": True}
    last = state["curve"][-1]
    assert last["labels"] == 15
    assert 0 <= last["low"] <= last["accuracy"] <= last["high"] <= 1
    assert session.node(nodes[0])["label"] == truth(session, nodes[0])


def test_one_class_makes_no_model(session, wait_for):
    session.label(0, session.store.classes[0])
    session.label(1, session.store.classes[0])
    state = settled(session, wait_for)
    assert state["model"] is None
    assert "two classes" in state["status"]
    with pytest.raises(LabelError, match="two classes"):
        session.finish()


def test_a_class_that_comes_later_and_one_that_goes(session, wait_for):
    session.add_class("other")
    session.label(0, "other")
    session.label(1, session.store.classes[0])
    assert settled(session, wait_for)["model"]["labels"] == 2
    assert {one["class"] for one in session.node(5)["guess"]} == {"other", session.store.classes[0]}
    session.undo()
    assert settled(session, wait_for)["model"] is None


def test_a_fit_begins_where_the_last_ended_unless_a_label_or_a_class_went(opened):
    labels = {0: "a", 1: "b", 2: "a"}
    _, trainer = fit(opened.graph, labels, opened.config, folds=False)
    start = Start(labels, trainer.model.state_dict())
    # Without a step the weights are those that a fit begins with.
    config = opened.config.model_copy(update={"lr": 0.0})
    _, found = fit(opened.graph, {**labels, 5: "b"}, config, folds=False, start=start)
    assert all(found.model.state_dict()[name].equal(one) for name, one in start.weights.items())
    assert start.leads_to({**labels, 5: "b"})
    assert not start.leads_to({0: "a", 1: "b", 5: "b"})
    assert not start.leads_to({**labels, 2: "b"})
    assert not start.leads_to({**labels, 5: "c"})


def test_the_model_that_stays_was_fitted_anew(opened, wait_for):
    background = BackgroundFit(opened.graph, opened.config)
    labels = {0: "a", 1: "b"}
    background.ask(labels)
    wait_for(lambda: not background.busy)
    seen = []
    background._after_fit = lambda found: seen.append(found.probabilities)
    background.ask({**labels, 2: "a"})
    wait_for(lambda: not background.busy)
    background.close()
    quick, anew = seen
    assert not np.array_equal(quick, anew)
    expected = fitted(*fit(opened.graph, {**labels, 2: "a"}, opened.config, folds=False))
    assert np.array_equal(background.fitted.probabilities, anew)
    assert anew == pytest.approx(expected.probabilities, abs=1e-6)


def test_a_fit_that_fails_is_told_and_the_next_one_works(opened, wait_for):
    background = BackgroundFit(opened.graph, opened.config)
    background.ask({0: "a", 10**6: "b"})
    wait_for(lambda: not background.busy)
    assert "could not be fitted" in background.status
    background.ask({0: "a", 1: "b"})
    wait_for(lambda: not background.busy)
    assert background.fitted.labels == 2
    background.close()


def test_reasons_count_what_no_labelled_node_is_nearer_to(session):
    def count(node):
        return int(session.node(node)["reason"].split()[3])

    assert count(0) == 90
    session.label(1, session.store.classes[0])
    before = count(0)
    assert 1 <= before < 90
    session.label(2, session.store.classes[0])
    assert count(0) <= before
    session.undo()
    assert count(0) == before


@pytest.mark.parametrize("per_class", [2, 6])
def test_done_writes_what_train_writes(tmp_path, wait_for, per_class, monkeypatch):
    folder = tmp_path / "graph"
    folder.mkdir()
    graph = open_graph(GRAPH, labels=tmp_path / "labels.csv")
    graph.store.close()
    x, (source, target) = graph.graph.x.to_dense(), graph.graph.edge_index
    lines = [",".join(f"{value:.3f}" for value in row) for row in x.tolist()]
    head = ",".join(f"f{number}" for number in range(x.size(1)))
    rows = "".join(f"{node},{line}\n" for node, line in enumerate(lines))
    (folder / "features.csv").write_text(f"node,{head}\n{rows}")
    pairs = zip(source.tolist(), target.tolist(), strict=True)
    (folder / "edges.csv").write_text("source,target\n" + "".join(f"{one},{other}\n" for one, other in pairs))
    values = FAST | {"dataset": str(folder), "baselines": False}
    opened = open_graph(str(folder), classes=["c2", "c1", "c0"])
    session = Session(*opened._replace(config=TrainConfig.from_values(values)))
    for kind in range(3):
        for node in np.flatnonzero(graph.graph.y.numpy() == kind)[:per_class].tolist():
            session.label(node, f"c{kind}")
    session.finish()
    done = wait_for(lambda: (found := session.state()["finish"]) and not found["running"] and found)
    session.close()
    assert done["command"] == f"cagat train --dataset {folder} --protocol all"
    assert [path.rsplit("/", 1)[1] for path in done["files"]] == ["predictions.csv", "report.html", "report.md"]
    Run.start(TrainConfig.from_values(values), tmp_path / "run").train()
    assert (folder / "predictions.csv").read_bytes() == (tmp_path / "run" / "predictions.csv").read_bytes()
    report = (folder / "report.md").read_text()
    assert ("too few labels" in report) == (per_class == 2)
    with (folder / "predictions.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 90


def test_results_need_two_classes(opened, tmp_path):
    with pytest.raises(LabelError, match="two classes"):
        write_results(opened.graph, {0: "a"}, opened.config, tmp_path, "")
