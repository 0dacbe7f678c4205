import os
import re
import signal
import sys
import time
import urllib.request

import pytest

from cagat.cli import main
from processes import cagat, start

GRAPH = "synthetic:nodes=90,degree=4,classes=3,features=8,seed=0"


@pytest.mark.posix
def test_it_prints_its_address_serves_and_ends_with_ctrl_c(tmp_path):
    said, labels = tmp_path / "server", tmp_path / "labels.csv"
    said.with_suffix(".out").touch()
    words = ["label", GRAPH, "--no-browser", "--classes", "a,b", "--labels", labels]
    server = start(cagat, *words, said=said)
    try:
        deadline = time.monotonic() + 60
        while len(lines := said.with_suffix(".out").read_text().splitlines()) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert lines[0] == f"Labels: {labels} (0 of 90 nodes)"
        address = re.fullmatch(r"Page:   (http://127\.0\.0\.1:\d+/[\w-]{22}/)", lines[1])[1]
        with urllib.request.urlopen(f"{address}state", timeout=60) as reply:
            assert b'"name":"b"' in reply.read()
        os.kill(server.pid, signal.SIGINT)
        server.join(60)
        errors = said.with_suffix(".err").read_text()
        assert server.exitcode == 0, errors
        assert "Traceback" not in errors
    finally:
        server.kill()


def test_finish_writes_predictions(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text("node,label\n0,a\n1,b\n")
    monkeypatch.setattr(sys, "argv", ["cagat", "label", "karate", "--finish"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert capsys.readouterr().out.split() == ["predictions.csv", "report.html", "report.md"]
    assert (tmp_path / "predictions.csv").read_text().startswith('"node","predicted"')


def test_without_the_extra_it_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "cagat.labelling.server", raising=False)
    monkeypatch.setattr(sys, "argv", ["cagat", "label", "karate"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    assert "pip install 'cagat[label]'" in capsys.readouterr().err
