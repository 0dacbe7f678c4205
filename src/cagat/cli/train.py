"""`cagat train`: from a graph to a run directory."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from cagat.cli.flags import with_settings
from cagat.cli.output import show_messages
from cagat.settings import RUN, SETTINGS, TrainConfig, can_name_a_file


def _option(text: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=RUN, metavar=metavar, show_default=False)


@with_settings(SETTINGS)
def train(
    out: Annotated[Path | None, _option("Run directory (default: runs/DATE-DATASET-MODEL-SEED).")] = None,
    config: Annotated[Path | None, _option("Read settings from a YAML file; flags win.")] = None,
    resume: Annotated[
        Path | None,
        _option("Continue the run in this directory, optionally with more --epochs or --patience.", metavar="DIR"),
    ] = None,
    as_json: Annotated[bool, _option("Print the result as one line of JSON.", "--json")] = False,
    **flags: Any,
) -> None:
    """Train a model on a graph; by default CaGAT on Cora, with 20 labels per class.

    Settings that are not given come from the --config file, then from the model's preset (`cagat models`). The run
    directory gets config.yaml, metrics.jsonl, model.safetensors, checkpoint.safetensors, predictions.csv, curves.png
    and result.json.

    To use several processes: torchrun --nproc-per-node N -m cagat train --parallel graph ...

    Ctrl-C stops after the current epoch; `cagat train --resume DIR` continues, also after a crash. Exit codes: 0 done,
    1 bad input or not enough resources, 2 wrong usage, 3 the loss is not finite, 130 interrupted.
    """
    from cagat.cli.training_display import follow_quietly, run_and_show
    from cagat.distributed import World
    from cagat.training.compute import give_back_freed_memory, keep_freed_memory

    with World.joined() as world:
        if world.is_first:
            show_messages()
            run = _started(flags, out, config) if resume is None else _resumed(resume, flags, out, config)
            if run.config.out_of_core:
                give_back_freed_memory()
                code = _out_of_core(run, as_json, world)
            else:
                keep_freed_memory()
                code = run_and_show(run, as_json, world)
        else:
            keep_freed_memory()
            code = follow_quietly(world)
    raise typer.Exit(code)


def _out_of_core(run: Any, as_json: bool, world: Any) -> int:
    """Train on one part after the other, each by a thread of its own."""
    from cagat.cli.training_display import run_and_show
    from cagat.distributed import take_turns
    from cagat.errors import ConfigError
    from cagat.parts import read_manifest
    from cagat.training import join_run

    if world.size > 1:
        raise ConfigError("--out-of-core is for one process alone. Start it without torchrun, or use --parallel graph.")
    parts = read_manifest(Path(run.config.dataset)).num_parts
    return take_turns(parts, run.directory.path, lambda world: run_and_show(run, as_json, world), join_run)


def _started(flags: dict[str, Any], out: Path | None, config_file: Path | None) -> Any:
    from cagat.data.loading import graph_name
    from cagat.errors import ConfigError
    from cagat.training import Run
    from cagat.training.config_file import read_config

    values = {} if config_file is None else read_config(config_file)
    wanted = values.pop("out", None)
    if out is None and wanted is not None:
        if not isinstance(wanted, str) or not can_name_a_file(wanted):
            raise ConfigError(f"{config_file}: out must be the path of a directory, but is {wanted!r}.")
        out = Path(wanted)
    config = TrainConfig.from_values({str(key).replace("-", "_"): value for key, value in values.items()} | flags)
    if out is None:
        graph = graph_name(config.dataset).partition(":")[0]
        # Milliseconds, so that two runs that start in the same second get a directory each.
        now = datetime.now().strftime("%Y%m%d-%H%M%S-%f")[:-3]
        out = Path("runs") / f"{now}-{graph}-{config.model}-{config.seed}"
    return Run.start(config, out)


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
            f"--resume uses the configuration in {directory}; only --epochs, --patience and --tensorboard may "
            f"change, not --{refused[0].replace('_', '-')}. For another configuration start a new run."
        )
    return run
