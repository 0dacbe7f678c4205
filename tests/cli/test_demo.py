from typer.testing import CliRunner

from cagat.cli import app


def demo(*words: object):
    return CliRunner().invoke(app, ["demo", *map(str, words)])


def test_demo_shows_both_models_beside_each_other(tmp_path):
    done = demo("--epochs", 1, "--picture", tmp_path / "new" / "demo.png")
    assert done.exit_code == 0, done.output
    assert "2485 papers, 5069 citations" in done.output.replace("\n", " ")
    for name in ("GAT, authors' preset", "GAT, best", "CaGAT, paper's preset", "CaGAT, best"):
        assert name in done.output
    assert done.output.count("%") >= 2
    assert "Next:\n  cagat label GRAPH" in done.output
    assert done.output.splitlines()[-1] == f"Learning curves: {tmp_path / 'new' / 'demo.png'}"
    assert (tmp_path / "new" / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_a_quick_demo_trains_two_models_for_a_few_epochs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = demo("--quick", "--epochs", 2)
    assert done.exit_code == 0, done.output
    assert [name in done.output for name in ("GAT, best", "CaGAT, best", "authors")] == [True, True, False]
    assert (tmp_path / "runs" / "demo.png").exists()


def test_demo_refuses_what_it_cannot_do_before_it_trains(tmp_path):
    done = demo("--epochs", 0)
    assert done.exit_code == 2
    assert "epochs" in done.output
    done = demo("--picture", tmp_path / "demo.gif")
    assert "must end in .png" in str(done.exception)
