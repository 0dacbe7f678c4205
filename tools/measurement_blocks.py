"""The tables of times, memory and the like in docs/, made from benchmarks/results/ and results/."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cagat.style import Table


def benchmark(results: Path, name: str) -> Any:
    """What is in a file of benchmarks/results/."""
    return json.loads((results.parent / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def circumstances(run: dict[str, Any]) -> str:
    """When and where something was measured."""
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    load = ", ".join(f"{value:.1f}" for value in run["load_average"] or [])
    return (
        f"`{run['command']}`, {run['date'][:10]}, {run['cores']} cores of {run['cpu']}, {versions}; load averages "
        f"at the start {load}; one thread copies {run['copy_gigabytes_per_second']:.0f} GB per second"
    )


def bench_block(name: str) -> Callable[[Path], str]:
    """What `cagat bench --json` wrote: the facts of the run, and one line per row."""

    def block(results: Path) -> str:
        rows = benchmark(results, name)
        lines = [
            f"{circumstances(rows[0]['run'])}.",
            "",
            "| case | threads | ours, ms | peer | its, ms | ratio | at most | aim |",
            "|---|--:|--:|---|--:|---|--:|--:|",
        ]
        lines += [
            f"| {row['case']} | {row['threads']} | {_milliseconds(row['ours_ms'])} | {row['peer']} "
            f"| {_milliseconds(row['peer_ms'])} | {_ratio(row)} | {_limit(row['target'])} | {_limit(row['aim'])} |"
            for row in rows
        ]
        return "\n".join(lines) + "\n"

    return block


def _ratio(row: dict[str, Any]) -> str:
    """The ratio, and whether it is what it should be."""
    value, target, aim = row["ratio"], row["target"], row["aim"]
    shown = f"1/{1 / value:.0f}" if value < 0.1 else f"{value:.3g}" if row["unit"] != "x" else f"{value:.2f}"
    shown += "" if row["unit"] == "x" else f" {row['unit']}"
    if target is None:
        return shown
    is_met = aim is not None and value <= aim
    return shown + (", aim met" if is_met else "" if value <= target else " **missed**")


def _limit(value: float | None) -> str:
    return "" if value is None else f"1/{1 / value:.0f}" if value < 0.1 else f"{value:g}"


def _milliseconds(value: float | None, digits: int = 1) -> str:
    return (
        ""
        if value is None
        else f"{value:.{digits}f}"
        if value < 10
        else f"{value:.1f}"
        if value < 100
        else f"{value:.0f}"
    )


def speed(results: Path) -> str:
    """What a reader wants to know first: our layer beside others, and a training epoch."""
    compared, own = benchmark(results, "compare"), benchmark(results, "bench")
    rows = [row for row in compared if row["case"].startswith("compared: ")]
    rows += [row for row in own if row["case"].startswith(("training epoch", "layer against dense"))]
    ratios: dict[tuple[str, str], dict[int, str]] = {}
    for row in rows:
        case = row["case"].removeprefix("compared: "), row["peer"]
        ratios.setdefault(case, {})[row["threads"]] = _ratio(row | {"target": None})
    lines = [[*case, *(by_threads.get(threads, "") for threads in (1, 2))] for case, by_threads in ratios.items()]
    peaks = {row["case"]: f"{row['ratio']:.0f} {row['unit']}" for row in own if "peak memory" in row["case"]}
    memory = ", ".join(f"{peak} ({case.partition('peak memory')[2].lstrip(', ')})" for case, peak in peaks.items())
    table = Table(["case", "compared with", "1 thread", "2 threads"], lines, words=2).markdown()
    return f"{table}\n\nPeak memory of a training step: {memory}.\n"


def tricks(results: Path) -> str:
    """What single tricks of the kernels gave."""
    found = benchmark(results, "tricks")
    graphs = list(dict.fromkeys(row["graph"] for row in found["rows"]))
    times: dict[str, dict[str, str]] = {}
    for row in found["rows"]:
        shown = f"{_milliseconds(row['without_ms'], 2)} → {_milliseconds(row['with_ms'], 2)}"
        times.setdefault(row["trick"], {})[row["graph"]] = shown
    lines = [[trick, *(by_graph.get(graph, "") for graph in graphs)] for trick, by_graph in times.items()]
    table = Table(["trick: without / with, ms", *graphs], lines).markdown()
    return f"{table}\n\n{circumstances(found['run'])}.\n"


def row_bandwidth(results: Path) -> str:
    """How fast rows come in random order, by how many there are."""
    found = benchmark(results, "row_bandwidth")
    by_nodes: dict[int, list[str]] = {}
    for row in found["found"]:
        by_nodes.setdefault(row["nodes"], []).append(f"{row['gigabytes_per_second']:.1f}")
    distance = {"late": 8, "early": 32}
    head = list(
        dict.fromkeys(f"{row['threads']} threads, prefetch {distance[row['asked_for']]}" for row in found["found"])
    )
    lines = [
        [f"{nodes:,}", f"{nodes * found['row_bytes'] / 1e6:.1f}", *speeds] for nodes, speeds in sorted(by_nodes.items())
    ]
    table = Table(["nodes", "MB of rows", *(text.replace("1 threads", "1 thread") for text in head)], lines, words=0)
    return f"GB per second.\n\n{table.markdown()}\n\n{circumstances(found['measured'])}.\n"


def structural_features(results: Path) -> str:
    """Validation accuracy with what may stand in for features."""
    path = results.parent / "benchmarks" / "results" / "structural_features.jsonl"
    found: dict[str, dict[str, list[float]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["features"], {}).setdefault(row["graph"], []).append(row["val_accuracy"])
    graphs = list(dict.fromkeys(graph for by_graph in found.values() for graph in by_graph))
    lines = [
        [features, *(f"{100 * statistics.fmean(by_graph[graph]):.1f}" for graph in graphs)]
        for features, by_graph in found.items()
    ]
    return Table(["features", *graphs], lines).markdown() + "\n"


def scaling(results: Path) -> str:
    """Time, memory and traffic of one process and of two that share its graph."""
    found = benchmark(results, "scaling")
    titles = {
        "one process": "one process, two threads",
        "two processes": "`--parallel graph`, two processes of one thread",
        "two processes, bfloat16": "the same with `--halo-dtype bfloat16`",
    }
    lines = []
    for name, run in found["runs"].items():
        ranks = run["ranks"] or []
        lines.append(
            [
                titles[name],
                f"{run['seconds_per_epoch']:.2f}",
                _each(f"{seconds:.2f}" for seconds in run["cpu_seconds_per_epoch"]),
                _each(str(rank["halo_nodes"]) for rank in ranks),
                _each(f"{rank['peak_memory_bytes'] / 1e6:.0f}" for rank in ranks),
                f"{max(rank['halo_bytes_per_step'] for rank in ranks) / 1e6:.0f}" if ranks else "",
            ]
        )
    head = ["", "s per epoch", "CPU s per epoch", "halo nodes", "peak memory, MB", "sent per step, MB"]
    ratio = f"Two processes take {found['two_processes_to_one']:.2f} times as long as one."
    return f"{Table(head, lines).markdown()}\n\n{ratio}\n"


def weak(results: Path) -> str:
    """Graphs that grow with the number of processes."""
    lines = [
        [
            str(run["processes"]),
            f"{run['nodes']:,}",
            f"{sum(rank['halo_nodes'] for rank in run['ranks']) / run['nodes']:.2f}",
            f"{run['cpu_microseconds_per_entry']:.2f}",
            f"{100 * run['efficiency']:.0f} %",
        ]
        for run in benchmark(results, "scaling")["weak"]
    ]
    head = ["processes", "nodes", "halo nodes per node", "CPU µs per entry of A and epoch", "efficiency"]
    return Table(head, lines, words=0).markdown() + "\n"


def _each(texts: Any) -> str:
    return " and ".join(texts)


def halos(results: Path) -> str:
    """How many nodes of other parts a part needs."""
    lines = [
        [
            "synthetic" if row["graph"].startswith("synthetic") else row["graph"],
            str(row["parts"]),
            f"{100 * row['edges_cut']:.1f} %",
            f"{row['halo_per_node']:.2f}",
            f"{row['largest_halo_per_node']:.2f}",
        ]
        for row in benchmark(results, "scaling")["partitions"]
    ]
    return Table(["graph", "parts", "edges cut", "halo nodes per node", "largest of any part"], lines).markdown() + "\n"


def cuts(results: Path) -> str:
    """How many edges either way to cut a graph leaves between parts."""
    lines = [
        [
            row["graph"].partition(":")[0],
            str(row["parts"]),
            *(f"{100 * row[method]:.1f} %" for method in ("metis", "stream")),
        ]
        for row in benchmark(results, "parts")["cuts"]
    ]
    return Table(["graph", "parts", "cut by metis", "cut by stream"], lines).markdown() + "\n"


def parts(results: Path) -> str:
    """Time and memory of cutting a graph to disk and of training on one part after the other."""
    lines = []
    for size, found in benchmark(results, "parts").items():
        for step, title in _STEPS.items() if size != "cuts" else ():
            run = found[step]
            what = title.format(parts=found["parts"], epochs=found["epochs"])
            memory = (f"{run[kind] / 1e6:.0f}" for kind in ("anonymous_bytes", "peak_bytes"))
            lines.append([f"{size}, {found['edges']} edges", what, f"{run['seconds']:.0f}", *memory])
    head = ["graph", "step", "s", "memory of its own, MB", "with mapped files, MB"]
    return Table(head, lines).markdown() + "\n"


_STEPS = {
    "partition": "cut into {parts} parts (`stream`)",
    "out_of_core": "train out of core, {epochs} epochs and predictions",
    "predict": "predict out of core",
}


def shares(results: Path) -> str:
    """What each of several processes has in memory, beside its share of what one process has."""
    lines = []
    for size, found in benchmark(results, "parts").items():
        runs = found["processes"] if size != "cuts" else {}
        for count, run in runs.items():
            of_one = runs["1"]["ranks"][0]["peak_memory_bytes"] - runs["1"]["opening"][0]["nothing_bytes"]
            ours = [
                (rank["peak_memory_bytes"] - opening["nothing_bytes"], (rank["nodes"] + rank["halo_nodes"]) / nodes)
                for rank, opening in zip(run["ranks"], run["opening"], strict=True)
                for nodes in (found["nodes"],)
            ]
            most = max(ours, key=lambda one: one[0] / one[1])
            lines.append(
                [
                    size,
                    count,
                    f"{100 * most[1]:.0f} %",
                    f"{most[0] / 1e6:.0f}",
                    f"{most[0] / (most[1] * of_one):.2f}",
                    f"{max(opening['seconds'] for opening in run['opening']):.1f}",
                ]
            )
    head = ["graph", "processes", "part and halo", "memory, MB", "by its share of one process", "s to open"]
    return Table(head, lines).markdown() + "\n"


def clusters(results: Path) -> str:
    """Accuracy on the whole graph and in batches of parts, split by split."""
    found = json.loads((results / "cluster_pubmed.json").read_text(encoding="utf-8"))
    titles = {"full": "whole graph", "cluster": f"{found['parts_per_batch']} of {found['parts']} parts per step"}
    lines, head = [], []
    for name, title in titles.items():
        shares = [run["test_accuracy"] for run in found["runs"][name]]
        head = [f"split {run['seed']}" for run in found["runs"][name]]
        lines.append([title, *(f"{share:.1f}" for share in shares), f"{statistics.fmean(shares):.1f}"])
    return Table(["", *head, "mean"], lines).markdown() + "\n"


def estimate(results: Path) -> str:
    """What a step on a very large graph would take."""
    found = benchmark(results, "scaling")
    case = found["estimate"]
    lines = [
        [
            f"{one['halo_per_node']:g}",
            f"{one['gigabytes_per_step_and_machine']:g} GB",
            f"{one['seconds_at_10_gigabit']:g} s",
            f"{one['seconds_at_100_gigabit']:g} s",
            f"{one['memory_gigabytes']:g} GB",
        ]
        for one in case["cases"]
    ]
    head = ["halo nodes per node", "sent per machine and step", "at 10 Gbit/s", "at 100 Gbit/s", "memory per machine"]
    return (
        f"{case['nodes']:,.0f} nodes and {case['edges']:,.0f} edges on {case['machines']} machines: each holds "
        f"{case['nodes_per_machine'] / 1e6:.2f} million nodes and {case['entries_per_machine'] / 1e6:.1f} million "
        f"entries of A, and computes {case['compute_seconds_per_step']:g} s per step on {found['constants']['cores']} "
        f"cores, if they share the work without loss.\n\n{Table(head, lines, words=0).markdown()}\n"
    )
