import gc
import importlib
import inspect
import pickle
import subprocess
import sys

import pytest
import torch

from cagat.cli import start_up
from cagat.training.trainer import Adam

# What a plain training run has no use for before its first epoch is done.
UNUSED = {
    *("torch._dynamo.convert_frame", "torch._inductor", "sympy", "torch_geometric.datasets.planetoid", "pandas"),
    *("sklearn", "skrub", "skops", "networkx", "matplotlib", "scipy.optimize", "tensorboard", "optuna", "plotly"),
    *("starlette", "uvicorn", "cagat.explore", "cagat.estimator", "cagat.experiments", "cagat.labelling"),
}

TO_THE_FIRST_EPOCH = """
import os, sys
from cagat.cli import main
from cagat.cli.training_display import _Display

def show(self, epoch, trainer):
    print(*sorted(sys.modules), flush=True)
    os._exit(0)

_Display.show = show
main()
"""


def test_a_plain_training_run_imports_no_more_than_it_uses(tmp_path):
    command = ["train", "--dataset", "synthetic:nodes=60,classes=2", "--labels", "5", "--val-labels", "5"]
    code = f"from cagat.cli.start_up import defer_imports\ndefer_imports()\n{TO_THE_FIRST_EPOCH}"
    words = [sys.executable, "-c", code, *command, "--hidden", "4", "--heads", "2", "--out", str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules = set(done.stdout.split())
    assert "cagat.training.run" in modules
    assert modules & UNUSED == set()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that counts how often it runs, and is deferred."""
    folder = tmp_path / "deferred_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("import sys\nsys.runs_of_deferred_package += 1\nvalue = 7\nclass Thing: pass\n")
    (folder / "part.py").write_text("value = 8\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "runs_of_deferred_package", 0, raising=False)
    monkeypatch.setattr(start_up, "DEFERRED", ("deferred_package",))
    monkeypatch.setattr(sys, "meta_path", [start_up._Finder(), *sys.meta_path])
    yield "deferred_package"
    for name in [name for name in sys.modules if name.startswith("deferred_package")]:
        del sys.modules[name]


def test_a_deferred_module_runs_when_something_in_it_is_asked_for(package):
    module = importlib.import_module(package)
    assert (module.__name__, module.__file__ is None, sys.runs_of_deferred_package) == (package, False, 0)
    # `inspect` asks all modules for their files, and some for what they may not have.
    assert inspect.getmodule(inspect.currentframe()) is not None
    assert not hasattr(module, "__wrapped__")
    assert sys.runs_of_deferred_package == 0
    assert (module.value, module.value, sys.runs_of_deferred_package) == (7, 7, 1)
    assert type(module) is type(sys)
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        module.other  # noqa: B018
    assert sys.runs_of_deferred_package == 1


def test_names_parts_and_pickles_of_a_deferred_module(package):
    assert importlib.import_module(f"{package}.part").value == 8
    assert sys.runs_of_deferred_package == 0
    Thing = importlib.import_module(package).Thing
    assert isinstance(pickle.loads(pickle.dumps(Thing())), Thing)
    assert sys.runs_of_deferred_package == 1


def test_other_modules_are_not_deferred(package):
    assert start_up._Finder().find_spec("json", None) is None
    assert start_up._Finder().find_spec("deferred_package", []) is None  # Nowhere to be found.


def test_the_garbage_collector_leaves_alone_what_was_imported():
    finder = start_up._Finder()
    gc.unfreeze()
    try:
        finder.find_spec("json", None)
        frozen = gc.get_freeze_count()
        assert frozen > len(sys.modules)
        later = [[] for _ in range(1000)]
        finder.find_spec("missing", None)  # Nothing was imported since.
        assert gc.get_freeze_count() <= frozen, len(later)
    finally:
        gc.unfreeze()


def test_adam_is_torchs():
    def trained(kind):
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 2)
        optimizer = kind([{"params": [layer.weight], "weight_decay": 0.1}, {"params": [layer.bias]}], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            layer(torch.ones(4, 3)).square().sum().backward()
            optimizer.step()
        other = kind(layer.parameters(), lr=0.1)
        other.load_state_dict(kind(layer.parameters(), lr=0.1).state_dict())
        return [*layer.parameters(), *(state[name] for state in optimizer.state.values() for name in sorted(state))]

    assert all(map(torch.equal, trained(Adam), trained(torch.optim.Adam)))
