import pytest
import torch
from torch.testing import assert_close

from cagat.models import CaGAT, Labelled
from cagat.nn import SparseFeatures
from cagat.training.mini_batches import ClusterBatches, NeighbourhoodBatches, neighbourhood

FEW = 40
NODES = 160

SETTINGS = [
    {"K": 1, "T": 1},
    {"K": 2, "T": 1},
    {"K": 1, "T": 2, "xi": 0.0},
    {"K": 3, "T": 2, "alpha": 0.0, "xi": 0.03},
    {"K": 0, "T": 0},
    {"K": 2, "T": 1, "feedback": True},
    {"K": 1, "T": 2, "normalization": "sym"},
    {"K": 1, "T": 2, "normalization": "walk"},
    {"K": 1, "T": 2, "normalization": "gcn"},
    {"K": 2, "T": 1, "alpha": 0.0, "feedback": True, "normalization": "gcn"},
    {"K": 1, "T": 1, "propagation": "last"},
    {"K": 2, "T": 2, "support": "edges", "xi": 0.03},
    {"K": 1, "T": 1, "learn_coefficients": True},
]


def batches(clusters=8, clusters_per_batch=3, seed=0, sparse=False) -> ClusterBatches:
    torch.manual_seed(0)
    edges = torch.randint(0, FEW, (2, 100))
    x = torch.arange(FEW, dtype=torch.float32)[:, None] + 1
    weight = edges[0] * FEW + edges[1]
    train = Labelled(torch.arange(0, FEW, 2), torch.arange(0, FEW, 2) % 3)
    inputs = (SparseFeatures.from_tensor(x.to_sparse()) if sparse else x, edges, weight)
    return ClusterBatches(inputs, train, clusters, clusters_per_batch, seed)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_batch_is_the_subgraph_that_its_clusters_induce(sparse):
    made = batches(sparse=sparse)
    torch.manual_seed(0)
    source, target = torch.randint(0, FEW, (2, 100))
    seen = []
    for chosen in made.of_epoch(1):
        batch = made.make(chosen)
        x, edges, weight = batch.inputs
        nodes = (x.to_dense() if sparse else x)[:, 0].long() - 1
        inside = torch.isin(source, nodes) & torch.isin(target, nodes)
        kept = nodes[edges]
        # Each edge has come with its own weight, which tells its ends.
        assert torch.equal(weight, kept[0] * FEW + kept[1])
        assert sorted(weight.tolist()) == sorted((source * FEW + target)[inside].tolist())
        assert (nodes[batch.train.nodes] % 2 == 0).all()
        assert torch.equal(nodes[batch.train.nodes] % 3, batch.train.classes)
        seen += nodes.tolist()
    assert sorted(seen) == list(range(FEW))


def test_epochs_are_functions_of_seed_and_number():
    epochs = [batches(seed=seed).of_epoch(epoch) for seed, epoch in ((0, 1), (0, 1), (0, 2), (1, 1))]
    assert epochs[0] == epochs[1]
    assert epochs[0] != epochs[2]
    assert epochs[0] != epochs[3]
    assert [len(chosen) for chosen in epochs[0]] == [3, 3, 2]


def test_batches_without_training_nodes_are_left_out():
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    made = ClusterBatches((torch.ones(4, 1), edges, None), Labelled(torch.tensor([0]), torch.tensor([0])), 2, 1, seed=0)
    (chosen,) = made.of_epoch(1)
    assert made.make(chosen).train.nodes.numel() == 1


def test_clusters_without_edges_are_batches_too():
    none = torch.empty(2, 0, dtype=torch.long)
    train = Labelled(torch.arange(6), torch.zeros(6, dtype=torch.long))
    made = ClusterBatches((torch.arange(6.0)[:, None], none, torch.empty(0)), train, 3, 1, seed=0)
    seen = []
    for chosen in made.of_epoch(1):
        x, edges, weight = made.make(chosen).inputs
        assert edges.shape == (2, 0)
        assert weight.numel() == 0
        seen += x[:, 0].tolist()
    assert sorted(seen) == list(range(6))


def ladder() -> torch.Tensor:
    """A long graph whose nodes have different degrees: a ring with some rungs, and some edges in one direction only."""
    ring = torch.stack([torch.arange(NODES), torch.arange(NODES).roll(-1)])
    rungs = torch.stack([torch.arange(0, NODES - 3, 5), torch.arange(3, NODES, 5)])
    return torch.cat([ring, ring[:, ::2].flip(0), rungs, rungs[:, ::2].flip(0)], dim=1)


def undirected_ring() -> torch.Tensor:
    ring = torch.stack([torch.arange(NODES), torch.arange(NODES).roll(-1)])
    return torch.cat([ring, ring.flip(0)], dim=1)


def logits_of_the_seeds(settings, edges, fewer_hops=0):
    torch.manual_seed(0)
    x = torch.randn(NODES, 4, dtype=torch.float64)
    model = CaGAT(4, 3, 2, 2, heads=2, lam=0.7, **settings).double().eval()
    seeds = torch.tensor([40, 44])
    train = Labelled(seeds, torch.tensor([0, 1]))
    batches = NeighbourhoodBatches((x, edges, None), train, model.reach() - fewer_hops, 2, seed=0)
    (chosen,) = batches.of_epoch(1)
    batch = batches.make(chosen)
    with torch.no_grad():
        near = model(*batch.inputs)[batch.train.nodes]
        whole = model(x, edges)[seeds[chosen]]
    return near, whole, batch


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_logits_are_those_of_the_whole_graph(settings):
    near, whole, batch = logits_of_the_seeds(settings, ladder())
    assert batch.inputs[0].shape[0] < NODES
    assert_close(near, whole, atol=1e-13, rtol=1e-13)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_one_hop_less_would_not_do(settings):
    near, whole, _ = logits_of_the_seeds(settings, undirected_ring(), fewer_hops=1)
    assert not torch.equal(near, whole)


def test_how_far_the_paper_looks():
    # Two layers of 2 K T + 1 hops, and the degrees at the end.
    assert CaGAT(4, 8, 2, 3).reach() == 2 * 13 + 1
    assert CaGAT(4, 8, 2, 3, alpha=0, xi=0).reach() == 2
    assert CaGAT(4, 8, 2, 3, affinity="full").reach() is None
    assert CaGAT(4, 8, 2, 3, affinity="full", xi=0).reach() == 27


def test_edges_count_in_either_direction():
    edges = torch.tensor([[0, 2, 3], [1, 1, 2]])
    assert neighbourhood(edges, 5, torch.tensor([0]), 1).tolist() == [True, True, False, False, False]
    assert neighbourhood(edges, 5, torch.tensor([0]), 9).tolist() == [True, True, True, True, False]


def test_an_epoch_has_every_seed_once_in_an_order_of_its_own():
    train = Labelled(torch.arange(0, NODES, 3), torch.zeros(54, dtype=torch.long))
    batches = NeighbourhoodBatches(
        (torch.zeros(NODES, 1), ladder(), torch.ones(ladder().size(1))), train, 2, 10, seed=1
    )
    first, again, second = (batches.of_epoch(epoch) for epoch in (1, 1, 2))
    assert [chosen.tolist() for chosen in first] == [chosen.tolist() for chosen in again]
    assert [chosen.tolist() for chosen in first] != [chosen.tolist() for chosen in second]
    assert sorted(torch.cat(first).tolist()) == list(range(54))
    batch = batches.make(first[0])
    assert batch.inputs[2].shape == batch.inputs[1].shape[1:]
