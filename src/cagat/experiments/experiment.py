"""The tables and figures, as lists of jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from cagat.data.loading import graph_name
from cagat.experiments.choices import MULTIPLES, ChosenJob
from cagat.experiments.jobs import Job, Task
from cagat.models import card
from cagat.suggestions import STRATEGIES

GRAPHS = ("cora", "citeseer", "pubmed", "cora_ml")

OWN_GRAPHS = ("twitch", "lastfm")
"""Graphs as people have them; they are not part of the repository, so that a run needs their paths."""


@dataclass(frozen=True)
class Row:
    """A row of a table: a model with a preset, perhaps changed."""

    method: str
    preset: str
    changes: tuple[tuple[str, Any], ...] = ()
    title: str = ""  # What it is called instead of its preset and changes.
    labels: int | None = None  # Those that train, if not all that the table is about.
    calibrated: bool = True  # Whether its calibration error is that with a temperature.
    strategy: str | None = None  # What chooses the training nodes, if they are not drawn per class.
    splits: int | None = None  # How many, if fewer than other rows have.

    @property
    def name(self) -> str:
        """What it is called beside its method."""
        changes = self.strategy or ", ".join(f"{key}={value}" for key, value in self.changes)
        return self.title or " ".join(filter(None, (self.preset, changes)))


@dataclass(frozen=True)
class Experiment:
    """All runs of a table or figure: every row on every graph, with every number of labels, on every split.

    Graphs are names, or paths of graphs of one's own, which tables and records call by the name of the file. That name
    alone, in place of a path, stands for what was recorded of such a graph.
    """

    name: str  # The name of its files.
    title: str
    rows: tuple[Row, ...]
    datasets: tuple[str, ...]
    labels: tuple[int, ...]  # Per class.
    splits: int = 10  # Their seeds are 0, 1, ..., or begin with another one.
    history: bool = False  # Whether the losses of all epochs are recorded.
    fewer_splits: Mapping[str, int] = field(default_factory=dict)  # For graphs on which a run takes long.
    calibration: bool = False  # Whether the table tells calibration errors.
    first_seed: int = 0

    def jobs(self) -> list[Job]:
        """All runs, the first split of everything first, so that an interrupted table has no holes."""
        jobs = (
            self.job(row, Task(dataset, labels, seed))
            for seed, dataset, labels, row in product(self._all_seeds(), self.datasets, self.labels, self.rows)
            if seed in self.seeds(dataset, row)
        )
        return list(dict.fromkeys(jobs))  # Two rows may tell of the same run.

    def runnable_jobs(self) -> list[Job]:
        """The runs on graphs that are there, or can be had."""
        return [job for job in self.jobs() if job.can_run]

    @property
    def graph_names(self) -> list[str]:
        """What the graphs are called."""
        return list(map(graph_name, self.datasets))

    @property
    def chooses(self) -> bool:
        """Whether strategies choose the training nodes."""
        return any(row.strategy is not None for row in self.rows)

    def job(self, row: Row, task: Task) -> Job:
        """The run of a row on a split of a graph."""
        task = task if row.labels is None else task._replace(labels=row.labels)
        job = row.method, row.preset, task, row.changes, self.history
        return Job(*job) if row.strategy is None else ChosenJob(*job, strategy=row.strategy)

    def seeds(self, dataset: str, row: Row) -> range:
        """The seeds of the splits of a graph for a row."""
        return self._all_seeds()[: self.fewer_splits.get(graph_name(dataset), self.splits)][: row.splits]

    def _all_seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.splits)

    def restricted(
        self,
        datasets: Sequence[str] = (),
        methods: Sequence[str] = (),
        labels: Sequence[int] = (),
        splits: int | None = None,
    ) -> "Experiment":
        """A part of the experiment, perhaps without any rows, or one with other graphs or numbers of labels."""
        return replace(
            self,
            rows=tuple(row for row in self.rows if not methods or row.method in methods),
            datasets=tuple(datasets) or self.datasets,
            labels=tuple(labels) or self.labels,
            splits=self.splits if splits is None else splits,
            fewer_splits=self.fewer_splits if splits is None else {},
        )


def every_preset(*methods: str) -> tuple[Row, ...]:
    """A row for each preset of each method."""
    return tuple(Row(method, preset) for method in methods for preset in card(method).presets)


def tuned(method: str) -> Row:
    """The row of the tuned preset, or of the default one where there is none."""
    presets = card(method).presets
    return Row(method, "tuned" if "tuned" in presets else card(method).default)


SEARCHED = ("best", "plain")
"""Presets that were searched for alike for all contenders: with the objective `consistent`, and without it."""


def contenders(*methods: str, changes: tuple[tuple[str, Any], ...] = (), but: str = "") -> tuple[Row, ...]:
    """A row for each searched preset of each method; with changes it is called as its preset is, `but` so."""
    return tuple(
        Row(method, preset, changes, f"{preset}{but}" if changes else "")
        for method in methods
        for preset in SEARCHED
        if preset in card(method).presets
    )


def table1() -> Experiment:
    """Table 1 of the paper on splits that nobody had seen: its methods, and the contenders on twice as many splits."""
    others = ("mlp", "logreg", "labelprop", "labelprop-nl", "dgi", "graphsage", "gcn", "cvd-pp", "appnp", "gat")
    title = "Test accuracy in percent, mean and standard deviation over random splits"
    rows = contenders("cagat", "gat", "appnp", "gcnii", "grand")
    rows += tuple(replace(row, splits=10) for row in every_preset(*others) if row.preset not in SEARCHED)
    rows += tuple(Row("cagat", preset, splits=10) for preset in ("paper", "tuned"))
    fewer = {"pubmed": 10}
    return Experiment("table1", title, rows, GRAPHS, (10, 20), splits=20, fewer_splits=fewer, first_seed=10)


def table1_seen() -> Experiment:
    """Table 1 of the paper on splits that had been looked at before: all its methods, and APPNP."""
    others = ("mlp", "logreg", "labelprop", "labelprop-nl", "dgi", "graphsage", "gcn", "cvd-pp", "appnp", "gat")
    title = "Test accuracy in percent on splits 0 to 9, which had been seen, mean and standard deviation"
    rows = tuple(row for row in every_preset(*others) if row.preset not in SEARCHED)
    rows += (Row("cagat", "paper"), tuned("cagat"))
    return Experiment("table1_seen", title, rows, GRAPHS, (10, 20))


def table2() -> Experiment:
    """Table 2 of the paper: the weight of the affinity."""
    rows = tuple(Row("cagat", "paper", (("xi", xi),)) for xi in (1e-2, 1e-3, 1e-4, 1e-5, 0.0))
    return Experiment("table2", "CaGAT with different weights xi of the affinity", rows, ("cora", "cora_ml"), (10,))


def figure1() -> Experiment:
    """Figure 1 of the paper: the training loss of GAT and CaGAT."""
    rows = (Row("gat", "authors"), Row("cagat", "paper"))
    return Experiment("figure1", "Training loss on Cora", rows, ("cora",), (20,), history=True)


def figure2() -> Experiment:
    """Figure 2 of the paper: accuracy over alpha and over lam."""
    steps = tuple(round(0.1 * step, 1) for step in range(11))
    rows = tuple(Row("cagat", "paper", ((key, value),)) for key in ("alpha", "lam") for value in steps)
    return Experiment("figure2", "CaGAT over alpha and over lam", rows, ("cora",), (20,), splits=5)


def readings() -> Experiment:
    """The readings of the paper's ambiguities, with its coefficients: which comes nearest to Table 2?"""
    supports = (("full", "edges"), ("full", "full"), ("edges", "edges"))
    rows = tuple(
        Row("cagat", "paper", (("support", support), ("affinity", affinity), ("feedback", feedback), ("xi", xi)))
        for (support, affinity), feedback, xi in product(supports, (False, True), (0.0, 1e-5, 1e-4, 1e-3, 1e-2))
        # Without affinity it does not matter where it would be.
        if not (xi == 0 and affinity == "full")
    )
    return Experiment("readings", "Readings of the paper", rows, ("cora", "cora_ml"), (10,), splits=5)


