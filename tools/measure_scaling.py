"""Measure what docs/evidence/scaling.md says: time, memory and traffic of training in parts, and what follows.

Run: python tools/measure_scaling.py

It trains the paper's model on one graph with one process of two threads and with two processes of one thread, and with
1, 2 and 4 processes on graphs that grow with their number; cuts graphs into up to 64 parts to see how large halos
become; and works out from these constants what a graph of 100 million nodes would take on 64 machines.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from cagat import CSRGraph, data
from cagat.distributed import Halo, World, metis_parts
from cagat.files import atomic_write
from cagat.training import TrainConfig
from cagat.training.compute import computing, keep_freed_memory
from cagat.training.make_trainer import make_trainer
from cagat.training.problem import Problem

FEATURES, CLASSES = 64, 8
EPOCHS = 3
GIGABIT = 1e9 / 8


def graph_name(nodes: int) -> str:
    """A graph of so many nodes, with ten neighbours each."""
    return f"synthetic:nodes={nodes},degree=10,classes={CLASSES},features={FEATURES},seed=0"


def trained(nodes: int, processes: int, *options: str, threads: int = 1) -> dict[str, Any]:
    """Train for a few epochs in processes of their own: what the slowest took, and what each of them held."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        command += [__file__, "--nodes", str(nodes), "--out", str(out), "--train", *options]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
        found: dict[str, Any] = json.loads(out.read_text())
    return found


def train(nodes: int, parallel: str | None, halo_dtype: str | None, out: Path) -> None:
    """Be one of these processes. The fastest epoch is the one that others disturbed least."""
    keep_freed_memory()
    with World.joined() as world, computing(torch.get_num_threads(), False):
        asked = {"dataset": graph_name(nodes), "preset": "paper", "parallel": parallel, "halo_dtype": halo_dtype}
        config = TrainConfig.from_values(asked)
        trainer = make_trainer(config, Problem.load(config), torch.device("cpu"), world)
        wall, cpu = [], []
        for _ in range(1 + EPOCHS):
            started, started_cpu = time.perf_counter(), time.process_time()
            trainer.run_epoch()
            wall.append(time.perf_counter() - started)
            cpu.append(time.process_time() - started_cpu)
        report = trainer.plan.report()
        found = {
            "nodes": nodes,
            "processes": world.size,
            "threads_per_process": torch.get_num_threads(),
            "seconds_per_epoch": round(min(wall[1:]), 4),
            "cpu_seconds_per_epoch": [round(seconds, 4) for seconds in world.all_of(min(cpu[1:]))],
            "ranks": None if report is None else report["ranks"],
        }
        if world.is_first:
            atomic_write(out, json.dumps(found))


def head() -> dict[str, Any]:
    """How the numbers came about."""
    packages = ("cagat", "torch", "torch_geometric", "numba", "pymetis")
    return {
        "command": shlex.join(["python", *sys.argv]),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {package: version(package) for package in packages} | {"python": platform.python_version()},
        "cores": os.cpu_count(),
    }


def halos(name: str, parts: int) -> dict[str, Any]:
    """How large the halos of a partition are, as a share of the nodes that a process holds."""
    graph = data.load(name, sparse=True)
    owner = metis_parts(graph.edge_index, graph.num_nodes, parts)
    pattern = CSRGraph.from_edge_index(graph.edge_index, graph.num_nodes).pattern
    row, col = pattern.rows(), pattern.col.long()
    sizes = torch.bincount(owner, minlength=parts).tolist()
    counts = [Halo.of(row, col, owner, World(rank, parts)).nodes.numel() for rank in range(parts)]
    shares = [count / size for count, size in zip(counts, sizes, strict=True)]
    return {
        "graph": name,
        "nodes": graph.num_nodes,
        "parts": parts,
        "edges_cut": round(float((owner[row] != owner[col]).double().mean()), 4),
        "halo_per_node": round(sum(counts) / graph.num_nodes, 3),
        "largest_halo_per_node": round(max(shares), 3),
        "largest_part": round(max(sizes) * parts / graph.num_nodes, 3),
    }


