import sys

import pytest

from cagat.errors import CagatError
from cagat.experiments.bench import scale
from cagat.experiments.bench.scale import Probe
from processes import start


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


SMALL = "synthetic:nodes=200,degree=4,classes=2,features=8,seed=0"


@pytest.fixture
def other_python(monkeypatch, tmp_path):
    """Lets a shell script take the place of a process that first loads all that is measured."""

    def write(script):
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(scale.sys, "executable", str(path))

    if sys.platform == "win32":
        pytest.skip("Windows runs no shell scripts")
    return write


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
def test_a_probe_answers(other_python, tmp_path):
    measuring = start(scale.measure_here, "layer", SMALL, 1, said=tmp_path / "measured")
    measuring.join()
    assert measuring.exitcode == 0, (tmp_path / "measured.err").read_text()
    other_python(f'[ "$*" = "-m {scale.__name__} layer {SMALL} 1" ] && cat "{tmp_path}/measured.out"')
    found = scale.probe("layer", SMALL, 1)
    assert found.edges == 800
    assert len(found.times) > 1
    assert min(found.times) > 0
    assert found.peak > found.above >= 0


def test_a_probe_says_what_went_wrong(other_python):
    other_python('echo "no graph called $4" >&2; exit 1')
    with pytest.raises(CagatError, match="The layer on nowhere ended with code 1: no graph called nowhere"):
        scale.probe("layer", "nowhere", 1)