NOTHING_HELD_OUT = (("val_labels", 0),)
"""A change: no validation node decides when training stops."""


def few_labels() -> Experiment:
    """A table of ours: how few labels are enough, if none is set aside for validation?"""
    rows = contenders("cagat", "gat", "appnp", "grand", changes=NOTHING_HELD_OUT)
    rows += (Row("labelprop-nl", card("labelprop-nl").default, NOTHING_HELD_OUT),)
    rows += tuple(Row(method, "best", (), "best, 20 validation labels per class") for method in ("cagat", "appnp"))
    labels = (1, 2, 3, 5, 10, 20)
    fewer = {"pubmed": 5}
    return Experiment("few_labels", "Accuracy over labels per class", rows, GRAPHS, labels, 10, False, fewer, False, 10)


def factors() -> Experiment:
    """A table of ours: two by two, with context and without, with the objective and without."""
    rows = contenders("cagat", changes=NOTHING_HELD_OUT)
    rows += contenders("cagat", changes=(*NOTHING_HELD_OUT, ("alpha", 0.0)), but=" without context")
    rows += contenders("gat", changes=NOTHING_HELD_OUT)
    title = "Context or not, objective or not, without validation labels"
    return Experiment("factors", title, rows, GRAPHS, (2, 20), fewer_splits={"pubmed": 5}, first_seed=10)


