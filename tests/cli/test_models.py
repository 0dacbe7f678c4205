import json

from typer.testing import CliRunner

from cagat import models
from cagat.cli import app


def test_lists_every_model_with_its_paper_and_presets():
    done = CliRunner().invoke(app, ["models"], env={"COLUMNS": "400"})
    assert done.exit_code == 0
    for name in models.names():
        known = models.card(name)
        (line,) = [line for line in done.stdout.splitlines() if line.split() and line.split()[0] == name]
        assert known.title in line
        assert known.paper in line
        listed = line.rsplit(known.paper)[1].strip().split(", ")
        assert listed[0] == known.default
        assert set(listed) == set(known.presets)


def test_json_has_every_value():
    found = json.loads(CliRunner().invoke(app, ["models", "--json"]).stdout)
    assert list(found) == models.names()
    assert found["gcn"]["presets"]["ref"]["hidden"] == 16
    assert found["gat"]["default"] == "authors"
    assert all(known["link"].startswith("http") for known in found.values())
