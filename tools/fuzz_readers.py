"""Feed the file readers with changed files until one of them crashes.

Run: python tools/fuzz_readers.py --minutes 10

With atheris, which sees what code an input reaches and goes on from inputs that reach more; where there is no atheris,
with random changes alone, and it says so. A reader may refuse a file with a `CagatError`. Any other error is a crash,
and so is a file that takes longer than ten seconds or more than two gigabytes. The first byte of an input chooses the
reader. It starts from tests/fuzz_corpus, whose files the tests read, too; `--keep` puts there, of what was found, the
smallest input for each reader and each thing that it says.

Seals and checksums are made anew around each input, since an attacker can do so, too: what is behind them is reached.
"""

import argparse
import hashlib
import importlib.util
import logging
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "tests" / "fuzz_corpus"
_MOST_BYTES = 4096
_MOST_SECONDS = 10
_MOST_MEGABYTES = 2048
_MOST_KEPT = 120
_BETWEEN_ARRAYS = b"\0-\0"


def readers(folder: Path) -> tuple[Callable[[bytes], object], ...]:
    """What reads an input, by the input's first byte."""
    import zipfile

    from cagat.data.cleaning import clean
    from cagat.data.npz import read_npz
    from cagat.data.safetensors_graph import read_safetensors
    from cagat.data.table_files import read_folder
    from cagat.settings import TrainConfig
    from cagat.training.checkpoint import load_checkpoint
    from cagat.training.config_file import read_config
    from cagat.training.weights_file import read_weights
    from cagat.zip_seal import sealed

    def file(name: str, content: bytes) -> Path:
        path = folder / name
        path.write_bytes(content)
        return path

    def table_folder(content: bytes) -> object:
        edges, _, rest = content.partition(b"\0")
        features, _, labels = rest.partition(b"\0")
        for name, text in (("edges", edges), ("features", features), ("labels", labels)):
            file(f"{name}.csv", text)
        return clean(read_folder(folder))

    def archive_of(content: bytes) -> object:
        """Arrays behind zip's checksums, which would refuse almost every change of an archive."""
        with zipfile.ZipFile(folder / "g.npz", "w") as archive:
            for part in content.split(_BETWEEN_ARRAYS)[:20]:
                name, _, array = part.partition(b"\n")
                archive.writestr(name.decode("latin-1").replace("\0", "") or "x", array)
        return clean(read_npz(folder / "g.npz"))

    return (
        lambda content: clean(read_npz(file("g.npz", sealed(content)))),
        lambda content: clean(read_safetensors(file("g.safetensors", content))),
        table_folder,
        lambda content: None,  # Planetoid's pickles, which are only read if their checksum is a known one.
        lambda content: TrainConfig.from_values(read_config(file("config.yaml", content))),
        lambda content: load_checkpoint(file("checkpoint.pt", sealed(content))),
        lambda content: read_weights(_with_sum(file("model.safetensors", content))),
        archive_of,
    )


def _with_sum(path: Path) -> Path:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(path.name + ".sha256").write_text(f"{digest}  {path.name}\n")
    return path


def read(known: tuple[Callable[[bytes], object], ...], content: bytes) -> str:
    """Read an input and tell what came of it; only errors that are not ours come out of here."""
    from cagat.errors import CagatError

    if not content:
        return "nothing"
    try:
        known[content[0] % len(known)](content[1:])
    except CagatError as error:
        # What it says, but for what it names: numbers, folders, and whatever is between quotation marks.
        return re.sub(r"'.*'|\".*\"|\d+|\S*/", "", f"{type(error).__name__}: {error}", flags=re.DOTALL)[:80]
    return "read"


def seeds() -> list[bytes]:
    """One small valid file for each reader, and what is in the corpus."""
    import io
    import pickle
    import zipfile

    import safetensors.numpy
    import torch

    from cagat import data
    from cagat.training import Run, TrainConfig
    from cagat.zip_seal import opened

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph = data.load("synthetic:nodes=12,degree=2,classes=2,features=3,seed=0")
        for suffix in (".npz", ".safetensors"):
            data.save(graph, folder / f"g{suffix}")
        values = {"dataset": "karate", "labels": 2, "val_labels": 2, "epochs": 1, "hidden": 1, "heads": 1}
        Run.start(TrainConfig.from_values(values | {"threads": 1}), folder / "run").train()
        archive = io.BytesIO()
        torch.save({"a": torch.ones(1)}, archive)
        with zipfile.ZipFile(folder / "g.npz") as graph_archive:
            arrays = [name.encode() + b"\n" + graph_archive.read(name) for name in graph_archive.namelist()]
        contents = [
            opened((folder / "g.npz").read_bytes()) or b"",
            safetensors.numpy.save(safetensors.numpy.load((folder / "g.safetensors").read_bytes())),
            b"source,target\na,b\n\0node,x\na,1\nb,2\n\0node,label,split\na,0,train\nb,1,val\n",
            pickle.dumps({1: [2, 3], 2: [1, 3]}, protocol=2),
            (folder / "run" / "config.yaml").read_bytes(),
            archive.getvalue(),
            (folder / "run" / "model.safetensors").read_bytes(),
            _BETWEEN_ARRAYS.join(arrays),
        ]
    made = [bytes([number]) + content for number, content in enumerate(contents)]
    return made + [path.read_bytes() for path in sorted(CORPUS.glob("*"))]