def other_graphs() -> Experiment:
    """A table of ours: the contenders on graphs that are no citations, without validation labels."""
    rows = contenders("cagat", "gat", "appnp", "grand", changes=NOTHING_HELD_OUT)
    rows += tuple(Row(method, card(method).default, NOTHING_HELD_OUT) for method in ("mlp", "labelprop-nl"))
    graphs, title = ("digits", "breast_cancer"), "Neighbour graphs of digits and of cells"
    return Experiment("other_graphs", title, rows, graphs, (2, 5, 20), first_seed=10)


def own_labels() -> Experiment:
    """A table of ours: three labels per class and nothing else, by this version and as earlier ones used them.

    Earlier versions held labels out: the estimator one of three for validation, the command line one for validation
    and one for test. They did not calibrate probabilities.
    """
    held_out, one = (("val_labels", 1),), "1 for validation"
    rows = (
        Row("cagat", card("cagat").default, NOTHING_HELD_OUT, "this version: 3 labels for training"),
        Row("cagat", "tuned", held_out, f"earlier estimator: 2 for training, {one}", labels=2, calibrated=False),
        Row("cagat", "tuned", held_out, f"earlier train: 1 for training, {one}", labels=1, calibrated=False),
    )
    title = "Three labels per class and nothing else: accuracy and calibration"
    fewer = dict.fromkeys(("pubmed", *OWN_GRAPHS), 3)
    return Experiment("own_labels", title, rows, (*GRAPHS, *OWN_GRAPHS), (3,), fewer_splits=fewer, calibration=True)


def calibration() -> Experiment:
    """A table of ours: are probabilities as sure as they are right, with a temperature from validation nodes?"""
    default = card("cagat").default
    rows = (
        Row("cagat", default, title="with a temperature"),
        Row("cagat", default, title="as it is", calibrated=False),
    )
    title = "Accuracy and calibration with 20 labels and 20 validation nodes per class"
    return Experiment("calibration", title, rows, GRAPHS, (20,), fewer_splits={"pubmed": 5}, calibration=True)


def noise() -> Experiment:
    """A table of ours: does context help where edges were added and dropped at random, and where there are many?"""
    rows = (tuned("cagat"), tuned("gat"), Row("appnp", card("appnp").default))
    changes = ("", ":dropped=50", ":added=50", ":added=100")
    # The nodes of digits have nearly three times as many neighbours as Cora's. Synthetic graphs of many are too easy.
    graphs = (*map("".join, product(("cora", "cora_ml"), changes)), "digits")
    return Experiment("noise", "Accuracy on noisy graphs and on a denser one", rows, graphs, (10,), splits=5)


def learned() -> Experiment:
    """A table of ours: do learnt coefficients find the right values by themselves, with few labels and more?"""
    given = tuned("cagat")
    rows = (given, replace(given, changes=(("learn_coefficients", True),)))
    title = "Learnt coefficients, one per head, beside those that they start from"
    return Experiment("learned", title, rows, ("cora", "citeseer", "cora_ml"), (2, 20), splits=5)


def ablation() -> Experiment:
    """A table of ours: from tuned CaGAT, one change at a time; which of its parts makes the difference to GAT?"""
    given, other = tuned("cagat"), tuned("gat")
    own, theirs = (card(row.method).preset(row.preset) for row in (given, other))
    # How they are fitted, apart from what they are: each also with the other's.
    keys = ("hidden", "dropout", "attention_dropout", "lr", "weight_decay")
    fitting = [key for key in keys if own[key] != theirs[key]]
    changes: list[tuple[tuple[str, Any], ...]] = [
        (),
        (("alpha", 0.0),),
        (("normalization", "row"),),
        (("normalization", "sym"),),
        (("propagation", "all"),),
        (("xi", 1e-3),),
        tuple((key, theirs[key]) for key in fitting),
    ]
    as_ours = replace(other, changes=tuple((key, own[key]) for key in fitting))
    rows = (other, as_ours, *(replace(given, changes=change) for change in changes))
    return Experiment("ablation", "Tuned CaGAT, one change at a time", rows, ("cora", "citeseer"), (20,))


def suggest() -> Experiment:
    """A table of ours: how much is gained by choosing which nodes to label?"""
    rows = tuple(Row("cagat", card("cagat").default, NOTHING_HELD_OUT, strategy=strategy) for strategy in STRATEGIES)
    rows += tuple(
        Row(model, card(model).default, NOTHING_HELD_OUT, strategy=strategy)
        for model in ("gcn", "appnp")
        for strategy in ("coverage", "random", "grain")
    )
    title = "Accuracy over the number of labels, by how nodes are chosen to be labelled"
    return Experiment("suggest", title, rows, GRAPHS, MULTIPLES, fewer_splits={"pubmed": 5}, first_seed=10)


EXPERIMENTS = {
    make.__name__.replace("_", "-"): make
    for make in (
        table1,
        few_labels,
        factors,
        suggest,
        other_graphs,
        table1_seen,
        table2,
        figure1,
        own_labels,
        calibration,
        figure2,
        readings,
        noise,
        learned,
        ablation,
    )
}
"""In the order in which long runs are done."""
