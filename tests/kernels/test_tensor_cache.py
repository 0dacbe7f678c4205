import gc
import weakref

import torch

from cagat.kernels.graph_cache import TensorCache


class Made:
    pass


def test_what_was_made_leaves_with_its_tensor():
    cache, tensor = TensorCache(), torch.ones(3)
    made = weakref.ref(cache.get((tensor,), (), Made))
    assert len(cache) == 1
    del tensor
    gc.collect()
    assert len(cache) == 0
    assert made() is None


def test_the_least_recently_used_leaves_first():
    cache, tensors = TensorCache(capacity=2), [torch.ones(1) for _ in range(3)]
    first = cache.get((tensors[0],), (), Made)
    second = cache.get((tensors[1],), (), Made)
    assert cache.get((tensors[0],), (), Made) is first
    cache.get((tensors[2],), (), Made)
    assert cache.get((tensors[0],), (), Made) is first
    assert cache.get((tensors[1],), (), Made) is not second


def test_a_tensor_changed_while_something_is_made_of_it_is_made_of_again():
    cache, tensor = TensorCache(), torch.ones(3)
    before = cache.get((tensor,), (), lambda: tensor.add_(1).clone())
    assert cache.get((tensor,), (), tensor.clone) is not before
