import pytest
import torch

from cagat.distributed import metis_parts
from cagat.errors import CagatError, ConfigError


def two_rings() -> torch.Tensor:
    ring = torch.stack([torch.arange(10), torch.arange(10).roll(-1)])
    return torch.cat([ring, ring + 10, torch.tensor([[0], [10]])], dim=1)


def test_few_edges_are_cut_and_the_parts_are_equal():
    part = metis_parts(two_rings(), 20, 2)
    assert len(set(part[:10].tolist())) == len(set(part[10:].tolist())) == 1
    assert part[0] != part[10]
    assert torch.equal(part, metis_parts(two_rings(), 20, 2))


@pytest.mark.parametrize("parts", [1, 3, 6])
def test_no_part_is_empty(parts):
    star = torch.stack([torch.zeros(5, dtype=torch.long), torch.arange(1, 6)])
    assert set(metis_parts(star, 6, parts).tolist()) == set(range(parts))


def test_nodes_without_edges():
    assert set(metis_parts(torch.empty(2, 0, dtype=torch.long), 5, 2).tolist()) == {0, 1}


def test_more_parts_than_nodes():
    with pytest.raises(ConfigError, match=r"20 nodes cannot be cut into 21 parts\. Ask for 1 to 20"):
        metis_parts(two_rings(), 20, 21)


def test_a_large_graph_is_cut_by_a_process_of_its_own(monkeypatch):
    expected = metis_parts(two_rings(), 20, 2)
    monkeypatch.setattr("cagat.distributed.partition.LARGE", 10)
    assert torch.equal(metis_parts(two_rings(), 20, 2), expected)


def test_without_pymetis(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CagatError, match=r"pip install 'cagat\[scale\]'"):
        metis_parts(two_rings(), 20, 2)
