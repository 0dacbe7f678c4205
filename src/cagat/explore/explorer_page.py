"""The page of `cagat explore`."""

import html
import json
import logging
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from plotly.offline import get_plotlyjs

from cagat.data.graph import SPLIT_NAMES
from cagat.diffusion import Coefficients
from cagat.explore.agreement import agreement_view
from cagat.explore.attention_layers import AttentionLayer, NoAttentionError
from cagat.explore.chosen_nodes import chosen_nodes
from cagat.explore.confusion import confusion
from cagat.explore.course import course
from cagat.explore.embedding import UNKNOWN, node_frame
from cagat.explore.entropy import entropy_view
from cagat.explore.packed import packed_integers, packed_numbers
from cagat.explore.shown_rows import STRONGEST, ShownRows
from cagat.explore.subject import AnyRun, Integers, Subject
from cagat.explore.view import View
from cagat.files import atomic_write
from cagat.nn import CaGATConv
from cagat.style import SERIES, SYMBOLS, page, source_line

_logger = logging.getLogger(__name__)

_ROOM = 3_000_000
"""How many numbers of attention a page holds unless more are asked for: about 8 MB."""

_HEAVY = 15_000_000
"""From how many bytes on a page is said to be heavy."""


@dataclass(frozen=True)
class PageSummary:
    """What a page came to.

    Attributes:
        path: The file.
        size: In bytes.
        nodes: How many nodes the graph has.
        shown: How many of them have a neighbourhood on the page.
    """

    path: Path
    size: int
    nodes: int
    shown: int


def write_page(
    run: AnyRun | Subject, out: str | Path, *, nodes: int | None = None, wanted: tuple[str, ...] = (), command: str = ""
) -> PageSummary:
    """Write a page that shows a run: one file that needs no other, and no network.

    Args:
        run: A run, or its directory.
        out: The file.
        nodes: For how many nodes the neighbourhood is kept, test nodes first (default: all on graphs of at most 3000
            nodes, else 400).
        wanted: Names of nodes whose neighbourhood must be there.
        command: The command that is named as the source.

    Raises:
        CagatError: The run, the number or the names cannot be used, or the file cannot be written.
    """
    subject, path = Subject.of(run), Path(out)
    chosen = chosen_nodes(subject, nodes, wanted)
    named = [subject.node(name) for name in wanted]
    rows: list[tuple[AttentionLayer, ShownRows]] = []
    note = ""
    try:
        layers = subject.layers
    except NoAttentionError as error:
        note = str(error)
    else:
        if nodes is None:
            chosen = _fitting(subject, chosen, layers, named)
        for layer in layers:
            _logger.info("Attention of %d nodes in layer %d ...", len(chosen), layer.number)
            rows.append((layer, ShownRows.of(layer, torch.from_numpy(chosen))))
    _logger.info("Places of %d nodes in the plane ...", len(subject.names))
    data = _data(subject, chosen, rows, note)
    text = page(_title(subject), _body(subject, data, _figures(subject, rows), command), _resource("explorer.css"))
    atomic_write(path, text)
    size = path.stat().st_size
    if size > _HEAVY:
        _logger.warning("%s has %.0f MB, which browsers may be slow with. Ask for fewer --nodes.", path, size / 1e6)
    return PageSummary(path, size, len(subject.names), len(chosen) if rows else 0)


def _fitting(subject: Subject, chosen: Integers, layers: list[AttentionLayer], named: list[int]) -> Integers:
    """As many of the nodes as there is room for: rows of nodes with many neighbours take more of it."""
    a_neighbour = sum(layer.heads * (1 + len(layer.rounds)) for layer in layers)
    a_node = sum((layer.heads + 1) * len(layer.rounds) * STRONGEST * 3 for layer in layers)
    numbers = (subject.degrees + 1) * a_neighbour + a_node
    # Nodes that are asked for come first, then the others in an order that favours none.
    order = np.concatenate([np.array(named, dtype=np.int64), np.random.default_rng(0).permutation(chosen)])
    return np.union1d(order[np.cumsum(numbers[order]) <= _ROOM], named).astype(np.int64)


def _title(subject: Subject) -> str:
    return f"{subject.run.description.model} on {subject.graph.name}"


