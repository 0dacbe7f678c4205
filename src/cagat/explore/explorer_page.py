"""The page of `cagat explore`."""

import base64
import html
import json
import logging
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from plotly.offline import get_plotlyjs

from cagat.diffusion import Coefficients
from cagat.explore.agreement import agreement_view
from cagat.explore.explored_run import STRONGEST, AnyRun, ExploredRun, Integers, NoAttentionError, RowSummary, View
from cagat.explore.overview import confusion, default_colouring, entropy_view, node_frame, training_curves
from cagat.files import atomic_write
from cagat.models import GAT, CaGAT
from cagat.nn import CaGATConv
from cagat.style import SERIES, SYMBOLS, page, source_line

_logger = logging.getLogger(__name__)

_MOST_NUMBERS = 3_000_000
"""How many numbers of attention a page holds unless more are asked for: about 8 MB."""

_HEAVY = 15_000_000
"""A page of more bytes than this is reported as heavy."""


class PageSummary(NamedTuple):
    """The file, its size in bytes, how many nodes the graph has, and how many have their attention on the page."""

    path: Path
    size: int
    nodes: int
    shown: int


def write_page(
    run: AnyRun, out: str | Path, *, nodes: int | None = None, wanted: tuple[str, ...] = (), command: str = ""
) -> PageSummary:
    """Write a page that shows a run: one file that needs no other, and no network.

    Args:
        run: A run, or its directory.
        out: The file.
        nodes: For how many nodes the neighbourhood is kept, test nodes first (default: all on graphs of at most 3000
            nodes, else 400).
        wanted: Names of nodes whose neighbourhood must be there.
        command: The command that is named as the source.
    """
    explored, path = ExploredRun.of(run), Path(out)
    chosen = explored.sample(nodes, wanted)
    rows: list[RowSummary] = []
    note = ""
    try:
        if nodes is None:
            chosen = _fitting(explored, chosen, wanted)
        for layer in explored.layers:
            _logger.info("Attention of %d nodes in layer %d ...", len(chosen), layer.number)
            rows.append(RowSummary.of(layer, chosen))
    except NoAttentionError as error:
        note = str(error)
    _logger.info("Places of %d nodes in the plane ...", len(explored.names))
    figures = _figures(explored, rows)
    data = _data(explored, chosen, rows) | {
        "note": note,
        "figures": {name: json.loads(view.figure.to_json()) for name, _, view in figures},
    }
    title = f"{explored.run.description.model} on {explored.graph.name}"
    atomic_write(path, page(title, _body(explored, data, figures, command), _resource("explorer.css")))
    size = path.stat().st_size
    if size > _HEAVY:
        _logger.warning("%s has %.0f MB, which browsers may be slow with. Ask for fewer --nodes.", path, size / 1e6)
    return PageSummary(path, size, len(explored.names), len(chosen) if rows else 0)


def _fitting(run: ExploredRun, chosen: Integers, wanted: tuple[str, ...]) -> Integers:
    """As many of the nodes as a page holds: nodes with many neighbours take more of it."""
    per_neighbour = sum(layer.G.heads * (1 + len(layer.rounds)) for layer in run.layers)
    per_node = sum((layer.G.heads + 1) * len(layer.rounds) * STRONGEST * 3 for layer in run.layers)
    numbers = (run.degrees + 1) * per_neighbour + per_node
    named = np.array([run.node(name) for name in wanted], dtype=np.int64)
    order = np.concatenate([named, np.random.default_rng(0).permutation(chosen)])
    return np.union1d(order[np.cumsum(numbers[order]) <= _MOST_NUMBERS], named).astype(np.int64)


def _data(run: ExploredRun, chosen: Integers, rows: list[RowSummary]) -> dict[str, Any]:
    """What the page's script draws from."""
    frame, evidence = node_frame(run), run.predictions.evidence
    return {
        "colouring": default_colouring(run),
        "because": None
        if evidence is None
        else {"nodes": packed(evidence.nodes), "shares": packed(evidence.shares), "count": evidence.nodes.size(1)},
        "doubts": [
            {
                "node": node,
                "predicted": run.classes.index(doubt.predicted),
                "ofLabel": round(100 * doubt.label_probability),
                "ofPredicted": round(100 * doubt.predicted_probability),
            }
            for node, doubt in run.doubts
        ],
        "names": run.names,
        "classes": run.classes,
        "x": packed(frame["x"]),
        "y": packed(frame["y"]),
        "label": packed(run.labels % len(run.classes)),  # -1 becomes the last, "unlabelled".
        "predicted": packed(run.predicted),
        "probability": packed(np.rint(100 * frame["probability"]).astype(int)),
        "part": packed(run.subsets),
        "degree": packed(run.degrees),
        "colours": SERIES,
        "symbols": SYMBOLS,
        "shown": packed(chosen if rows else []),
        "offsets": packed(rows[0].offsets if rows else []),
        "neighbours": packed(rows[0].neighbours if rows else []),
        "layers": [
            {
                "number": found.layer.number,
                "heads": found.layer.G.heads,
                "rounds": len(found.layer.rounds),
                "onEdges": packed(found.on_edges),
                "strongest": found.others.shape[-1],
                "others": packed(found.others),
                "otherValues": packed(found.other_values),
            }
            for found in rows
        ],
    }


