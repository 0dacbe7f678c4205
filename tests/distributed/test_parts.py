"""Processes that open a graph in parts against one process with all of it."""

import json

import pandas
import pytest
import torch

from cagat.distributed import World, disk_memory, take_turns
from cagat.errors import ConfigError, DatasetError
from distributed.parts_cases import CASES, differences, in_parts, run_parts
from parts_on_disk import cut, some_graph
from processes import cagat, run_ranks, start_ranks

PARTS = 4
SETTINGS = ("--labels", 5, "--val-labels", 5, "--hidden", 4, "--heads", 2, "--epochs", 3, "--json")


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for number, case in enumerate(CASES.values()):
        cut(some_graph(**case), folder / str(number), PARTS, "stream" if number == 1 else "metis")
    return [folder / str(number) for number in range(len(CASES))]


def check(directories, found) -> None:
    for directory, (name, case), ours in zip(directories, CASES.items(), found, strict=True):
        for what, difference in differences(directory, case, ours).items():
            assert difference < 1e-9, (name, what)
        assert all(one["as forecast"] for one in ours)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_any_number_of_processes_is_exact(directories, tmp_path, size):
    run_ranks(size, run_parts, directories, tmp_path / "found.json", said=tmp_path)
    check(directories, json.loads((tmp_path / "found.json").read_text()))


def test_one_process_with_all_parts_is_exact(directories):
    check(directories, [[in_parts(World(), directory)] for directory in directories])


def test_out_of_core_is_exact(directories, tmp_path, monkeypatch):
    monkeypatch.setattr(disk_memory, "_SMALLEST", 0)
    before = torch.get_rng_state()

    def work(world):
        return [world.all_of(in_parts(world, directory)) for directory in directories]

    check(directories, take_turns(PARTS, tmp_path, work, work))
    assert torch.equal(torch.get_rng_state(), before)
    assert not list(tmp_path.iterdir())


def test_one_that_fails_ends_all(tmp_path):
    def fail(world):
        world.all_of(1)
        if world.rank == 2:
            raise DatasetError("part 2 is broken")
        world.all_of(2)

    with pytest.raises(DatasetError, match="part 2 is broken"):
        take_turns(4, tmp_path, fail, fail)


def test_what_turns_tell_each_other(tmp_path):
    def work(world):
        rows = torch.arange(3.0) + 10 * world.rank
        got = world.exchange(rows, [1, 1, 1], [1, 1, 1]).tolist()
        first = torch.full((2,), float(world.rank))
        world.broadcast(first)
        random = torch.rand(1).item()
        return world.all_of([world.sum(rows).tolist(), got, first.tolist(), random])

    torch.manual_seed(5)
    expected = torch.rand(1).item()
    torch.manual_seed(5)
    for rank, (total, got, first, random) in enumerate(take_turns(3, tmp_path, work, work)):
        assert total == [30, 33, 36]
        assert got == [rank, 10 + rank, 20 + rank]
        assert first == [0, 0]
        assert random == expected  # As processes of their own would draw.


def test_the_commands(directories, tmp_path):
    """Train with two processes and out of core, then predict with either."""
    train = ("train", "--dataset", directories[0], *SETTINGS)
    run_ranks(2, cagat, *train, "--parallel", "graph", "--out", tmp_path / "two", said=tmp_path)
    cagat_here(*train, "--out-of-core", "--out", tmp_path / "turns")
    cagat_here(
        "train", "--dataset", "synthetic:nodes=200,degree=4,classes=3,features=8,seed=0", "--no-baselines", *SETTINGS,
        "--out", tmp_path / "alone",
    )  # fmt: skip
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("two", "turns", "alone")]
    for result in results[:2]:
        for key in ("val_loss", "test_accuracy", "temperature", "balanced_accuracy", "train_nodes", "test_nodes"):
            assert result[key] == pytest.approx(results[2][key], rel=1e-4), key
    run_ranks(2, cagat, "predict", tmp_path / "turns", "--out", tmp_path / "two.csv", said=tmp_path)
    run_ranks(2, cagat, "embed", tmp_path / "two", "--out", tmp_path / "two.parquet", said=tmp_path)
    cagat_here("embed", tmp_path / "two", "--out-of-core", "--out", tmp_path / "turns.parquet")
    cagat_here("embed", tmp_path / "alone", "--out", tmp_path / "alone.parquet")
    vectors = [
        pandas.read_parquet(tmp_path / f"{name}.parquet").set_index("node") for name in ("two", "turns", "alone")
    ]
    for ours in vectors[:2]:
        ours.index = ours.index.astype(vectors[2].index.dtype)
        pandas.testing.assert_frame_equal(ours.sort_index(), vectors[2].sort_index(), rtol=0, atol=1e-4)
    cagat_here("predict", tmp_path / "two", "--out-of-core", "--out", tmp_path / "turns.csv")
    rows = [sorted(tables(path)) for path in (tmp_path / "two.csv", tmp_path / "turns.csv")]
    theirs = sorted(tables(tmp_path / "alone" / "predictions.csv"))
    for ours in rows:
        assert [row[:2] for row in ours] == [row[:2] for row in theirs]
        assert [row[5] for row in ours] == [row[5] for row in theirs]
        for mine, other in zip(ours, theirs, strict=True):
            assert [float(cell) for cell in mine[2:5]] == pytest.approx([float(cell) for cell in other[2:5]], abs=1e-4)


def cagat_here(*words) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["cagat"])
        with pytest.raises(SystemExit, match=r"^0$"):
            cagat(*words)


def tables(path) -> list[list[str]]:
    return [[cell.strip('"') for cell in line.split(",")] for line in path.read_text().splitlines()[1:]]


def test_a_part_that_is_missing_ends_all_processes_by_name(tmp_path):
    cut(some_graph(), tmp_path / "parts", 2)
    (tmp_path / "parts" / "part-00001").rename(tmp_path / "away")
    words = ("train", "--dataset", tmp_path / "parts", *SETTINGS, "--parallel", "graph", "--out", tmp_path / "run")
    processes = start_ranks(2, cagat, *words, said=tmp_path)
    try:
        for rank, process in enumerate(processes):
            process.join(60)
            assert process.exitcode == 1
            assert "part-00001: the part is missing" in (tmp_path / f"{rank}.err").read_text()
    finally:
        for process in processes:
            process.kill()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "the graph is in parts. Train with --parallel graph"),
        (("--out-of-core", "--parallel", "graph"), "--out-of-core is for one process alone"),
        (("--out-of-core", "--model", "gcn"), "--out-of-core computes the model cagat"),
    ],
)
def test_settings_that_do_not_go_with_parts(directories, tmp_path, words, told):
    from cagat.settings import TrainConfig
    from cagat.training.parted_problem import load_problem

    values = dict(zip([word[2:].replace("-", "_") for word in words[::2]], words[1::2], strict=False))
    if "--out-of-core" in words:
        values = {"out_of_core": True} | {word[2:]: words[words.index(word) + 1] for word in words[1::2]}
    with pytest.raises(ConfigError, match=told):
        load_problem(TrainConfig.from_values({"dataset": str(directories[0]), **values}), World())
