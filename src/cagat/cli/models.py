"""`cagat models`: what can be trained."""

import json
from typing import Annotated

import typer


def models(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with the values of all presets.")
    ] = False,
) -> None:
    """List the models, their papers and their presets, the default first."""
    from cagat.configs import card, names

    cards = [card(name) for name in names()]
    if as_json:
        found = {known.name: {key: value for key, value in vars(known).items() if key != "name"} for known in cards}
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "model", "paper", "presets", box=None, pad_edge=False)
    for known in cards:
        presets = sorted(known.presets, key=lambda preset: preset != known.default)
        table.add_row(known.name, known.title, known.paper, ", ".join(presets))
    Console().print(table)
    typer.echo("\nTrain one: cagat train --model NAME --preset PRESET. Values of all presets: cagat models --json")
