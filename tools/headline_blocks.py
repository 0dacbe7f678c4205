"""The table of README.md and the verdict of docs/explanation/reproducible.md, from the records in results/."""

import json
import statistics
from collections.abc import Iterable
from pathlib import Path

from accuracy_blocks import cells_of, main_table
from cagat.experiments.experiment import Row, figure1, figure2, suggest, table2
from cagat.experiments.summary import Difference, TableCell
from cagat.experiments.tables import reported
from cagat.models import card
from cagat.style import Table

CONTENDERS = {"cagat": "CaGAT", "gat": "GAT", "appnp": "APPNP", "grand": "GRAND", "dgi": "DGI"}
"""The rows of README.md, as far as Table 1 has them."""

LABELS = 20
"""Per class, in README.md."""

Cells = dict[tuple[str, int], TableCell]


def contender(method: str, cells: list[TableCell]) -> Cells:
    """The cells of a method by place, with the preset that was searched for here, or else with its default one."""
    for preset in ("best", "tuned", card(method).default):
        found = {cell.place: cell for cell in cells if cell.row == Row(method, preset)}
        if found:
            return found
    return {}


def readme(results: Path) -> str:
    """CaGAT beside its rivals and the paper, and with labels that `cagat suggest` chose."""
    cells = cells_of(main_table(), results)
    shown = {method: contender(method, cells) for method in CONTENDERS}
    graphs = [graph for graph, labels in shown["cagat"] if labels == LABELS]
    means: dict[str, list[float | None]] = {}
    for method, own in shown.items():
        if own:
            preset = next(iter(own.values())).row.preset
            means[f"{CONTENDERS[method]} (`{preset}`)"] = [_mean(own, graph) for graph in graphs]
    chosen: Cells = {
        cell.place: cell
        for cell in cells_of(suggest(), results)
        if (cell.row.method, cell.row.strategy) == ("cagat", "coverage")
    }
    if any(labels == LABELS for _, labels in chosen):
        means["CaGAT, labels chosen by `cagat suggest`, none for validation"] = [
            _mean(chosen, graph) for graph in graphs
        ]
    paper = [reported("table1", Row("cagat", "paper"), graph, LABELS) for graph in graphs]
    means["CaGAT, as the paper reports it"] = [figure.mean if figure else None for figure in paper]
    best = [max(value for value in column if value is not None) for column in zip(*means.values(), strict=True)]
    rows = [
        [name, *("" if mean is None else f"**{mean:.1f}**" if mean == top else f"{mean:.1f}" for mean, top in pairs)]
        for name, values in means.items()
        for pairs in [zip(values, best, strict=True)]
    ]
    counts = sorted({len(cell.accuracies) for own in shown.values() for cell in own.values()})
    splits = f"{' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} random splits"
    seen = ", which had been seen before" if main_table().first_seed == 0 else ""
    lines = [Table(["method (preset)", *graphs], rows).markdown(), "", f"Means over {splits}{seen}; the best is bold."]
    for method in ("gat", "appnp"):
        found = {graph: _minus(shown["cagat"], shown[method], graph) for graph in graphs}
        texts = [f"{graph} {difference.text()}" for graph, difference in found.items() if difference]
        if texts:
            lines.append(f"CaGAT minus {CONTENDERS[method]}, paired, with the 95 % interval: {', '.join(texts)}.")
    return "\n".join(lines) + "\n"


def _mean(cells: Cells, graph: str) -> float | None:
    cell = cells.get((graph, LABELS))
    return None if cell is None else cell.mean


def _minus(ours: Cells, theirs: Cells, graph: str) -> Difference | None:
    pair = ours.get((graph, LABELS)), theirs.get((graph, LABELS))
    return pair[0].minus(pair[1]) if pair[0] and pair[1] else None


def verdict(results: Path) -> str:
    """Claim by claim: what the paper says, what was found here, and whether the claim holds."""
    rows = [*_accuracy_claims(results), _affinity(results), _insensitive(results), _training_loss(results)]
    return Table(["claim", "the paper", "here", "holds?"], rows, words=4).markdown() + "\n"