def _data(
    subject: Subject, chosen: Integers, rows: list[tuple[AttentionLayer, ShownRows]], note: str
) -> dict[str, Any]:
    frame = node_frame(subject)
    parts = [*SPLIT_NAMES, ""]
    return {
        "names": subject.names,
        "classes": [*subject.classes, UNKNOWN],
        "x": packed_numbers(frame["x"]),
        "y": packed_numbers(frame["y"]),
        "label": packed_integers(np.where(subject.labels < 0, len(subject.classes), subject.labels)),
        "predicted": packed_integers(subject.predicted),
        "probability": packed_integers(np.rint(100 * frame["probability"])),
        "part": packed_integers([parts.index(part) for part in subject.parts]),
        "degree": packed_integers(subject.degrees),
        "colours": SERIES,
        "symbols": SYMBOLS,
        "note": note,
        "shown": packed_integers(chosen if rows else []),
        "offsets": packed_integers(rows[0][1].offsets if rows else []),
        "neighbours": packed_integers(rows[0][1].neighbours if rows else []),
        "layers": [_layer_data(layer, found) for layer, found in rows],
    }


def _layer_data(layer: AttentionLayer, rows: ShownRows) -> dict[str, Any]:
    return {
        "number": layer.number,
        "heads": layer.heads,
        "rounds": len(layer.rounds),
        "onEdges": packed_numbers(rows.on_edges),
        "strongest": rows.others.shape[-1],
        "others": packed_integers(rows.others),
        "otherValues": packed_numbers(rows.other_values),
    }


def _figures(subject: Subject, rows: list[tuple[AttentionLayer, ShownRows]]) -> list[tuple[str, str, View]]:
    """Heading, sentence and picture of what does not change with the chosen node."""
    figures: list[tuple[str, str, View]] = []
    tested = bool((subject.labels[subject.split.test.numpy()] >= 0).any())
    if rows and tested:
        figures.append(("agreement", "Does attention fall on the same class?", agreement_view(subject, rows)))
    if rows:
        figures.append(("entropy", "How widely is attention spread?", entropy_view(subject, *rows[0])))
    if tested:
        figures.append(("confusion", "Which classes are taken for which?", confusion(subject)))
    training = course(subject)
    if training is not None:
        figures.append(("course", "How did training go?", training))
    return figures


def _body(subject: Subject, data: dict[str, Any], figures: list[tuple[str, str, View]], command: str) -> str:
    facts = "".join(f"<li>{html.escape(name)} <b>{html.escape(value)}</b></li>" for name, value in _facts(subject))
    cards = "\n".join(_card(*figure) for figure in figures)
    drawn = {name: json.loads(view.figure.to_json()) for name, _, view in figures}
    source = html.escape(source_line(command or "cagat.explore.write_page").replace("`", ""))
    return (
        f'<ul class="facts">{facts}</ul>\n{_resource("explorer.html")}\n<div class="cards">{cards}</div>\n'
        f"<footer><p>{source} This file needs no other, and no network.</p></footer>\n"
        f'<script type="application/json" id="data">{_json(data | {"figures": drawn})}</script>\n'
        f"<script>{get_plotlyjs()}</script>\n<script>{_resource('explorer.js')}</script>"
    )


def _card(name: str, heading: str, view: View) -> str:
    details = ""
    if view.details:
        details = f"<details><summary>What is counted</summary>{html.escape(view.details)}</details>"
    return (
        f'<section class="card"><h2>{html.escape(heading)}</h2><p class="soft">{html.escape(view.caption)}</p>'
        f'<div id="{name}" class="figure" role="img" aria-label="{html.escape(heading)}"></div>{details}</section>'
    )


def _facts(subject: Subject) -> list[tuple[str, str]]:
    config, evaluation = subject.run.config, subject.run.evaluate()
    facts = [(f"{part} nodes right", f"{100 * share:.1f} %") for part, share in evaluation.accuracy.items()]
    facts += [
        ("nodes", str(len(subject.names))),
        ("edges", str(int(subject.degrees.sum()) // (1 if subject.graph.directed else 2))),
        ("classes", str(len(subject.classes))),
    ]
    names = {"rounds": "K", "steps": "T", "alpha": "alpha", "lam": "lam", "xi": "xi"}
    given = config.hyperparameters()
    shown = {key: f"{given[key]:g}" for key in names if given.get(key) is not None} | _learnt(subject.run.model)
    return facts + [(names[key], value) for key, value in shown.items()]


@torch.no_grad()
def _learnt(model: torch.nn.Module) -> dict[str, str]:
    """The coefficients that were learnt: from the least to the most over all layers and heads."""
    convs = [conv for conv in model.modules() if isinstance(conv, CaGATConv)]
    found = {}
    for key in Coefficients._fields:
        values = [value for conv in convs if isinstance(value := getattr(conv.coefficients(), key), torch.Tensor)]
        if values:
            low, high = (f"{float(end):.3g}" for end in torch.cat(values).aminmax())
            span = low if low == high else f"{low} to {high}"
            found[key] = f"{span}, learnt from {getattr(convs[0], key):g}"
    return found


def _json(data: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _resource(name: str) -> str:
    return (files("cagat.explore") / "page" / name).read_text(encoding="utf-8")