def changed(content: bytes, draw: random.Random) -> bytes:
    """A few bytes changed, cut out, doubled or put in."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(content) + 1)
        end = min(len(content), start + draw.choice((0, 1, 2, 8, 64)))
        new = draw.choice(
            (b"", content[start:end] * 2, draw.randbytes(max(1, end - start)), b"\xff" * 8, b"-1", b"9" * 20)
        )
        content = content[:start] + new + content[end:] or b"\0"
    return content


def without_atheris(seconds: float, folder: Path) -> None:
    """Random changes of the seeds."""
    known, start, draw, count = readers(folder), seeds(), random.Random(0), 0  # noqa: S311
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        content = changed(draw.choice(start), draw)
        began, count = time.monotonic(), count + 1
        try:
            read(known, content)
        except BaseException:
            Path(f"crash-{count}").write_bytes(content)
            raise
        if time.monotonic() - began > _MOST_SECONDS:
            Path(f"crash-{count}").write_bytes(content)
            raise SystemExit(f"crash-{count} took longer than {_MOST_SECONDS} s")
    print(f"{count} inputs, 0 crashes in {seconds:.0f} s, by random changes (no atheris)")


def with_atheris(seconds: float, folder: Path, keep: bool) -> None:
    """Inputs that atheris finds, in a process of its own, since it ends the process that it runs in."""
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, content in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(content)
    command = [
        sys.executable, __file__, "--in", str(folder), f"-max_total_time={int(seconds)}", f"-max_len={_MOST_BYTES}",
        f"-timeout={_MOST_SECONDS}", f"-rss_limit_mb={_MOST_MEGABYTES}", "-print_final_stats=1", str(corpus),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        print(done.stderr[-4000:])
        raise SystemExit(f"1 crash; the input is {re.findall(r'(?:crash|oom|timeout)-[0-9a-f]+', done.stderr)[-1:]}")
    stats = dict(re.findall(r"stat::(\w+): +(\d+)", done.stderr))
    print(f"{stats['number_of_executed_units']} inputs, 0 crashes in {seconds:.0f} s, by atheris")
    found = [path for path in corpus.iterdir() if not path.name.startswith("seed")]
    if not found:
        raise SystemExit("No input reached new code: atheris does not see into the readers.")
    print(f"{len(found)} inputs reached new code; the largest memory was {stats['peak_rss_mb']} MiB")
    if keep:
        keep_interesting([path.read_bytes() for path in found], folder)


def keep_interesting(inputs: list[bytes], folder: Path) -> None:
    """Put the smallest input for each reader and outcome into the corpus, in place of what is there."""
    known, smallest = readers(folder), {}
    for content in sorted([*inputs, *(path.read_bytes() for path in CORPUS.glob("*"))], key=len):
        if content:
            smallest.setdefault((content[0] % len(known), read(known, content)), content)
    CORPUS.mkdir(exist_ok=True)
    for path in CORPUS.glob("*"):
        path.unlink()
    for content in list(smallest.values())[:_MOST_KEPT]:
        (CORPUS / hashlib.sha256(content).hexdigest()[:12]).write_bytes(content)


def fuzz(folder: Path, options: list[str]) -> None:
    """Let atheris run until its time is over or an input crashes."""
    import atheris

    with atheris.instrument_imports(include=["cagat.data", "cagat.training"]):
        known = readers(folder)
    atheris.Setup([sys.argv[0], *options], lambda content: read(known, content))
    atheris.Fuzz()


def main() -> None:
    """Fuzz for some minutes."""
    logging.getLogger("cagat").addHandler(logging.NullHandler())
    if sys.argv[1:2] == ["--in"]:
        fuzz(Path(sys.argv[2]), sys.argv[3:])
        return
    # Not above: what is imported before atheris looks at imports, it does not see into.
    from fault_kinds.report import facts, today

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--keep", action="store_true", help="keep small inputs that reached new code in the corpus")
    parser.add_argument("--without-atheris", action="store_true", help="random changes only")
    options = parser.parse_args()
    told = ", ".join(f"{name} {number}" for name, number in facts().items())
    print(f"python tools/fuzz_readers.py --minutes {options.minutes:g}, {today()}, {told}", flush=True)
    with tempfile.TemporaryDirectory(prefix="cagat-fuzz-") as folder:
        if not options.without_atheris and importlib.util.find_spec("atheris") is not None:
            with_atheris(60 * options.minutes, Path(folder), options.keep)
            return
        print("Without atheris (pip install atheris), inputs are changed at random only.")
        without_atheris(60 * options.minutes, Path(folder))


if __name__ == "__main__":
    main()
