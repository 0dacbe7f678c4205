"""`cagat tune`: search for a configuration."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cagat.cli.flags import with_settings
from cagat.cli.output import progress, show_messages
from cagat.cli.reproduce import MOST_JOBS
from cagat.settings import READING, SETTINGS

if TYPE_CHECKING:
    from cagat.experiments.tuning import Search


def _setting(name: str, text: str | None = None) -> Any:
    """An option with the range of a setting, and its help unless there is a better one."""
    setting = SETTINGS[name]
    return typer.Option(min=setting.low, max=setting.high, help=text or setting.text)


@with_settings((*READING, "class_weight"))
def tune(
    out: Annotated[Path, typer.Option(help="Directory of the search; an existing search continues.")],
    model: Annotated[str, _setting("model")] = "cagat",
    dataset: Annotated[list[str] | None, typer.Option(help="A graph; repeat for several (default: cora).")] = None,
    labels: Annotated[
        list[int] | None,
        _setting(
            "labels", "Training nodes per class; repeat for several (default: 20; for your own graph, all it has)."
        ),
    ] = None,
    val_labels: Annotated[
        int | None,
        typer.Option(min=1, max=SETTINGS["val_labels"].high, help="Validation nodes per class (default: as --labels)."),
    ] = None,
    splits: Annotated[int, typer.Option(min=1, max=1000, help="Splits per graph and number of labels.")] = 3,
    first_seed: Annotated[int, typer.Option(min=100, max=2**31, help="Seed of the first split.")] = 100,
    trials: Annotated[int, typer.Option(min=1, help="Configurations to try in total.")] = 50,
    epochs: Annotated[int, _setting("epochs")] = 10_000,
    patience: Annotated[int, _setting("patience")] = 100,
    jobs: Annotated[int, typer.Option(min=1, max=MOST_JOBS, help="Number of processes.")] = 1,
    seed: Annotated[int, _setting("seed", "Seed of the search.")] = 0,
    space: Annotated[
        Path | None, typer.Option(help="A YAML file with the search space, like configs/search.yaml.")
    ] = None,
    finalists: Annotated[
        Path | None, typer.Option(help="Try nothing new: judge the best --trials of an earlier search again.")
    ] = None,
    data_dir: Annotated[str | None, _setting("data_dir")] = None,
    **flags: str,
) -> None:
    """Search for the configuration with the best mean validation accuracy.

    Only validation nodes are used, of splits with seeds from 100 on; published results use seeds below. The model's
    presets are tried first. Interrupt at any time; the same command continues.

    If the graph comes with a split, its test nodes stay out of the search. On your own graph without a split, a quarter
    of the labelled nodes of each class validates and the rest trains, unless --labels or --val-labels say otherwise.

    After a search on few splits, the best configuration may just be lucky: judge the best ones again on more splits or
    graphs with --finalists, and a --first-seed whose splits the search has not seen.

    The directory gets best.yaml (for `cagat train --config`), search.png, trials.csv, search.json and fits.jsonl.
    """
    show_messages()
    from cagat.experiments.tuning import Search, TuneOptions
    from cagat.files import directory_lock

    if "columns" in flags:  # A search may go on from another directory.
        flags["columns"] = str(Path(flags["columns"]).absolute())
    options = TuneOptions(
        out=out,
        model=model,
        datasets=tuple(dataset or ["cora"]),
        labels=tuple(labels or [None]),
        val_labels=val_labels,
        splits=splits,
        first_seed=first_seed,
        trials=trials,
        epochs=epochs,
        patience=patience,
        jobs=jobs,
        seed=seed,
        space=space,
        finalists=finalists,
        data_dir=data_dir,
        given=flags,
    )
    # Before anything is written: whether all graphs can be loaded and have enough labelled nodes.
    for sentence in options.nodes_used():
        typer.echo(sentence)
    with directory_lock(out):
        search = Search.open(options)
        # A batch system says SIGTERM where a person says Ctrl-C.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            _run(search)
        except KeyboardInterrupt:
            typer.echo(f"Interrupted after {search.finished} trials. Run the same command again to continue.", err=True)
            _report(search)
            raise typer.Exit(130) from None
        finally:
            signal.signal(signal.SIGTERM, before)
        _report(search)


def _run(search: "Search") -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn

    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with progress("{task.description}", BarColumn(bar_width=20), MofNCompleteColumn(), *times) as bars:
        task = bars.add_task("trials", total=search.options.trials, completed=search.finished)
        fits = bars.add_task("fits of this trial", total=len(search.options.tasks()))

        def after_trial() -> None:
            best = search.best()
            text = "trials" if best is None else f"trials, best {100 * (best.value or 0):.2f} %"
            bars.update(task, completed=search.finished, description=text)
            if not bars.console.is_terminal:
                bars.console.print(f"{search.finished} of {search.options.trials} {text}")

        search.run(lambda done, total: bars.update(fits, completed=done, total=total), after_trial)


def _report(search: "Search") -> None:
    from cagat.errors import CagatError
    from cagat.experiments.search_report import write_report

    best = search.best()
    if best is None:
        if search.finished < search.options.trials:
            typer.echo("No trial is finished yet.")
            return
        raise CagatError(f"No configuration could be judged: {search.commonest_reason()}")
    write_report(search)
    typer.echo(
        f"Best of {search.finished} trials: validation accuracy {100 * (best.value or 0):.2f} %\n"
        f"Try it: cagat train --config {search.options.out / 'best.yaml'}"
    )
