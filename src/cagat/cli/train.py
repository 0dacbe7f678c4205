"""`cagat train`: from a graph to a run directory."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cagat.cli.messages import show_messages

if TYPE_CHECKING:
    from cagat.training import TrainConfig

_DATA, _MODEL, _CAGAT, _FITTING, _RUN = "The graph", "The model", "CaGAT's own", "Training", "The run"
_SCALE = "Large graphs"


def _option(help_text: str, panel: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel=panel, metavar=metavar, show_default=False)


def train(
    dataset: Annotated[str | None, _option("A name of `cagat data list`, or a path (default: cora).", _DATA)] = None,
    data_dir: Annotated[Path | None, _option("Where published graphs are looked for and put.", _DATA)] = None,
    feature_norm: Annotated[str | None, _option("Scaling of features: l1, l2, binary, none.", _DATA)] = None,
    labels: Annotated[
        int | None, _option("Training nodes a class (default: the graph's own split, or 20).", _DATA)
    ] = None,
    val_labels: Annotated[int | None, _option("Validation nodes a class (default: 20).", _DATA)] = None,
    seed: Annotated[int | None, _option("Of the split and of the weights (default: 0).", _DATA)] = None,
    model: Annotated[str | None, _option("Which model (default: cagat).", _MODEL)] = None,
    preset: Annotated[str | None, _option("Which published configuration of the model.", _MODEL)] = None,
    hidden: Annotated[int | None, _option("Units of a hidden layer, or of each of its heads.", _MODEL)] = None,
    layers: Annotated[int | None, _option("Number of layers.", _MODEL)] = None,
    heads: Annotated[int | None, _option("Heads of a hidden layer.", _MODEL)] = None,
    dropout: Annotated[float | None, _option("Dropout on each layer's input.", _MODEL)] = None,
    attention_dropout: Annotated[float | None, _option("Dropout on the attention.", _MODEL)] = None,
    decay_biases: Annotated[
        bool | None, _option("Weight decay of biases, too (gat).", _MODEL, "--decay-biases/--no-decay-biases")
    ] = None,
    neighbours: Annotated[int | None, _option("Neighbours of a node that are sampled (cvd-pp).", _MODEL)] = None,
    batch_size: Annotated[int | None, _option("Training nodes in a step (cvd-pp, khop).", _MODEL)] = None,
    alpha: Annotated[float | None, _option("Share of context in the attention.", _CAGAT)] = None,
    lam: Annotated[float | None, _option("Share of aggregated features.", _CAGAT)] = None,
    xi: Annotated[float | None, _option("Weight of the affinity.", _CAGAT)] = None,
    rounds: Annotated[int | None, _option("Rounds, K.", _CAGAT)] = None,
    steps: Annotated[int | None, _option("Steps of diffusion in a round, T.", _CAGAT)] = None,
    support: Annotated[str | None, _option("Where S lives: full or edges.", _CAGAT)] = None,
    affinity: Annotated[str | None, _option("Where the affinity is taken: edges or full.", _CAGAT)] = None,
    feedback: Annotated[bool | None, _option("Feed H back.", _CAGAT, "--feedback/--no-feedback")] = None,
    normalization: Annotated[str | None, _option("Of the adjacency: row, sym or walk.", _CAGAT)] = None,
    propagation: Annotated[str | None, _option("In all layers, or only in the last.", _CAGAT)] = None,
    learn_coefficients: Annotated[
        bool | None,
        _option("Learn alpha, lam and xi.", _CAGAT, "--learn-coefficients/--no-learn-coefficients"),
    ] = None,
    epochs: Annotated[int | None, _option("The largest number of epochs.", _FITTING)] = None,
    patience: Annotated[int | None, _option("Epochs to wait for a lower validation loss.", _FITTING)] = None,
    lr: Annotated[float | None, _option("Adam's learning rate.", _FITTING)] = None,
    weight_decay: Annotated[float | None, _option("Adam's L2 penalty.", _FITTING)] = None,
    batching: Annotated[
        str | None, _option("Steps on subgraphs, of parts or of neighbourhoods: cluster, khop.", _SCALE)
    ] = None,
    parts: Annotated[int | None, _option("Parts that the graph is cut into (cluster; default: 50).", _SCALE)] = None,
    parts_per_batch: Annotated[int | None, _option("Parts in a batch (cluster; default: 10).", _SCALE)] = None,
    hops: Annotated[
        int | None, _option("How far neighbourhoods reach (khop; default: so far that they are exact).", _SCALE)
    ] = None,
    parallel: Annotated[
        str | None, _option("What processes of torchrun share: data (the batches), graph (the nodes).", _SCALE)
    ] = None,
    device: Annotated[str | None, _option("cpu, cuda and so on (default: a GPU if there is one).", _FITTING)] = None,
    threads: Annotated[int | None, _option("CPU threads (default: all).", _FITTING)] = None,
    deterministic: Annotated[
        bool | None,
        _option("The same bits with any number of threads.", _FITTING, "--deterministic/--no-deterministic"),
    ] = None,
    out: Annotated[Path | None, _option("The run directory (default: runs/DATE-DATASET-MODEL-SEED).", _RUN)] = None,
    config: Annotated[Path | None, _option("Take these values from a YAML file; a flag wins.", _RUN)] = None,
    resume: Annotated[
        Path | None,
        _option("Go on with the run of this directory, perhaps with more --epochs or --patience.", _RUN, metavar="DIR"),
    ] = None,
    tensorboard: Annotated[
        bool | None,
        _option("Write TensorBoard's event files, too.", _RUN, "--tensorboard/--no-tensorboard"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON line at the end.", rich_help_panel=_RUN)
    ] = False,
) -> None:
    """Train a model on a graph; by default CaGAT on Cora, with 20 labels a class.

    What is not given is taken from the --config file, then from the model's preset (`cagat models`). The run directory
    gets config.yaml, metrics.jsonl, model.safetensors, checkpoint.pt, predictions.csv, curves.png and result.json.

    Under `torchrun --nproc-per-node N -m cagat train ...` several processes share the work (--parallel).

    Ctrl-C stops after the current epoch and keeps the best weights; so does a kill, but for the last seconds. Exit
    codes: 0 done, 1 the input or the machine is at fault, 2 wrong usage, 3 the loss is no longer a number, 130
    interrupted.
    """
    flags = {key: value for key, value in locals().items() if value is not None}
    for key in ("out", "config", "resume", "as_json"):
        flags.pop(key, None)
    from cagat.cli.training_display import follow_quietly, run_and_show
    from cagat.distributed import World
    from cagat.training.freed_memory import keep_freed_memory

    keep_freed_memory()
    with World.joined() as world:
        if world.is_first:
            show_messages()
            run = _started(flags, out, config) if resume is None else _resumed(resume, flags, out, config)
            code = run_and_show(run, as_json, world)
        else:
            code = follow_quietly(world)
    raise typer.Exit(code)


def _started(flags: dict[str, Any], out: Path | None, config_file: Path | None) -> Any:
    from cagat.errors import ConfigError
    from cagat.training import Run, TrainConfig
    from cagat.training.config_file import read_config

    values = {} if config_file is None else read_config(config_file)
    if out is None and (wanted := values.pop("out", None)) is not None:
        if not isinstance(wanted, str):
            raise ConfigError(f"{config_file}: out must be the path of a directory, but is {wanted!r}.")
        out = Path(wanted)
    values.pop("out", None)
    named = {key: str(value) if isinstance(value, Path) else value for key, value in flags.items()}
    config = TrainConfig.from_values({str(key).replace("-", "_"): value for key, value in values.items()} | named)
    return Run.start(config, _free_directory(config) if out is None else out)


def _free_directory(config: "TrainConfig") -> Path:
    """A directory of its own for a run: two that start in the same second get two."""
    from datetime import datetime

    graph = Path(config.dataset.partition(":")[0]).stem
    name = f"{datetime.now().strftime('%Y%m%d-%H%M%S-%f')[:-3]}-{graph}-{config.model}-{config.seed}"
    return Path("runs") / name


def _resumed(directory: Path, flags: dict[str, Any], out: Path | None, config_file: Path | None) -> Any:
    from cagat.errors import ConfigError
    from cagat.training import Run

    changes = {key: flags.pop(key) for key in ("epochs", "patience", "tensorboard") if key in flags}
    run = Run.resume(directory, **changes)
    known = run.config.values()
    refused = [key for key, value in flags.items() if known.get(key) != value]
    refused += ["out"] * (out is not None) + ["config"] * (config_file is not None)
    if refused:
        raise ConfigError(
            f"--resume goes on with the configuration in {directory}; only --epochs, --patience and --tensorboard may "
            f"change, not --{refused[0].replace('_', '-')}. For another configuration start a new run."
        )
    return run