def _accuracy_claims(results: Path) -> Iterable[list[str]]:
    cells = cells_of(main_table(), results)
    ours = {cell.place: cell for cell in cells if cell.row == Row("cagat", "paper")}
    claimed = {place: reported("table1", Row("cagat", "paper"), *place) for place in ours}
    means = {place: figure.mean for place, figure in claimed.items() if figure}
    gat = {place: figure.mean for place in ours if (figure := reported("table1", Row("gat", "authors"), *place))}
    said = _counted([means[place] - gat[place] for place in ours])
    theirs = {cell.place: cell for cell in cells if cell.row == Row("gat", "authors")}
    yield ["CaGAT beats GAT, with the paper's coefficients", said, *_compared(ours, theirs)]
    apart = [ours[place].mean - mean for place, mean in means.items()]
    reached = sum(points >= 0 for points in apart)
    here = f"reached in {reached} of {len(apart)} cells; {statistics.fmean(apart):+.1f} points on average"
    yield ["CaGAT's accuracy (Table 1)", f"{_range(means.values())} %", here, _holds(reached, len(apart))]
    best, rival = contender("cagat", cells), contender("gat", cells)
    preset = next(iter(best.values())).row.preset
    yield [f"CaGAT beats GAT, both with searched coefficients (`{preset}`)", "-", *_compared(best, rival)]


def _compared(ours: Cells, theirs: Cells) -> tuple[str, str]:
    found = [one for place in ours if place in theirs and (one := ours[place].minus(theirs[place]))]
    clearly, behind = sum(one.low > 0 for one in found), sum(one.high < 0 for one in found)
    text = f"{_counted([one.mean for one in found])}; clearly ahead in {clearly}, clearly behind in {behind}"
    return text, _holds(clearly, len(found))


def _counted(points: list[float]) -> str:
    ahead = sum(one > 0 for one in points)
    return f"ahead in {ahead} of {len(points)} cells, {statistics.fmean(points):+.1f} points on average"


def _range(values: Iterable[float]) -> str:
    low, high = min(values := list(values)), max(values)
    return f"{low:.1f} to {high:.1f}"


def _holds(met: int, of: int) -> str:
    return "yes" if met == of else "no" if met == 0 else f"in {met} of {of} cells"


def _affinity(results: Path) -> list[str]:
    cells = {(dict(cell.row.changes)["xi"], cell.dataset): cell for cell in cells_of(table2(), results)}
    graphs = list(dict.fromkeys(graph for _, graph in cells))
    said, found = [], []
    for graph in graphs:
        place = cells[1e-3, graph].place
        with_it, without = (reported("table2", Row("cagat", "paper", (("xi", xi),)), *place) for xi in (1e-3, 0.0))
        assert with_it is not None, f"the paper's Table 2 has no {graph}"
        assert without is not None, f"the paper's Table 2 has no {graph} without affinity"
        said.append(f"{graph} {with_it.mean - without.mean:+.1f}")
        found.append((graph, cells[1e-3, graph].minus(cells[0.0, graph])))
    helped = sum(one is not None and one.low > 0 for _, one in found)
    here = ", ".join(f"{graph} {one.text()}" for graph, one in found if one)
    claim = "The affinity helps: xi = 0.001 over xi = 0 (Table 2), points"
    return [claim, ", ".join(said), here, "yes" if helped == len(found) else "no"]


def _insensitive(results: Path) -> list[str]:
    swept: dict[str, list[float]] = {}
    for cell in cells_of(figure2(), results):
        ((key, value),) = cell.row.changes
        low, high = {"alpha": (0.2, 0.6), "lam": (0.1, 0.7)}[key]
        if low <= value <= high:
            swept.setdefault(key, []).append(cell.mean)
    here = "; ".join(f"{key} {_range(means)} %" for key, means in swept.items())
    spread = max(max(means) - min(means) for means in swept.values())
    said = "stable for alpha from 0.2 to 0.6 and lam from 0.1 to 0.7"
    return ["Insensitive to alpha and lam (Figure 2)", said, here, "yes" if spread < 2 else "no"]


def _training_loss(results: Path, epoch: int = 100) -> list[str]:
    losses: dict[str, list[float]] = {}
    for line in (results / f"{figure1().name}.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        losses.setdefault(record["asked"]["method"], []).append(record["found"]["loss"][epoch - 1])
    means = {method: statistics.fmean(values) for method, values in losses.items()}
    here = f"after {epoch} epochs CaGAT {means['cagat']:.2f}, GAT {means['gat']:.2f}"
    holds = "yes" if means["cagat"] < means["gat"] else "no"
    return ["CaGAT's training loss falls faster than GAT's (Figure 1)", "faster and further", here, holds]
