import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cagat

SOURCES = sorted(Path(cagat.__path__[0]).rglob("*.py"))

# The rooms of docs/explanation/architecture.md: what each may import beside itself.
MAY_IMPORT = {
    "kernels": set(),
    "diffusion": {"kernels"},
    "nn": {"diffusion", "kernels", "settings"},
    "models": {"nn", "diffusion", "kernels", "configs", "settings"},
    "explain": {"nn", "diffusion"},
    "distributed": {"kernels"},
    "parts": {"distributed", "nn", "kernels", "data"},
    "training": {"parts", "distributed", "models", "nn", "diffusion", "kernels", "data", "settings"},
    "suggestions": {"training", "kernels", "data"},
    "labelling": {"suggestions", "training", "distributed", "models", "data", "settings"},
    "estimator": {"suggestions", "training", "models", "nn", "data", "configs", "settings"},
    "experiments": {"suggestions", "training", "models", "nn", "kernels", "data", "reference", "configs", "settings"},
    "explore": {"training", "models", "nn", "diffusion", "kernels", "data"},
    "data": {"settings"},
    "configs": {"models"},  # By a model's name, when its class is asked for.
    "settings": {"configs"},
    "reference": set(),
    "memory": set(),
    "files": set(),
    "safetensors_file": set(),
    "errors": set(),
    "style": set(),
    "cli": {
        *(
            "distributed",
            "parts",
            "explore",
            "experiments",
            "labelling",
            "suggestions",
            "training",
            "configs",
            "settings",
            "data",
        ),
    },
}
EVERYWHERE = {"errors", "files", "memory", "style", "safetensors_file"}


def rooms_imported_by(source: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "cagat":
            names |= {alias.name for alias in node.names if alias.name in MAY_IMPORT}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cagat."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("cagat.")}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names |= {
                word.value.split(".")[1] for word in node.args if str(getattr(word, "value", "")).startswith("cagat.")
            }
    return names


def test_rooms_enter_the_rooms_they_may_and_need():
    entered = {room: set() for room in MAY_IMPORT}
    for source in SOURCES:
        room = source.relative_to(cagat.__path__[0]).parts[0].removesuffix(".py")
        if room not in ("__init__", "__main__"):  # The front doors see every room.
            entered[room] |= rooms_imported_by(source) - {room} - EVERYWHERE
    assert entered == MAY_IMPORT


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_version():
    assert run("-c", "import cagat; print(cagat.__version__)").stdout.strip() == cagat.__version__
    assert run("-m", "cagat", "--version").stdout.strip() == cagat.__version__


def test_help_and_version_do_not_import_torch():
    code = "import sys, cagat.cli; cagat.__version__; print([name for name in sys.modules if name in HEAVY])"
    done = run("-c", code.replace("HEAVY", "('torch', 'numba', 'numpy', 'scipy', 'pyarrow')"))
    assert done.stdout.strip() == "[]", done.stderr


def test_help_names_the_commands():
    done = run("-m", "cagat", "--help")
    assert done.returncode == 0
    assert "demo" in done.stdout


def test_public_names():
    for name in cagat.__all__:
        assert getattr(cagat, name) is not None
    assert set(cagat.__all__) <= set(dir(cagat))
    with pytest.raises(AttributeError, match="no attribute 'CaGTA'"):
        cagat.CaGTA  # noqa: B018


def test_changelog_and_citation_know_the_version():
    root = Path(__file__).parents[1]
    citation = (root / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(cagat.__version__)}$", citation, re.MULTILINE)
    assert "## [Unreleased]" in (root / "CHANGELOG.md").read_text()
