from pathlib import Path

import pytest

from cagat.cli.reproduce import WHAT
from cagat.experiments.experiment import (
    EXPERIMENTS,
    Row,
    ablation,
    factors,
    few_labels,
    figure2,
    learned,
    noise,
    readings,
    table1,
    table1_seen,
    table2,
)
from cagat.experiments.jobs import Job, JobStore, Task
from cagat.experiments.tables import reported
from cagat.training import TrainConfig


def test_table1_has_every_row_of_the_papers():
    experiment = table1_seen()
    for row in experiment.rows:
        if row.method != "appnp":
            assert reported("table1", row, "cora", 20) is not None
    assert {row.method for row in experiment.rows} >= {"cagat", "gat"}
    assert len(experiment.jobs()) == len(experiment.rows) * 8 * 10


def test_table1_has_twice_as_many_splits_for_contenders_none_of_which_was_seen():
    jobs = table1().jobs()
    seeds = {
        (preset, dataset): {job.task.seed for job in jobs if (job.preset, job.task.dataset) == (preset, dataset)}
        for preset in ("best", "paper")
        for dataset in ("cora", "pubmed")
    }
    assert seeds["best", "cora"] == set(range(10, 30))
    assert seeds["paper", "cora"] == seeds["best", "pubmed"] == seeds["paper", "pubmed"] == set(range(10, 20))


def test_final_tables_take_no_split_that_was_seen_or_is_reserved():
    for make in (table1, few_labels, factors, EXPERIMENTS["suggest"], EXPERIMENTS["other-graphs"]):
        assert {job.task.seed for job in make().jobs()} <= set(range(10, 40))


def test_factors_switch_context_and_objective():
    values = [TrainConfig.from_values({**row_values(row)}) for row in factors().rows if row.method == "cagat"]
    assert {(one.alpha > 0, one.objective) for one in values} == {
        (context, objective) for context in (True, False) for objective in ("consistent", "supervised")
    }


def row_values(row):
    return {"model": row.method, "preset": row.preset, **dict(row.changes)}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_job_of_every_experiment_is_a_configuration(name):
    jobs = EXPERIMENTS[name]().jobs()
    assert len({str(job.asked) for job in jobs}) == len(jobs)
    for job in jobs[:: max(1, len(jobs) // 50)]:
        TrainConfig.from_values(job.values())


def test_the_first_split_of_everything_comes_first():
    jobs = table2().jobs()
    assert [job.task.seed for job in jobs] == sorted(job.task.seed for job in jobs)


def test_figures_of_the_paper():
    assert reported("table1", Row("cagat", "paper"), "cora_ml", 10).mean == 80.38
    assert reported("table2", Row("cagat", "paper", (("xi", 1e-2),)), "cora", 10).std == 2.35
    assert reported("readings", Row("cagat", "paper"), "cora", 10) is None


def test_readings_and_coefficients():
    changes = [dict(row.changes) for row in readings().rows]
    assert {(c["support"], c["affinity"], c["feedback"]) for c in changes} == {
        (*place, feedback)
        for place in (("full", "edges"), ("full", "full"), ("edges", "edges"))
        for feedback in (False, True)
    }
    assert {key for row in figure2().rows for key, _ in row.changes} == {"alpha", "lam"}


def test_every_experiment_can_be_asked_for_in_the_order_of_the_long_runs():
    assert tuple(EXPERIMENTS) == WHAT


def test_noise_has_the_graphs_themselves_beside_the_changed_ones():
    datasets = noise().datasets
    assert {"cora", "cora:added=50", "cora:added=100", "cora:dropped=50", "digits"} <= set(datasets)


@pytest.mark.parametrize("experiment", [ablation(), learned()], ids=lambda experiment: experiment.name)
def test_every_change_of_the_tuned_preset_makes_another_configuration(experiment):
    jobs = [Job(row.method, row.preset, Task("cora", 20, 0), row.changes) for row in experiment.rows]
    assert len({job.asked["config"] for job in jobs}) == len(jobs)
    assert {row.preset for row in experiment.rows} == {"tuned"}


def test_a_part_of_an_experiment():
    part = table1().restricted(["cora"], ["gat"], [20], 2)
    assert {job.task for job in part.jobs()} == {Task("cora", 20, 10), Task("cora", 20, 11)}
    assert {job.method for job in part.jobs()} == {"gat"}
    assert table2().restricted(methods=["gat"]).jobs() == []


def test_few_labels_has_five_splits_of_the_slow_graph_unless_told_otherwise():
    def most(experiment, dataset):
        return max(job.task.seed for job in experiment.jobs() if job.task.dataset == dataset)

    assert (most(few_labels(), "pubmed"), most(few_labels(), "cora")) == (14, 19)
    assert most(few_labels().restricted(splits=7), "pubmed") == 16


def test_another_preset_is_another_job():
    task = Task("cora", 20, 0)
    jobs = [Job("cagat", "paper", task), Job("cagat", "paper", task, (("xi", 0.0),)), Job("gat", "authors", task)]
    assert len({job.asked["config"] for job in jobs}) == 3
    # A change that changes nothing is the same configuration, but another row.
    same = Job("cagat", "paper", task, (("xi", 1e-3),))
    assert same.asked["config"] == jobs[0].asked["config"]


UNFINISHED = {"table1", "few-labels", "factors", "suggest", "other-graphs"}
"""Experiments of which only a part is committed so far."""


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_committed_is_recognised(name):
    """So that a rerun of a finished experiment does nothing: neither names nor settings of old records may change."""
    experiment = EXPERIMENTS[name]()
    store = JobStore(Path(__file__).parents[2] / "results", experiment.name)
    missing = [job for job in experiment.runnable_jobs() if store.records.get(job.asked) is None]
    if name in UNFINISHED:
        assert len(experiment.jobs()) - len(missing) == len(store.records)
        assert missing, f"{name} is finished: take it out of UNFINISHED"
    else:
        assert missing == []
