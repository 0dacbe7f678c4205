"""The tables and figures, as lists of jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from cagat.experiments.choices import MULTIPLES, ChosenJob
from cagat.experiments.jobs import Job, Task
from cagat.models import card
from cagat.settings import TrainConfig
from cagat.suggestions import STRATEGIES

GRAPHS = ("cora", "citeseer", "pubmed", "cora_ml")


@dataclass(frozen=True)
class Row:
    """A row of a table: a model with a preset, perhaps changed."""

    method: str
    preset: str
    changes: tuple[tuple[str, Any], ...] = ()
    strategy: str | None = None  # What chooses the training nodes, if they are not drawn per class.


@dataclass(frozen=True)
class Experiment:
    """All runs of a table or figure: every row on every graph, with every number of labels, on every split."""

    name: str  # The name of its files.
    title: str
    rows: tuple[Row, ...]
    datasets: tuple[str, ...]
    labels: tuple[int, ...]  # Per class.
    splits: int = 10  # Their seeds are 0, 1, ..., or begin with another one.
    history: bool = False  # Whether the losses of all epochs are recorded.
    fewer_splits: Mapping[str, int] = field(default_factory=dict)  # For graphs on which a run takes long.
    first_seed: int = 0

    def jobs(self) -> list[Job]:
        """All runs, the first split of everything first, so that an interrupted table has no holes."""
        return [
            self.job(row, Task(dataset, labels, seed))
            for seed, dataset, labels, row in product(self._all_seeds(), self.datasets, self.labels, self.rows)
            if seed in self.seeds(dataset)
        ]

    @property
    def chooses(self) -> bool:
        """Whether strategies choose the training nodes."""
        return any(row.strategy is not None for row in self.rows)

    def job(self, row: Row, task: Task) -> Job:
        """The run of a row on a split of a graph."""
        job = row.method, row.preset, task, row.changes, self.history
        return Job(*job) if row.strategy is None else ChosenJob(*job, strategy=row.strategy)

    def seeds(self, dataset: str) -> range:
        """The seeds of the splits of a graph."""
        return self._all_seeds()[: self.fewer_splits.get(dataset, self.splits)]

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


def table1() -> Experiment:
    """Table 1 of the paper: all methods, all graphs, 10 and 20 labels per class; and APPNP."""
    methods = (
        "mlp", "logreg", "labelprop", "labelprop-nl", "dgi", "graphsage", "gcn", "cvd-pp", "appnp", "gat", "cagat",
    )  # fmt: skip
    title = "Test accuracy in percent, mean and standard deviation over random splits"
    return Experiment("table1", title, every_preset(*methods), GRAPHS, (10, 20))


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
    places = (("full", "edges"), ("full", "full"), ("edges", "edges"))
    rows = tuple(
        Row("cagat", "paper", (("support", support), ("affinity", affinity), ("feedback", feedback), ("xi", xi)))
        for (support, affinity), feedback, xi in product(places, (False, True), (0.0, 1e-5, 1e-4, 1e-3, 1e-2))
        # Without affinity it does not matter where it would be.
        if not (xi == 0 and affinity == "full")
    )
    return Experiment("readings", "Readings of the paper", rows, ("cora", "cora_ml"), (10,), splits=5)


def few_labels() -> Experiment:
    """A table of ours: how few labels are enough?"""
    rows = (tuned("cagat"), tuned("gat"), *(Row(name, card(name).default) for name in ("gcn", "appnp", "labelprop-nl")))
    labels = (1, 2, 3, 5, 10, 20)
    return Experiment("few_labels", "Accuracy over labels per class", rows, GRAPHS, labels, fewer_splits={"pubmed": 5})


def own_labels() -> Experiment:
    """A table of ours: three labels per class and nothing else; does it pay to keep any of them for validation?"""
    fixed = (("val_labels", 0), ("fixed_epochs", TrainConfig.model_fields["fixed_epochs"].default))
    rows = tuple(Row("cagat", card("cagat").default, changes) for changes in (fixed, (("val_labels", 1),)))
    title = "Accuracy with few labels, one per class or none of them for validation"
    return Experiment("own_labels", title, rows, GRAPHS, (1, 2, 3), fewer_splits={"pubmed": 3})


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
    nothing_held_out = (("val_labels", 0),)
    rows = tuple(Row("cagat", card("cagat").default, nothing_held_out, strategy) for strategy in STRATEGIES)
    rows += tuple(
        Row(model, card(model).default, nothing_held_out, strategy)
        for model in ("gcn", "appnp")
        for strategy in ("coverage", "random", "grain")
    )
    title = "Accuracy over the number of labels, by how nodes are chosen to be labelled"
    return Experiment("suggest", title, rows, GRAPHS, MULTIPLES, fewer_splits={"pubmed": 5}, first_seed=10)


EXPERIMENTS = {
    make.__name__.replace("_", "-"): make
    for make in (table1, table2, figure1, few_labels, own_labels, figure2, readings, noise, learned, ablation, suggest)
}
"""In the order in which long runs are done."""
