"""Commands on trained runs: `cagat predict`, `evaluate`, `doubts`, `embed`, `explore` and `report`."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from cagat.cli.output import show_messages

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, written by `cagat train`.")]
Dataset = Annotated[
    str | None,
    typer.Option(help="Another graph with the same features: a name or a path (default: the graph trained on)."),
]


OutOfCore = Annotated[
    bool,
    typer.Option("--out-of-core", help="Work on the parts of a graph one after the other, from disk."),
]


def predict(
    run: RunArgument,
    out: Annotated[Path, typer.Option(help="Output file: .csv or .parquet.")],
    dataset: Dataset = None,
    because: Annotated[
        bool | None,
        typer.Option(help="Name the labelled nodes behind each prediction (default: unless it takes minutes)."),
    ] = None,
    out_of_core: OutOfCore = False,
) -> None:
    """Predict the label of every node with a trained model.

    The file has one row per node: node, predicted, probability_CLASS for each class, split, confidence and, for CaGAT,
    because: the labelled nodes that contribute most to the prediction, with their shares.

    A graph in parts (`cagat data partition`) may be shared by the processes of `torchrun`, or worked on part by part
    with --out-of-core; `because` is empty then.
    """
    show_messages()
    from cagat.training import TrainedRun
    from cagat.training.compute import give_back_freed_memory
    from cagat.training.predictions import TABLE_FILES, require_suffix
    from cagat.training.trained_parts import TrainedParts, in_parts

    require_suffix(out, TABLE_FILES)
    if in_parts(run, dataset):
        give_back_freed_memory()
        _tell(out, TrainedParts(run, dataset).predict(out, out_of_core=out_of_core))
        return
    _refuse_out_of_core(out_of_core)
    predictions = TrainedRun(run).predict(dataset, because=because)
    predictions.write(out)
    typer.echo(f"{out}: {len(predictions.nodes)} nodes")


def evaluate(
    run: RunArgument,
    dataset: Annotated[
        str | None, typer.Option(help="Another graph with labels: a name or a path (default: the graph trained on).")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Where to save the reliability diagram: a .png (default: RUN/reliability.png; none with --dataset)."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show how accurate a trained model is, overall and per class, and how far to trust its probabilities.

    Accuracies come with 95 % intervals. The expected calibration error is the mean gap between confidence and accuracy.
    """
    show_messages()
    from rich.console import Console
    from rich.table import Table

    from cagat.training import TrainedRun
    from cagat.training.evaluation import draw_reliability
    from cagat.training.predictions import require_suffix

    if plot is not None:
        require_suffix(plot, (".png",))
    trained = TrainedRun(run)
    found = trained.evaluate(dataset)
    if plot is None and dataset is None:
        plot = trained.directory.reliability
    if found.measured_on is not None and plot is not None:
        draw_reliability(found, plot)
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
        return
    width = max(map(len, found.accuracy))
    for part, share in found.accuracy.items():
        low, high = found.intervals[part]
        typer.echo(
            f"{_words(part):{width}} {100 * share:.1f} % of {found.sizes[part]} nodes, 95 % interval "
            f"{100 * low:.1f} to {100 * high:.1f} %"
        )
    if found.measured_on is None:
        typer.echo("No labelled node was held out, so the accuracy on new nodes is unknown.")
        return
    part = _words(found.measured_on)
    typer.echo(f"expected calibration error {found.calibration_error:.1f} % ({part} nodes)")
    title = f"{part.capitalize()} nodes by class"
    table = Table("class", f"{part} nodes", "recall", "precision", title=title)
    for row in found.classes:
        table.add_row(row.name, str(row.nodes), _percent(row.recall), _percent(row.precision))
    Console().print(table)
    if plot is not None:
        typer.echo(f"{plot}: reliability diagram")


