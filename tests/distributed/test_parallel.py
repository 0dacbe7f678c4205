"""Several processes against one: `cases.py` does the work, once for each number of processes."""

import json
from pathlib import Path

import pytest

from distributed.cases import GRAPH_CASES, NODES
from distributed.torchrun import torchrun


@pytest.fixture(scope="module", params=[1, 2, 4], ids=lambda size: f"{size} processes")
def found(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("cases") / "found.json"
    torchrun(request.param, Path(__file__).with_name("cases.py"), out)
    return request.param, json.loads(out.read_text())


def test_nodes_in_parts_are_exact(found):
    _, results = found
    assert list(results["graph"]) == list(GRAPH_CASES)
    for name, case in results["graph"].items():
        for what in ("losses", "gradients and weights", "logits"):
            assert case[what] < 1e-9, (name, what)


def test_bytes_are_those_of_the_forecast(found):
    size, results = found
    for name, case in results["graph"].items():
        for in_step, in_evaluation, bytes_sent in case["traffic"]:
            assert in_step, name
            assert in_evaluation, name
            assert (bytes_sent > 0) == (size > 1)


def test_each_process_holds_its_share(found):
    size, results = found
    for case in results["graph"].values():
        nodes = [own for own, _ in case["held"]]
        assert sum(nodes) == NODES
        assert max(nodes) <= 1.2 * NODES / size


def test_uneven_batches_end_and_agree(found):
    size, results = found
    data = results["data"]
    assert data["the same everywhere"]
    assert data["only the first has logits"]
    assert data["as alone"] or size > 1
    assert any(len(set(shares)) > 1 for shares in data["shares"]) or size == 1
    # In each epoch, the process with the most batches takes a step for each.
    assert data["steps"] == sum(max(shares) for shares in data["shares"])


def test_one_batch_for_several_processes_is_one_for_one(found):
    assert max(found[1]["one batch"].values()) < 1e-9