def weak(nodes: int) -> list[dict[str, Any]]:
    """Graphs that grow with the number of processes: what the work on an entry costs, and what one alone costs more."""
    found = []
    for processes in (1, 2, 4):
        run = trained(processes * nodes, processes, "graph")
        entries = sum(rank["entries"] for rank in run["ranks"])
        cost = sum(run["cpu_seconds_per_epoch"]) / entries
        found.append({**run, "cpu_microseconds_per_entry": round(1e6 * cost, 3)})
    for run in found:
        ratio = found[0]["cpu_microseconds_per_entry"] / run["cpu_microseconds_per_entry"]
        run["efficiency"] = round(ratio, 3)
    return found


def estimate(constants: dict[str, float], machines: int, nodes: float, edges: float) -> dict[str, Any]:
    """What a step takes where each machine holds its share, for halos of several sizes and two networks."""
    own, entries = nodes / machines, (2 * edges + nodes) / machines
    compute = entries * constants["core_seconds_per_entry_and_step"] / constants["cores"]
    cases = []
    for share in (0.1, 0.5, constants["halo_per_node_at_64_parts"]):
        halo = share * own
        sent = halo * constants["bytes_per_halo_node_and_step"]
        cases.append(
            {
                "halo_per_node": share,
                "gigabytes_per_step_and_machine": round(sent / 1e9, 1),
                "seconds_at_10_gigabit": round(sent / (10 * GIGABIT), 1),
                "seconds_at_100_gigabit": round(sent / (100 * GIGABIT), 1),
                "memory_gigabytes": round((own + halo) * constants["bytes_per_node"] / 1e9, 1),
            }
        )
    return {
        "machines": machines,
        "nodes": nodes,
        "edges": edges,
        "nodes_per_machine": own,
        "entries_per_machine": entries,
        "compute_seconds_per_step": round(compute, 1),
        "cases": cases,
    }


def main() -> None:
    """Measure everything and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200_000, help="of the graph that is trained on")
    parser.add_argument("--cut-nodes", type=int, default=20_000, help="of the graph that is cut into many parts")
    parser.add_argument("--cores", type=int, default=32, help="of a machine, in the estimate")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/scaling.json"))
    parser.add_argument("--train", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train is not None:
        train(arguments.nodes, *[*arguments.train, None, None][:2], arguments.out)
        return
    runs = {
        "one process": trained(arguments.nodes, 1, threads=2),
        "two processes": trained(arguments.nodes, 2, "graph"),
        "two processes, bfloat16": trained(arguments.nodes, 2, "graph", "bfloat16"),
    }
    ratio = runs["two processes"]["seconds_per_epoch"] / runs["one process"]["seconds_per_epoch"]
    growing = weak(arguments.nodes // 4)
    graphs = [graph_name(arguments.cut_nodes), *(["pubmed"] if os.environ.get("CAGAT_DATA") else ["cora"])]
    partitions = [halos(name, parts) for name in graphs for parts in (2, 8, 64)]
    two, alone = runs["two processes"]["ranks"][0], growing[0]["ranks"][0]
    held = [rank["nodes"] + rank["halo_nodes"] for rank in (two, alone)]
    constants = {
        "core_seconds_per_entry_and_step": growing[-1]["cpu_microseconds_per_entry"] / 1e6,
        "bytes_per_node": (two["peak_memory_bytes"] - alone["peak_memory_bytes"]) / (held[0] - held[1]),
        "bytes_per_halo_node_and_step": two["halo_bytes_per_step"] / two["halo_nodes"],
        "halo_per_node_at_64_parts": partitions[2]["halo_per_node"],
        "cores": arguments.cores,
    }
    found = {
        **head(),
        "runs": runs,
        "two_processes_to_one": round(ratio, 3),
        "weak": growing,
        "partitions": partitions,
        "constants": constants,
        "estimate": estimate(constants, 64, 1e8, 1e9),
    }
    atomic_write(arguments.out, json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
