"""Several processes against one: `cases.py` does the work, once for each number of processes."""

import json

import pytest

from distributed.cases import GRAPH_CASES, NODES, run_cases
from processes import run_ranks

# Three: uneven, and every process has two others to exchange rows with. Two are those of `test_train.py`.
SIZE = 3


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cases")
    run_ranks(SIZE, run_cases, directory / "found.json", said=directory)
    return json.loads((directory / "found.json").read_text())


def test_nodes_in_parts_are_exact(found):
    assert list(found["graph"]) == list(GRAPH_CASES)
    for name, case in found["graph"].items():
        for what in ("losses", "gradients and weights", "logits"):
            if "rounded" in name:  # bfloat16 keeps eight bits; Adam divides by small gradients.
                assert 1e-9 < case[what] < 0.2, (name, what)
            else:
                assert case[what] < 1e-9, (name, what)


def test_nodes_in_parts_are_trained_to_the_same_bits_again(found):
    assert found["repeated"]


def test_bytes_are_those_of_the_forecast(found):
    for name, case in found["graph"].items():
        for in_step, in_evaluation, bytes_sent in case["traffic"]:
            assert in_step, name
            assert in_evaluation, name
            assert bytes_sent > 0


def test_each_process_holds_its_share(found):
    for case in found["graph"].values():
        nodes = [own for own, _ in case["held"]]
        assert sum(nodes) == NODES
        assert max(nodes) <= 1.2 * NODES / SIZE


def test_uneven_batches_end_and_agree(found):
    data = found["data"]
    assert data["the same everywhere"]
    assert data["only the first has logits"]
    assert not data["as alone"]
    assert any(len(set(shares)) > 1 for shares in data["shares"])
    # In each epoch, the process with the most batches takes a step for each.
    assert data["steps"] == sum(max(shares) for shares in data["shares"])


def test_one_batch_for_several_processes_is_one_for_one(found):
    assert max(found["one batch"].values()) < 1e-9
