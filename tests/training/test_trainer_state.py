"""What is looked at in the state of a trainer."""

import torch

from cagat.training.trainer_state import _tensors


def test_what_is_there_again_and_again_is_visited_once():
    first, second = torch.zeros(1), torch.ones(1)
    doubled = [first, {"a": second}]
    for _ in range(20):
        doubled = [doubled, doubled]
    assert {id(tensor) for tensor in _tensors(doubled)} == {id(first), id(second)}
    assert len(list(_tensors(doubled))) == 2


def test_depth_is_no_limit():
    deep = [torch.zeros(1)]
    for _ in range(100_000):
        deep = [deep]
    assert len(list(_tensors({"a": (deep,)}))) == 1
