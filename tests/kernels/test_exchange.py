"""What compiled passes call while they work on a graph in parts; `tests/distributed` tries it with processes."""

import pytest
import torch

from cagat.kernels.exchange import SEND, VALUES_BACK, WAIT, Calls, Exchange


class Noted(Exchange):
    halo, outer, values, positions = 1, 1, 0, torch.zeros(3, dtype=torch.long)

    def __init__(self, fails=False):
        self.asked, self.fails = [], fails

    def send(self, rows):
        if self.fails:
            raise RuntimeError("gloo: connection closed by peer")
        rows[:, -1] = 7  # As if it had arrived.
        self.asked.append(tuple(rows.shape))

    def wait(self):
        self.asked.append("wait")

    def exchange_values(self, values, *, back):
        self.asked.append((tuple(values.shape), back))


def test_addresses_become_the_tensors_that_lie_there():
    exchange, rows = Noted(), torch.zeros(2, 4, 3)
    calls = Calls(exchange, (2, 4, 3), (5, 2), torch.float32)
    calls._function(SEND, rows.data_ptr())
    calls._function(WAIT, 0)
    calls._function(VALUES_BACK, torch.zeros(5, 2).data_ptr())
    calls.check()
    assert exchange.asked == [(2, 4, 3), "wait", ((5, 2), True)]
    assert rows[:, -1].eq(7).all()
    assert rows[:, :-1].eq(0).all()


def test_an_error_ends_the_exchange_and_is_raised_after_the_pass():
    exchange, rows = Noted(fails=True), torch.zeros(2, 4, 3)
    calls = Calls(exchange, (2, 4, 3), (5, 2), torch.float32)
    calls._function(SEND, rows.data_ptr())
    calls._function(WAIT, 0)
    assert exchange.asked == []
    with pytest.raises(RuntimeError, match="closed by peer"):
        calls.check()
