"""`cagat reproduce`: the tables and figures."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cagat.cli.output import duration, progress, show_messages

if TYPE_CHECKING:
    from cagat.experiments.experiment import Experiment

WHAT = (
    "table1", "few-labels", "factors", "suggest", "other-graphs", "table1-seen", "table2", "figure1", "own-labels",
    "calibration", "figure2", "readings", "noise", "learned", "ablation",
)  # fmt: skip
LISTS = ("--datasets", "--methods", "--labels")
# More processes than a machine has cores for fill its memory before any of them has worked.
MOST_JOBS = 1024


def reproduce(
    what: Annotated[str, typer.Argument(help=f"One of {', '.join(WHAT)}, all and status.")],
    out: Annotated[Path, typer.Option(help="Directory of the results.")] = Path("results"),
    datasets: Annotated[list[str] | None, typer.Option(help="Only these graphs, by name or path.")] = None,
    methods: Annotated[list[str] | None, typer.Option(help="Only these models.")] = None,
    labels: Annotated[list[int] | None, typer.Option(min=1, help="Only these numbers of labels per class.")] = None,
    splits: Annotated[
        int | None, typer.Option("--splits", "--seeds", min=1, max=100, help="Number of splits (or seeds).")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=MOST_JOBS, help="Number of processes; results do not depend on it.")
    ] = 1,
    data_dir: Annotated[
        Path | None, typer.Option(help="Directory of published graphs (default: $CAGAT_DATA, or your cache directory).")
    ] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Refuse torch operations that are not deterministic.")
    ] = False,
) -> None:
    """Run experiments of the paper, or ours, and write their tables and figures.

    Every finished run is saved (NAME.jsonl). Interrupt at any time; the same command continues, also in several
    terminals or on several machines that share the directory. NAME.csv, .md, .html, .png and .svg show all runs
    finished so far.

    Each run uses one thread, so results depend neither on --jobs nor on the number of cores.
    """
    show_messages()
    from cagat.errors import ConfigError, nearest
    from cagat.experiments.experiment import EXPERIMENTS

    if what not in (*WHAT, "all", "status"):
        raise ConfigError(f"There is no {what!r} to reproduce.{nearest(what, (*WHAT, 'all', 'status'))}")
    chosen = [EXPERIMENTS[name]() for name in (WHAT if what in ("all", "status") else (what,))]
    known = {row.method for experiment in chosen for row in experiment.rows}
    for method in methods or ():
        if method not in known:
            raise ConfigError(f"{what} has no method {method!r}.{nearest(method, sorted(known))}")
    parts = [experiment.restricted(datasets or (), methods or (), labels or (), splits) for experiment in chosen]
    if what == "status":
        for experiment in parts:
            _show_status(experiment, out)
        return
    # Of all experiments together, each takes those methods that it has; some have none of them.
    parts = [experiment for experiment in parts if experiment.rows]
    place = None if data_dir is None else str(data_dir)
    for experiment in parts:
        require_drawable_splits(experiment, place)
    for experiment in parts:
        _reproduce(experiment, out, jobs, place, deterministic)


def require_drawable_splits(experiment: "Experiment", data_dir: str | None) -> None:
    """Raise unless every graph can be loaded and has enough nodes in each class, before anything is written."""
    from cagat.experiments.experiment import OWN_GRAPHS

    # Which nodes are drawn depends on the seed, but not whether there are enough.
    for job in experiment.restricted(splits=1).jobs():
        if job.can_run or job.task.dataset not in OWN_GRAPHS:
            job.require_drawable_split(data_dir)
    for name in dict.fromkeys(job.task.dataset for job in experiment.jobs() if not job.can_run):
        sentence = "is not part of cagat and is left out. To include it, add its path to --datasets."
        typer.echo(f"{name} {sentence}", err=True)


def repeated_options(arguments: list[str]) -> list[str]:
    """Let `--methods a b` mean `--methods a --methods b`, which is what the parser understands."""
    repeated: list[str] = []
    option = None
    for argument in arguments:
        if argument.startswith("--"):
            option = argument if argument in LISTS else None
        elif option is not None and repeated[-1] != option:
            repeated.append(option)
        repeated.append(argument)
    return repeated


def _reproduce(experiment: "Experiment", out: Path, processes: int, data_dir: str | None, deterministic: bool) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn

    from cagat.data.loading import graph_name
    from cagat.experiments.figures import draw
    from cagat.experiments.jobs import JobStore
    from cagat.experiments.summary import table_cells
    from cagat.experiments.tables import write_tables
    from cagat.experiments.workers import work_through
    from cagat.files import disk_errors

    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    store, all_jobs, interrupted = JobStore(out, experiment.name), experiment.runnable_jobs(), False
    columns = (experiment.name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), "{task.description}")
    try:
        with progress(*columns, transient=False) as bars:
            task = bars.add_task("", total=len(all_jobs))

            def show(done: int, seconds: float | None) -> None:
                left = "" if seconds is None else f"about {duration(seconds)} left"
                bars.update(task, completed=done, description=left)

            work_through(store, all_jobs, processes, data_dir, show, deterministic)
    except KeyboardInterrupt:
        interrupted = True
    # Graphs of one's own by their names: where they lie is nobody's business.
    paths = {dataset: graph_name(dataset) for dataset in experiment.datasets}
    command = shlex.join(["cagat", *(paths.get(word, word) for word in sys.argv[1:])])
    cells = table_cells(experiment, store)
    pictures = draw(experiment, cells, store, out)
    written = [*write_tables(experiment, cells, out, command, pictures), *pictures]
    lines = [f"{experiment.name}: {len(store.records)} runs in {store.records.path}", *map(str, written)]
    typer.echo("\n".join(lines))
    if interrupted:
        typer.echo("Interrupted. Run the same command again to continue.", err=True)
        raise typer.Exit(130)


def _show_status(experiment: "Experiment", out: Path) -> None:
    from cagat.experiments.jobs import JobStore

    all_jobs = experiment.runnable_jobs()
    store = JobStore(out, experiment.name) if out.is_dir() else None
    done = 0 if store is None else sum(store.found(job) is not None for job in all_jobs)
    typer.echo(f"{experiment.name:12} {done:5} of {len(all_jobs)} runs done")
