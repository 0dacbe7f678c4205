"""The sdist and the wheel, as somebody gets them who has no clone."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import cagat

ROOT = Path(__file__).parents[1]


def run(*words: object, folder: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment(folder: Path, *paths: str) -> Path:
    """An environment that sees further paths; its Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder).strip()
    Path(own, "dependencies.pth").write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
    return python


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_is_built_can_be_installed_and_used(tmp_path):
    """Downloads the build tools; the dependencies are those of this environment, which a .pth file shows."""
    builder = environment(tmp_path / "builder")
    run(builder, "-m", "pip", "install", "--quiet", "build", folder=tmp_path)
    run(builder, "-m", "build", "--outdir", tmp_path / "dist", ROOT, folder=tmp_path)  # The wheel from the sdist.
    (wheel,), (sdist,) = ((tmp_path / "dist").glob(pattern) for pattern in ("*.whl", "*.tar.gz"))
    assert wheel.name == f"cagat-{cagat.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert {"cagat/py.typed", "cagat/data/embedded/cora.npz", "cagat/configs/models/cagat.yaml"} <= set(names)
    assert all(name.startswith(("cagat/", "cagat-")) for name in names)
    with tarfile.open(sdist) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "tests/test_distribution.py", "src/cagat/__init__.py"} <= members
    assert not any(name.startswith(("results/", "runs/", ".venv/")) for name in members)

    python = environment(tmp_path / "installed", sysconfig.get_path("purelib"))
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel, folder=tmp_path)
    home = run(python, "-c", "import cagat; print(cagat.__file__)", folder=tmp_path)
    assert str(tmp_path / "installed") in home
    cagat_command = python.with_name("cagat" + python.suffix)
    assert run(cagat_command, "--version", folder=tmp_path).strip() == cagat.__version__
    said = run(cagat_command, "demo", "--quick", folder=tmp_path)
    assert "CaGAT, tuned" in said
    assert said.splitlines()[-1] == f"Learning curves: {Path('runs', 'demo.png')}"
    assert (tmp_path / "runs" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "cagat label GRAPH" in run(cagat_command, folder=tmp_path)
