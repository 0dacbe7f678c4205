import itertools
import multiprocessing
import sys
import threading

import joblib
import numpy as np
import pytest
import torch

from cagat import CSRGraph
from cagat.kernels import edge_diffusion, edge_softmax, sddmm_heads, spmm, spmm_heads
from cagat.kernels.threads import RowThreads, torch_threads


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def all_products() -> list[torch.Tensor]:
    """Products large enough to be split among threads, on a graph with a hub."""
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 4000, (2, 40000), generator=generator)
    edge_index[1, :3000] = 7
    graph = CSRGraph.from_edge_index(edge_index, 4000)
    pattern, weights = graph.pattern, graph.transition("row", torch.float32)
    values = torch.randn(graph.num_entries, 8, generator=generator)
    x = torch.randn(4000, 8, 8, generator=generator)
    return [
        spmm(pattern, weights, x),
        spmm_heads(pattern, values, x),
        spmm_heads(pattern, values, x, transpose=True),
        sddmm_heads(pattern, x, x),
        edge_softmax(pattern, x[..., 0], x[..., 1], values),
        edge_diffusion(pattern, weights, values),
    ]


def test_bits_do_not_depend_on_the_number_of_threads(threads):
    threads(1)
    expected = all_products()
    for number in (2, 3, 7):
        threads(number)
        assert all(map(torch.equal, all_products(), expected))


def test_bits_are_the_same_on_threads_of_our_own(threads, monkeypatch):
    threads(2)
    expected = all_products()
    monkeypatch.setattr("cagat.kernels.threads.torch_threads", lambda: None)
    for _ in range(5):
        assert all(map(torch.equal, all_products(), expected))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere torch may be built with other threads")
def test_compiled_code_runs_on_torchs_threads(threads):
    threads(2)
    all_products()
    assert torch_threads() is not None
    context = multiprocessing.get_context("fork")
    child = context.Process(target=lambda: sys.exit(0 if torch_threads() is None else 1))
    child.start()
    child.join(timeout=60)
    assert child.exitcode == 0


def test_python_threads_may_multiply_at_once(threads):
    threads(2)
    expected = all_products()
    failures = []

    def work():
        failures.extend(_ for _ in range(5) if not all(map(torch.equal, all_products(), expected)))

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def _who_worked(rows: RowThreads, names: "multiprocessing.SimpleQueue[str]") -> None:
    started = threading.Event()

    def kernel(start: int, stop: int) -> None:
        # The first block waits for another thread to take the second one, if there is one.
        if start == 0:
            started.wait(timeout=20)
        else:
            started.set()
        names.put(threading.current_thread().name)

    rows.run(kernel, np.arange(3), (), width=10**6, threads=2)
    names.put("end")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_forked_child_starts_threads_of_its_own():
    rows, context = RowThreads(), multiprocessing.get_context("fork")
    names = context.SimpleQueue()
    _who_worked(rows, names)  # Now the parent has a worker, which the child will not have.
    child = context.Process(target=_who_worked, args=(rows, names))
    child.start()
    child.join(timeout=60)
    if child.exitcode is None:
        child.kill()
    assert child.exitcode == 0
    for _ in ("parent", "child"):
        assert {names.get(), names.get()} == {"MainThread", "cagat-rows"}
        assert names.get() == "end"


class _Products(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return all_products()[index]


def test_works_in_workers_of_a_data_loader(threads):
    threads(2)
    expected = all_products()
    loader = torch.utils.data.DataLoader(_Products(), batch_size=None, num_workers=2)
    assert all(map(torch.equal, loader, expected[:4]))


def test_rows_are_covered_once_and_in_balance():
    pool = RowThreads()
    rowptr = np.concatenate([[0], np.cumsum(np.r_[np.zeros(50), 10_000, np.ones(200)])]).astype(np.int32)
    ranges = []
    pool.run(lambda start, stop: ranges.append((start, stop)), rowptr, (), width=10_000, threads=4)
    ranges.sort()
    assert ranges[0][0] == 0
    assert ranges[-1][1] == len(rowptr) - 1
    assert all(first[1] == second[0] for first, second in itertools.pairwise(ranges))


def test_small_work_stays_in_the_calling_thread():
    pool = RowThreads()
    callers = []
    pool.run(lambda start, stop: callers.append(threading.current_thread()), np.arange(11), (), width=1, threads=8)
    assert callers == [threading.current_thread()]


def test_an_error_in_another_thread_is_raised_here():
    def kernel(start, stop):
        if start:
            raise MemoryError("not here")

    with pytest.raises(MemoryError, match="not here"):
        RowThreads().run(kernel, np.arange(1001), (), width=10_000, threads=2)


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])  # Those of loky share nothing with this one.
def test_works_under_joblib(backend, threads):
    threads(2)
    expected = all_products()
    received = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(_first_product)() for _ in range(4))
    assert all(torch.equal(product, expected[0]) for product in received)


def _first_product() -> torch.Tensor:
    if multiprocessing.parent_process() is not None:  # What torch asks for in a forked child.
        torch.set_num_threads(1)
    return all_products()[0]
