"""The data room stands alone."""

import ast
from pathlib import Path

import cagat.data

PERMITTED = ("cagat.data", "cagat.errors", "cagat.memory")


def test_it_imports_no_other_room():
    for path in Path(cagat.data.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith("cagat") or name.startswith(PERMITTED), f"{path.name} imports {name}"


def test_nothing_in_it_unpickles():
    words = ("pickle.load", "allow_pickle=True", "import pickle\n", "torch.load", "eval(", "exec(", "shell=True")
    for path in Path(cagat.data.__file__).parent.rglob("*.py"):
        for word in words:
            assert word not in path.read_text(), f"{path.name}: {word}"


def test_every_public_name_is_there():
    for name in cagat.data.__all__:
        assert callable(getattr(cagat.data, name))
    assert set(cagat.data.__all__) <= set(dir(cagat.data))