def packed(values: npt.ArrayLike) -> dict[str, Any]:
    """Numbers as base64: whole ones in the narrowest type, others rounded to 1 / 32767 of the largest."""
    array, scale = np.asarray(values).ravel(), 1.0
    if array.dtype.kind == "f":
        array = np.nan_to_num(array.astype(np.float64))
        scale = float(np.abs(array).max(initial=0)) / 32767 or 1.0
        array = np.rint(array / scale)
    kind = next(kind for kind in ("uint8", "int16", "int32") if np.array_equal(array, array.astype(kind)))
    data = base64.b64encode(array.astype(np.dtype(kind).newbyteorder("<")).tobytes()).decode("ascii")
    return {"kind": kind.capitalize(), "data": data, "scale": scale}


def _figures(run: ExploredRun, rows: list[RowSummary]) -> list[tuple[str, str, View]]:
    """Name, heading and picture of what does not change with the chosen node."""
    tested = bool(len(run.tests))
    figures = [
        ("agreement", "Does attention fall on the same class?", agreement_view(run, rows) if rows and tested else None),
        ("entropy", "How widely is attention spread?", entropy_view(run, rows[0]) if rows else None),
        ("confusion", "Which classes are taken for which?", confusion(run) if tested else None),
        ("training-curves", "How did training go?", training_curves(run)),
    ]
    return [(name, heading, view) for name, heading, view in figures if view is not None]


def _body(run: ExploredRun, data: dict[str, Any], figures: list[tuple[str, str, View]], command: str) -> str:
    facts = "".join(f"<li>{html.escape(name)} <b>{html.escape(value)}</b></li>" for name, value in _facts(run))
    cards = "\n".join(
        f'<section class="card"><h2>{html.escape(heading)}</h2><p class="soft">{html.escape(view.caption)}</p>'
        f'<div id="{name}" class="figure" role="img" aria-label="{html.escape(heading)}"></div>'
        + f"<details><summary>What is counted</summary>{html.escape(view.details)}</details>" * bool(view.details)
        + "</section>"
        for name, heading, view in figures
    )
    explained = f'<p class="soft">{html.escape(_symbols(run))}</p>'
    source = html.escape(source_line(command or "cagat.explore.write_page").replace("`", ""))
    # JSON without "<" cannot end the element it stands in.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return (
        f'<ul class="facts">{facts}</ul>{explained}\n{_resource("explorer.html")}\n<div class="cards">{cards}</div>\n'
        f"<footer><p>{source} This file needs no other, and no network.</p></footer>\n"
        f'<script type="application/json" id="data">{text}</script>\n'
        f"<script>{get_plotlyjs()}</script>\n<script>{_resource('explorer.js')}</script>"
    )


def _facts(run: ExploredRun) -> list[tuple[str, str]]:
    found = run.run.evaluate()
    facts = []
    for part, share in found.accuracy.items():
        low, high = (100 * end for end in found.intervals[part])
        interval = f", 95 % interval {low:.1f} to {high:.1f}" if part == found.measured_on else ""
        value = f"{100 * share:.1f} % of {found.sizes[part]}{interval}"
        facts.append((f"{part.replace('_', '-')} nodes right", value))
    if found.calibration_error is not None:
        facts.append(("calibration error", f"{found.calibration_error:.1f} %"))
    facts += [
        ("nodes", str(len(run.names))),
        ("edges", str(int(run.degrees.sum()) // (1 if run.graph.directed else 2))),
        ("classes", str(len(run.classes) - 1)),
    ]
    names = {"rounds": "K", "steps": "T", "alpha": "alpha", "lam": "lam", "xi": "xi"}
    given = run.run.config.hyperparameters()
    shown = {key: f"{given[key]:g}" for key in names if given.get(key) is not None} | _learnt(run.run.model)
    return facts + [(names[key], value) for key, value in shown.items()]


def _symbols(run: ExploredRun) -> str:
    """What the letters mean, in a sentence or two."""
    model = run.run.model
    if isinstance(model, CaGAT):
        return (
            "G is the attention between neighbours, as in GAT; S is what diffusion makes of it. K: rounds. T: steps of "
            "diffusion in a round. alpha: share of context, the attention of neighbouring pairs, in S. lam: share of a "
            "node's output that comes through S. xi: weight of the affinity between features in S."
        )
    return "G is the attention between neighbours." if isinstance(model, GAT) else ""


@torch.no_grad()
def _learnt(model: torch.nn.Module) -> dict[str, str]:
    """The learnt coefficients: from the least to the largest over all layers and heads."""
    convs = [conv for conv in model.modules() if isinstance(conv, CaGATConv)]
    found = {}
    for key in Coefficients._fields:
        values = [value for conv in convs if isinstance(value := getattr(conv.coefficients(), key), torch.Tensor)]
        if values:
            low, high = (f"{float(end):.3g}" for end in torch.cat(values).aminmax())
            span = low if low == high else f"{low} to {high}"
            found[key] = f"{span}, learnt from {getattr(convs[0], key):g}"
    return found


def _resource(name: str) -> str:
    return (files("cagat.explore") / "page" / name).read_text(encoding="utf-8")
