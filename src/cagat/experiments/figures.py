"""The figures of experiments, as PNG and SVG."""

import io
import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cagat.experiments.experiment import Experiment, Row
from cagat.experiments.jobs import JobStore
from cagat.experiments.summary import TableCell
from cagat.files import atomic_write
from cagat.style import BLUE, GREY, SERIES


def draw(experiment: Experiment, cells: list[TableCell], store: JobStore, directory: Path) -> list[Path]:
    """Draw the figure of an experiment, or for a table the means of its rows; the files that were written."""
    if not cells:
        return []
    figure = empty_figure()
    if experiment.name == "figure1":
        _draw_losses(figure, experiment, store)
    else:
        drawers = {"figure2": _draw_coefficients, "few_labels": _draw_over_labels, "noise": _draw_over_graphs}
        drawers["suggest"] = _draw_choices
        drawers.get(experiment.name, _draw_means)(figure, experiment, cells)
    paths = [directory / f"{experiment.name}.{suffix}" for suffix in ("png", "svg")]
    for path in paths:
        atomic_write(path, rendered(figure, path.suffix[1:]))
    return paths


def empty_figure(width: float = 6.5, height: float = 4.0) -> Any:
    """A figure of so many inches. Not by pyplot, which has state of its own and looks for a display."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def rendered(figure: Any, kind: str) -> bytes:
    """The figure as a file in our style; the same figure is the same file."""
    from matplotlib import rc_context

    for axes in figure.axes:
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    # Without the time, and without names drawn at random within an SVG.
    options: dict[str, Any] = {"dpi": 150} if kind == "png" else {"metadata": {"Date": None}}
    with rc_context({"svg.hashsalt": "cagat"}):
        figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()


def draw_curves(axes: Any, curves: Sequence[Sequence[float]], colour: str, label: str) -> None:
    """The mean of several curves, as far as all of them go, and their range."""
    length = min(map(len, curves))
    columns = list(zip(*(curve[:length] for curve in curves), strict=True))
    epochs = range(1, length + 1)
    axes.plot(epochs, list(map(statistics.fmean, columns)), color=colour, label=label)
    axes.fill_between(epochs, list(map(min, columns)), list(map(max, columns)), color=colour, alpha=0.15, linewidth=0)


def _label(row: Row) -> str:
    return f"{row.method} ({row.preset})"


def _draw_means(figure: Any, experiment: Experiment, cells: list[TableCell]) -> None:
    """The mean of every configuration with its 95 % interval, one panel for each graph and number of labels."""
    places = list(dict.fromkeys(cell.place for cell in cells))
    rows = [row for row in experiment.rows if any(cell.row == row for cell in cells)]
    names = [f"{row.method} {row.name}" for row in rows]
    lines = [textwrap.wrap(name, 32) for name in names]
    longest, most = max(len(line) for name in lines for line in name), max(map(len, lines))
    figure.set_size_inches(0.8 + 0.09 * longest + 2.6 * len(places), 1.2 + (0.1 + 0.16 * most) * len(rows))
    panels = figure.subplots(1, len(places), sharey=True, squeeze=False)[0]
    for place, axes in zip(places, panels, strict=True):
        for cell in cells:
            if cell.place == place and cell.accuracies:
                tint = BLUE if cell.row.method == "cagat" else GREY
                axes.errorbar([cell.mean], [rows.index(cell.row)], xerr=[cell.half], color=tint, marker="o", capsize=3)
        axes.set(title=f"{place[0]}, {place[1]} labels", xlabel="test accuracy, % (95 % interval)")
        axes.set_xlim(_possible(axes.get_xlim()))
    panels[0].set_yticks(range(len(rows)), ["\n".join(name) for name in lines])
    panels[0].set_ylim(len(rows) - 0.5, -0.5)


def _possible(limits: tuple[float, float]) -> tuple[float, float]:
    """Limits of an axis without what no accuracy can be; intervals over two or three splits reach beyond."""
    return max(limits[0], 0), min(limits[1], 100)


def _draw_losses(figure: Any, experiment: Experiment, store: JobStore) -> None:
    axes, jobs = figure.subplots(), experiment.jobs()
    for row, colour in zip(experiment.rows, SERIES, strict=False):
        records = [store.found(job) for job in jobs if (job.method, job.preset) == (row.method, row.preset)]
        curves = [record["loss"] for record in records if record is not None and "loss" in record]
        if curves:
            draw_curves(axes, curves, colour, _label(row))
    axes.set(title=experiment.title, xlabel="epoch", ylabel="cross-entropy on the training nodes, with dropout")
    axes.legend(frameon=False, title="mean and range over the splits")


def _draw_coefficients(figure: Any, experiment: Experiment, cells: list[TableCell]) -> None:
    figure.set_size_inches(9, 3.8)
    panels = figure.subplots(1, 2, sharey=True)
    for key, axes, colour in zip(("alpha", "lam"), panels, SERIES, strict=False):
        points = [(dict(cell.row.changes)[key], cell.mean, cell.std) for cell in cells if key in dict(cell.row.changes)]
        if points:
            values, means, deviations = zip(*points, strict=True)
            axes.errorbar(values, means, yerr=deviations, color=colour, marker="o", capsize=3)
        axes.set(xlabel=key)
    panels[0].set(ylabel="test accuracy, % (± standard deviation)")
    figure.suptitle(f"CaGAT on {', '.join(experiment.graph_names)}, the other coefficients as in the paper")


def _draw_over_labels(figure: Any, experiment: Experiment, cells: list[TableCell]) -> None:
    count = len(experiment.graph_names)
    figure.set_size_inches(4 * count, 4)
    panels = figure.subplots(1, count, squeeze=False)[0]
    for dataset, axes in zip(experiment.graph_names, panels, strict=True):
        # A colour for each method, and a line for each of its rows.
        methods = list(dict.fromkeys(row.method for row in experiment.rows))
        for row in experiment.rows:
            number = [other for other in experiment.rows if other.method == row.method].index(row)
            points = [cell for cell in cells if (cell.row, cell.dataset) == (row, dataset) and cell.accuracies]
            places, name = [str(cell.labels) for cell in points], f"{row.method} ({row.name})"
            _draw_intervals(axes, places, points, SERIES[methods.index(row.method)], name, ("-", "--", ":")[number % 3])
        axes.set(title=dataset, xlabel="labels per class")
    panels[0].set(ylabel="test accuracy, % (with 95 % intervals)")
    panels[-1].legend(frameon=False)


def _draw_choices(figure: Any, experiment: Experiment, cells: list[TableCell]) -> None:
    """CaGAT with every strategy above, other models with some of them below."""
    above = [row for row in experiment.rows if row.method == "cagat"]
    groups = [rows for rows in (above, [row for row in experiment.rows if row not in above]) if rows]
    figure.set_size_inches(4 * len(experiment.graph_names), 4 * len(groups))
    panels = figure.subplots(len(groups), len(experiment.graph_names), squeeze=False)
    for rows, line in zip(groups, panels, strict=True):
        for dataset, axes in zip(experiment.graph_names, line, strict=True):
            for row, colour in zip(rows, SERIES, strict=False):
                points = [cell for cell in cells if (cell.row, cell.dataset) == (row, dataset) and cell.accuracies]
                name = row.strategy if row.method == "cagat" else f"{row.strategy}, {row.method}"
                _draw_intervals(axes, [str(cell.labelled) for cell in points], points, colour, str(name))
            axes.set(title=f"{dataset}, CaGAT" if rows == above else dataset, xlabel="labels in all")
            axes.set_ylim(_possible(axes.get_ylim()))
        line[0].set(ylabel="test accuracy, % (with 95 % intervals)")
        line[-1].legend(frameon=False)


def _draw_over_graphs(figure: Any, experiment: Experiment, cells: list[TableCell]) -> None:
    graphs = [name for name in experiment.graph_names if any(cell.dataset == name for cell in cells)]
    figure.set_size_inches(2 + 0.9 * len(graphs), 5)
    axes = figure.subplots()
    for number, (row, colour) in enumerate(zip(experiment.rows, SERIES, strict=False)):
        points = [cell for cell in cells if cell.row == row and cell.accuracies]
        aside = 0.18 * (number - (len(experiment.rows) - 1) / 2)
        _draw_intervals(
            axes, [graphs.index(cell.dataset) + aside for cell in points], points, colour, _label(row), "none"
        )
    names = [name.replace(":", "\n").replace(",", "\n") for name in graphs]
    axes.set_xticks(range(len(graphs)), names, fontsize="small")
    axes.set(ylabel="test accuracy, % (with 95 % intervals)")
    axes.legend(frameon=False)


def _draw_intervals(
    axes: Any, places: Sequence[Any], cells: list[TableCell], colour: str, label: str, line: str = "-"
) -> None:
    means, halves = [cell.mean for cell in cells], [cell.half for cell in cells]
    axes.errorbar(places, means, yerr=halves, color=colour, marker="o", linestyle=line, capsize=3, label=label)
