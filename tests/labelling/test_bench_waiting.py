from pathlib import Path

import pytest

from cagat.errors import CagatError
from cagat.experiments.bench import waiting

pytestmark = pytest.mark.posix
GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Lets a shell script take the place of the command, which takes seconds to start."""

    def write(script):
        path = tmp_path / "python"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(waiting.sys, "executable", str(path))

    return write


def test_somebody_labels_and_waits(command, start, monkeypatch, tmp_path):
    served = start()
    command(f'[ "$*" = "$(cat {tmp_path}/words)" ] && echo "Page:   {served.server.address}" && exec sleep 600')
    monkeypatch.setattr(waiting, "CLICKS", 3)
    monkeypatch.setattr(waiting, "FITS", 2)
    folder = tmp_path / "folder"
    monkeypatch.setattr(waiting.tempfile, "TemporaryDirectory", lambda: Fixed(folder))
    (tmp_path / "words").write_text(f"-m cagat label {GRAPH} --no-browser --labels {folder}/labels.csv")
    clicks, models = waiting.measure_labelling(GRAPH, 300, 5)
    assert len(served.session.labels) == 6 + 2 + 3
    assert (clicks.unit, clicks.target) == ("ms", 300)
    assert 0 < clicks.ours_ms <= clicks.ratio
    assert (models.unit, models.target) == ("s", 5)
    assert 0 < models.ours_ms <= 1000 * models.ratio
    assert models.peer_ms is None


class Fixed:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> str:
        self.folder.mkdir()
        return str(self.folder)

    def __exit__(self, *_: object) -> None: ...


def test_the_command_is_measured_as_a_whole(command):
    command('[ "$1 $2 $3 $5 $6" = "-m cagat suggest --budget 100" ] && sleep 0.2')
    small, large, memory = waiting.measure_suggestions()
    assert small.ratio >= 0.2
    assert (small.unit, small.target, large.target) == ("s", 10, 600)
    assert (memory.unit, memory.target) == ("GiB", 12)
    assert 0 < memory.ratio < 12  # The largest child of this process so far, which in the command is the measured one.


def test_a_command_that_fails_is_told(command):
    command("echo all is lost >&2; exit 1")
    with pytest.raises(CagatError, match="code 1: all is lost"):
        list(waiting.measure_suggestions())
    with pytest.raises(CagatError, match="all is lost"):
        list(waiting.measure_labelling(GRAPH, 1, 1))
