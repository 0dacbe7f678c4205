import sys

import pytest

from cagat.errors import CagatError
from cagat.experiments.bench import scale
from cagat.experiments.bench.scale import Probe


@pytest.fixture
def probes(monkeypatch):
    """Steps whose times are made up: a millisecond for a hundred thousand edges, 150 for ten million."""
    asked = []

    def probe(what, dataset, threads):
        asked.append((what, "large" if "nodes=1000000," in dataset else "small", threads))
        if asked[-1][1] == "large":
            return Probe([100.0, 150.0, 180.0], 10_000_000, 3 * 2**30, 2**30)
        return Probe([0.5, 1.0, 2.0], 100_000, 2**20, 2**20)

    monkeypatch.setattr(scale, "probe", probe)
    return asked


def test_time_for_each_edge_and_memory(probes):
    rows = list(scale.measure_scale((1, 2)))
    assert [(row.case.split(",")[0], row.threads) for row in rows] == [("layer", 1), ("layer", 2), ("training step", 2)]
    assert [row.ratio for row in rows] == pytest.approx([1.5, 1.5, 3.0])
    assert (rows[0].ours_ms, rows[0].peer_ms, rows[2].peer_ms, rows[2].unit) == (150.0, 1.0, None, "GiB")
    assert rows[0].ours_spread_ms > 0
    assert rows[2].ours_spread_ms > 0
    assert probes[:3] == [("layer", "small", 1), ("layer", "large", 1), ("layer", "small", 1)]


def test_a_probe_answers():
    found = scale.probe("layer", "synthetic:nodes=200,degree=4,classes=2,features=8,seed=0", 1)
    assert found.edges == 800
    assert len(found.times) > 1
    assert min(found.times) > 0
    assert found.peak > found.above >= 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows runs no shell scripts")
def test_a_probe_says_what_went_wrong(monkeypatch, tmp_path):
    # A process that fails at once, instead of one that first loads all that is measured.
    failing = tmp_path / "python"
    failing.write_text('#!/bin/sh\necho "no graph called $4" >&2\nexit 1\n')
    failing.chmod(0o755)
    monkeypatch.setattr(scale.sys, "executable", str(failing))
    with pytest.raises(CagatError, match="The layer on nowhere ended with code 1: no graph called nowhere"):
        scale.probe("layer", "nowhere", 1)
