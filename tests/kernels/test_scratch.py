import threading

import torch

from cagat.kernels import scratch as room
from cagat.kernels.scratch import scratch


def test_memory_is_used_again_once_the_last_tensor_is_gone(monkeypatch):
    monkeypatch.setattr(room, "_shelf", room._Shelf())
    first = scratch(1000, 512, dtype=torch.float32)
    place, view = first.data_ptr(), first[3:]
    del first
    other = scratch(1000, 512, dtype=torch.float32)
    assert other.data_ptr() != place
    del view
    assert scratch(500, 512, dtype=torch.float64).data_ptr() == place


def test_small_and_empty_tensors():
    assert scratch(0, 4, dtype=torch.float32).shape == (0, 4)
    assert scratch(3, dtype=torch.float64).dtype == torch.float64


def test_no_more_is_kept_than_allowed(monkeypatch):
    monkeypatch.setattr(room, "_KEPT_BYTES", 3 * 2**20)
    shelf = room._Shelf()
    leases = [shelf.lease(2**20 + extra) for extra in range(5)]
    del leases
    assert sum(block.nbytes for block in shelf._blocks) <= 3 * 2**20


def test_two_threads_never_share_a_block():
    failures = []

    def work(number):
        for _ in range(200):
            tensor = scratch(2**18, dtype=torch.float32)
            tensor.fill_(number)
            if not bool((tensor == number).all()):
                failures.append(number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_blocks_begin_with_a_line_of_the_cache():
    kept = [scratch(2**18 + 16 * extra, dtype=torch.float32) for extra in range(4)]
    assert all(tensor.data_ptr() % 64 == 0 for tensor in kept)
