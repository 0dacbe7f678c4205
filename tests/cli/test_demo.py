from typer.testing import CliRunner

from cagat.cli import app


def test_demo_shows_both_models_beside_each_other():
    done = CliRunner().invoke(app, ["demo", "--epochs", "1"])
    assert done.exit_code == 0, done.output
    assert "2485 papers, 5069 citations" in done.output.replace("\n", " ")
    for name in ("GAT, authors' preset", "GAT, tuned", "CaGAT, paper's preset", "CaGAT, tuned"):
        assert name in done.output
    assert done.output.count("%") >= 2


def test_demo_refuses_a_negative_number_of_epochs():
    done = CliRunner().invoke(app, ["demo", "--epochs", "0"])
    assert done.exit_code == 2
    assert "epochs" in done.output
