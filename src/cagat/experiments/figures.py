"""The figures, as PNG and SVG."""

import io
import statistics
import textwrap
from pathlib import Path
from typing import Any

from cagat.experiments.experiment import Experiment
from cagat.experiments.job_store import JobStore
from cagat.experiments.summary import Entry, half_interval
from cagat.files import atomic_write
from cagat.style import BLUE, GREY, SERIES


def draw(experiment: Experiment, entries: list[Entry], store: JobStore, directory: Path) -> list[Path]:
    """Draw the figure of an experiment, of a table its means; the files that were written."""
    painters = {"figure1": _losses, "figure2": _coefficients, "few_labels": _over_labels, "noise": _over_graphs}
    painter = painters.get(experiment.name, _means)
    if not entries:
        return []
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    painter(figure, experiment, entries, store)
    for axes in figure.axes:
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    paths = []
    for suffix, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
        buffer = io.BytesIO()
        # Names within an SVG are drawn at random unless told otherwise; the same figure should be the same file.
        with rc_context({"svg.hashsalt": experiment.name}):
            figure.savefig(buffer, format=suffix, **options)
        path = directory / f"{experiment.name}.{suffix}"
        atomic_write(path, buffer.getvalue())
        paths.append(path)
    return paths


def _means(figure: Any, experiment: Experiment, entries: list[Entry], store: JobStore) -> None:
    """The mean of every configuration with its 95 % interval, one panel for each graph and number of labels."""
    places = list(dict.fromkeys((entry.dataset, entry.labels) for entry in entries))
    rows = [row for row in experiment.rows if any(entry.row == row for entry in entries)]
    names = [" ".join([row.method, row.preset, *(f"{key}={value}" for key, value in row.changes)]) for row in rows]
    lines = [textwrap.wrap(name, 32) for name in names]
    longest, most = max(len(line) for name in lines for line in name), max(map(len, lines))
    figure.set_size_inches(0.8 + 0.09 * longest + 2.6 * len(places), 1.2 + (0.1 + 0.16 * most) * len(rows))
    panels = figure.subplots(1, len(places), sharey=True, squeeze=False)[0]
    for (dataset, labels), axes in zip(places, panels, strict=True):
        for entry in entries:
            if (entry.dataset, entry.labels) == (dataset, labels) and entry.accuracies:
                half = half_interval(list(entry.accuracies.values()))
                tint = BLUE if entry.row.method == "cagat" else GREY
                axes.errorbar([entry.mean], [rows.index(entry.row)], xerr=[half], color=tint, marker="o", capsize=3)
        axes.set(title=f"{dataset}, {labels} labels", xlabel="test accuracy, % (95 % interval)")
        # Intervals over two or three splits reach beyond what accuracies can be.
        low, high = axes.get_xlim()
        axes.set_xlim(max(low, 0), min(high, 100))
    panels[0].set_yticks(range(len(rows)), ["\n".join(name) for name in lines])
    panels[0].set_ylim(len(rows) - 0.5, -0.5)


def _losses(figure: Any, experiment: Experiment, entries: list[Entry], store: JobStore) -> None:
    """The training loss over the epochs: the mean of the splits, and where they all lie."""
    figure.set_size_inches(6.5, 4)
    axes = figure.subplots()
    jobs = experiment.jobs()
    for row, colour in zip(experiment.rows, SERIES, strict=False):
        records = [store.found(job) for job in jobs if (job.method, job.preset) == (row.method, row.preset)]
        courses = [record["loss"] for record in records if record is not None and "loss" in record]
        if not courses:
            continue
        # Splits end at different epochs: the mean is drawn as far as all of them go.
        length = min(map(len, courses))
        epochs = range(1, length + 1)
        columns = [[course[epoch] for course in courses] for epoch in range(length)]
        axes.plot(
            epochs, [statistics.fmean(column) for column in columns], color=colour, label=f"{row.method} ({row.preset})"
        )
        axes.fill_between(epochs, list(map(min, columns)), list(map(max, columns)), color=colour, alpha=0.15)
    axes.set(title=experiment.title, xlabel="epoch", ylabel="cross-entropy on the training nodes, with dropout")
    axes.legend(frameon=False, title="mean and range over the splits")


def _coefficients(figure: Any, experiment: Experiment, entries: list[Entry], store: JobStore) -> None:
    """Accuracy over alpha and over lam, with standard deviations."""
    figure.set_size_inches(9, 3.8)
    panels = figure.subplots(1, 2, sharey=True)
    for key, axes, colour in zip(("alpha", "lam"), panels, SERIES, strict=False):
        points = [(dict(entry.row.changes)[key], entry) for entry in entries if key in dict(entry.row.changes)]
        axes.errorbar(
            [value for value, _ in points],
            [entry.mean for _, entry in points],
            yerr=[entry.std for _, entry in points],
            color=colour,
            marker="o",
            capsize=3,
        )
        axes.set(xlabel=key)
    panels[0].set(ylabel="test accuracy, % (± standard deviation)")
    figure.suptitle(f"CaGAT on {', '.join(experiment.datasets)}, the other coefficients as in the paper")


def _over_labels(figure: Any, experiment: Experiment, entries: list[Entry], store: JobStore) -> None:
    """Accuracy over the number of labels a class, one panel a graph, with 95 % intervals of the mean."""
    count = len(experiment.datasets)
    figure.set_size_inches(4 * count, 4)
    panels = figure.subplots(1, count, squeeze=False)[0]
    for dataset, axes in zip(experiment.datasets, panels, strict=True):
        for row, colour in zip(experiment.rows, SERIES, strict=False):
            points = [entry for entry in entries if (entry.row, entry.dataset) == (row, dataset) and entry.accuracies]
            halves = [half_interval(list(entry.accuracies.values())) for entry in points]
            places = [str(entry.labels) for entry in points]
            means = [entry.mean for entry in points]
            axes.errorbar(
                places, means, yerr=halves, color=colour, marker="o", capsize=3, label=f"{row.method} ({row.preset})"
            )
        axes.set(title=dataset, xlabel="labels a class")
    panels[0].set(ylabel="test accuracy, % (with 95 % intervals)")
    panels[-1].legend(frameon=False)


def _over_graphs(figure: Any, experiment: Experiment, entries: list[Entry], store: JobStore) -> None:
    """Accuracy over the graphs, with 95 % intervals of the mean, the configurations side by side."""
    graphs = [name for name in experiment.datasets if any(entry.dataset == name for entry in entries)]
    figure.set_size_inches(2 + 0.9 * len(graphs), 5)
    axes = figure.subplots()
    for number, (row, colour) in enumerate(zip(experiment.rows, SERIES, strict=False)):
        points = [entry for entry in entries if entry.row == row and entry.accuracies]
        aside = 0.18 * (number - (len(experiment.rows) - 1) / 2)
        axes.errorbar(
            [graphs.index(entry.dataset) + aside for entry in points],
            [entry.mean for entry in points],
            yerr=[half_interval(list(entry.accuracies.values())) for entry in points],
            color=colour,
            marker="o",
            linestyle="none",
            capsize=3,
            label=f"{row.method} ({row.preset})",
        )
    names = [name.replace(":", "\n").replace(",", "\n") for name in graphs]
    axes.set_xticks(range(len(graphs)), names, fontsize="small")
    axes.set(ylabel="test accuracy, % (with 95 % intervals)")
    axes.legend(frameon=False)
