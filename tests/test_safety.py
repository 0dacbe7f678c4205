"""What the package must never do, wherever it is done: the sources themselves are looked at."""

import ast
from pathlib import Path

import pytest

import cagat

SOURCES = sorted(Path(cagat.__path__[0]).rglob("*.py"))

# Calls that execute what a file holds, or write where it says.
FORBIDDEN = {
    "eval", "exec", "os.system", "os.popen", "pickle.load", "pickle.loads", "pickle.Unpickler", "joblib.load",
    "marshal.load", "marshal.loads", "shelve.open", "dill.load", "dill.loads", "cloudpickle.load", "cloudpickle.loads",
    "yaml.unsafe_load", "yaml.full_load", "yaml.unsafe_load_all", "yaml.full_load_all", "pandas.read_pickle",
    "ssl._create_unverified_context", "shutil.unpack_archive", "torch.jit.load", "torch.hub.load",
    "runpy.run_path", "__import__",
}  # fmt: skip


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imported_names(tree: ast.AST) -> dict[str, str]:
    """What the names in a module stand for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def unsafe_calls(source: str) -> list[str]:
    tree = ast.parse(source)
    names = imported_names(tree)
    return [wrong for node in ast.walk(tree) if isinstance(node, ast.Call) and (wrong := reason(node, names))]


def reason(call: ast.Call, names: dict[str, str]) -> str:
    first, _, rest = dotted(call.func).partition(".")
    name = ".".join(filter(None, (names.get(first, first), rest)))
    options = {option.arg: option.value for option in call.keywords}
    values = {key: getattr(value, "value", None) for key, value in options.items()}
    if name in FORBIDDEN or name.endswith((".extractall", ".extract")):
        return f"{name} in line {call.lineno}"
    if name in ("torch.load", "torch.serialization.load") and values.get("weights_only") is not True:
        return f"{name} without weights_only=True in line {call.lineno}"
    if values.get("allow_pickle"):
        return f"{name} with allow_pickle in line {call.lineno}"
    if values.get("shell"):
        return f"{name} with a shell in line {call.lineno}"
    if name == "yaml.load" and not is_safe_loader(call):
        return f"yaml.load in line {call.lineno}"
    if values.get("verify", True) is False or ("context" in values and name.endswith("urlopen")):
        return f"{name} without verified TLS in line {call.lineno}"
    return ""


def is_safe_loader(call: ast.Call) -> bool:
    """The one loader of ours is a `yaml.SafeLoader`; see the next test."""
    loader = call.args[1] if len(call.args) > 1 else None
    return isinstance(loader, ast.Name) and loader.id == "_PlainLoader"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(cagat.__path__[0])))
def test_nothing_is_loaded_or_called_that_could_execute_a_file(source):
    assert unsafe_calls(source.read_text()) == []


def test_the_yaml_loader_is_a_safe_one():
    import yaml

    from cagat.training.config_file import _PlainLoader

    assert issubclass(_PlainLoader, yaml.SafeLoader)


@pytest.mark.parametrize(
    "source",
    [
        "eval('1')",
        "import torch\ntorch.load(path)",
        "import torch\ntorch.load(path, weights_only=False)",
        "from torch import load\nload(path)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import pickle\npickle.load(stream)",
        "from pickle import loads as read\nread(b'')",
        "import yaml\nyaml.load(text, yaml.Loader)",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "import urllib.request\nurllib.request.urlopen(url, context=c)",
        "archive.extractall(path)",
        "import ssl\nssl._create_unverified_context()",
    ],
)
def test_the_look_notices(source):
    assert unsafe_calls(source)


def test_addresses_are_https():
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith(("http://", "ftp://")), f"{source}: {node.value}"