def doubts(
    run: RunArgument,
    top: Annotated[int, typer.Option(min=1, help="How many to show, the most doubtful first.")] = 20,
    out: Annotated[Path | None, typer.Option(help="Write all of them to this file: .csv or .parquet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List labels that may be wrong: models that were not trained on them predict another class.

    Requires a run with folds: cagat train --protocol all
    """
    show_messages()
    from rich.console import Console
    from rich.table import Table

    from cagat.training.doubts import OutOfFold, doubts_table, find_doubts
    from cagat.training.predictions import TABLE_FILES, require_suffix, write_table
    from cagat.training.run_directory import RunDirectory

    if out is not None:
        require_suffix(out, TABLE_FILES)
    known = OutOfFold.read(RunDirectory(run))
    found = find_doubts(known)
    if out is not None:
        write_table(doubts_table(found), out)
    if as_json:
        shown = [doubt._asdict() for doubt in found[:top]]
        typer.echo(json.dumps({"labelled": len(known.nodes), "doubted": len(found), "doubts": shown}))
        return
    typer.echo(
        f"{len(found)} of {len(known.nodes)} labels differ from the prediction of models that were not trained on them."
    )
    if found:
        table = Table("node", "label", "predicted", "probability of the label", "probability of the prediction")
        for doubt in found[:top]:
            table.add_row(*doubt[:3], _percent(doubt.label_probability), _percent(doubt.predicted_probability))
        Console().print(table)
    if out is not None:
        typer.echo(f"{out}: {len(found)} labels")


def embed(
    run: RunArgument,
    out: Annotated[
        Path | None, typer.Option(help="Output file: .npz or .parquet (default: RUN/embedding.npz).")
    ] = None,
    dataset: Dataset = None,
    out_of_core: OutOfCore = False,
) -> None:
    """Write the embedding (last hidden layer) of every node, for plots, clustering or other models.

    An .npz holds `nodes` (names) and `embedding` (nodes x units); a Parquet file the columns node, unit_0, unit_1, ...
    For a graph in parts it is a Parquet file.
    """
    show_messages()
    from cagat.training import TrainedRun
    from cagat.training.compute import give_back_freed_memory
    from cagat.training.predictions import VECTOR_FILES, require_suffix
    from cagat.training.trained_parts import TrainedParts, in_parts

    if in_parts(run, dataset):
        out = run / "embedding.parquet" if out is None else out
        give_back_freed_memory()
        _tell(out, TrainedParts(run, dataset).embed(out, out_of_core=out_of_core))
        return
    _refuse_out_of_core(out_of_core)
    out = run / "embedding.npz" if out is None else out
    require_suffix(out, VECTOR_FILES)
    embeddings = TrainedRun(run).embed(dataset)
    embeddings.write(out)
    typer.echo(f"{out}: {embeddings.vectors.shape[0]} nodes x {embeddings.vectors.shape[1]} units")


def explore(
    run: RunArgument,
    out: Annotated[Path, typer.Option(help="Output file: .html.")] = Path("explore.html"),
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of nodes to show attention for, test nodes first (default: all up to 3000, else 400)."
        ),
    ] = None,
    node: Annotated[list[str] | None, typer.Option(help="A node that must be among them; repeat for several.")] = None,
) -> None:
    """Make a page that shows a trained model: its embedding, and each node's attention before and after diffusion.

    The page is one file and needs no network. It also shows how much attention stays within a class, how widely it
    spreads, which classes are confused, and the training curves. Requires: pip install 'cagat[explore]'
    """
    show_messages()
    from cagat.errors import ConfigError

    if out.suffix not in (".html", ".htm"):
        raise ConfigError(f"{out}: the file must end in .html.")
    from cagat.explore import write_page

    command = shlex.join(["cagat", *sys.argv[1:]])
    page = write_page(run, out, nodes=nodes, wanted=tuple(node or ()), command=command)
    typer.echo(f"{page.path}: {page.nodes} nodes, {page.shown} with their attention, {page.size / 1e6:.1f} MB")


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Run directories, written by `cagat train`.")],
    out: Annotated[Path, typer.Option(help="Name of the output files, without suffix.")] = Path("report"),
) -> None:
    """Compare finished runs: tables, error bars and curves, as an HTML and a Markdown page.

    Runs that differ only in their seed count as one configuration. Configurations on the same graph are compared split
    by split.
    """
    show_messages()
    from cagat.experiments.run_report import write_run_report

    paths = write_run_report(runs, out, shlex.join(["cagat", *sys.argv[1:]]))
    typer.echo("\n".join(map(str, paths)))


def _tell(out: Path, nodes: int | None) -> None:
    if nodes is not None:  # In the other processes of torchrun.
        typer.echo(f"{out}: {nodes} nodes")


def _refuse_out_of_core(out_of_core: bool) -> None:
    from cagat.errors import ConfigError

    if out_of_core:
        raise ConfigError("--out-of-core is for a graph in parts. Cut it first: cagat data partition SOURCE OUT")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _words(part: str) -> str:
    return part.replace("_", "-")
