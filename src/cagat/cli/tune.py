"""`cagat tune`: search for a configuration."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cagat.cli.output import progress, show_messages
from cagat.cli.reproduce import MOST_JOBS
from cagat.settings import SETTINGS

if TYPE_CHECKING:
    from cagat.experiments.tuning import Search


def _setting(name: str, text: str | None = None) -> Any:
    """An option with the range of a setting, and its help unless there is a better one."""
    setting = SETTINGS[name]
    return typer.Option(min=setting.low, max=setting.high, help=text or setting.text)


def tune(
    out: Annotated[Path, typer.Option(help="The directory of the search; one that is there is gone on with.")],
    model: Annotated[str, _setting("model")] = "cagat",
    dataset: Annotated[list[str] | None, typer.Option(help="A graph, or several (default: cora).")] = None,
    labels: Annotated[
        list[int] | None,
        _setting("labels", "Training nodes per class, or several (default: 20; for your own graph, what it has)."),
    ] = None,
    val_labels: Annotated[
        int | None,
        typer.Option(min=1, max=SETTINGS["val_labels"].high, help="Validation nodes per class (same default)."),
    ] = None,
    splits: Annotated[int, typer.Option(min=1, max=1000, help="Splits of each.")] = 3,
    first_seed: Annotated[int, typer.Option(min=100, max=2**31, help="The seed of the first split.")] = 100,
    trials: Annotated[int, typer.Option(min=1, help="Configurations to try in all.")] = 50,
    epochs: Annotated[int, _setting("epochs")] = 10_000,
    patience: Annotated[int, _setting("patience")] = 100,
    jobs: Annotated[int, typer.Option(min=1, max=MOST_JOBS, help="Processes that work at once.")] = 1,
    seed: Annotated[int, _setting("seed", "Seed of the search.")] = 0,
    space: Annotated[Path | None, typer.Option(help="A YAML file like configs/search.yaml: what to search.")] = None,
    finalists: Annotated[
        Path | None, typer.Option(help="Try nothing new: judge the best --trials of this earlier search again.")
    ] = None,
    data_dir: Annotated[str | None, _setting("data_dir")] = None,
    source: Annotated[str | None, _setting("source")] = None,
    target: Annotated[str | None, _setting("target")] = None,
    node: Annotated[str | None, _setting("node")] = None,
    label: Annotated[str | None, _setting("label")] = None,
    columns: Annotated[str | None, _setting("columns")] = None,
    class_weight: Annotated[str | None, _setting("class_weight")] = None,
) -> None:
    """Search for the configuration with the best mean validation accuracy.

    Only validation nodes judge, of splits with seeds from 100 on: the splits that tables report have smaller ones. The
    presets of the model are tried first. Interrupt at will and give the same command again to go on.

    A graph that comes with a split keeps its test nodes out of the search. For your own graph without one, a quarter
    of the labelled nodes of each class judges and the others train, unless --labels or --val-labels say otherwise. The
    first lines say how many nodes that makes.

    A search on few splits finds several good configurations and a lucky one: judge its best again on more splits or
    graphs with --finalists, and with a --first-seed whose splits the search has not seen.

    The directory gets best.yaml (for `cagat train --config`), search.png, trials.csv, and search.json and fits.jsonl,
    with which a search goes on.
    """
    show_messages()
    from cagat.experiments.tuning import Search, TuneOptions
    from cagat.training.run_directory import directory_lock

    # A search may go on from another directory.
    columns = None if columns is None else str(Path(columns).absolute())
    given = {"source": source, "target": target, "node": node, "label": label, "columns": columns}
    given["class_weight"] = class_weight
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
        given={key: value for key, value in given.items() if value is not None},
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
            typer.echo(f"Interrupted after {search.finished} trials. Give the same command again to go on.", err=True)
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
            typer.echo("No trial has done all its fits yet.")
            return
        raise CagatError(f"No configuration could be judged: {search.commonest_reason()}")
    write_report(search)
    typer.echo(
        f"Best of {search.finished} trials: {100 * (best.value or 0):.2f} % of the validation nodes right\n"
        f"Try it: cagat train --config {search.options.out / 'best.yaml'}"
    )
