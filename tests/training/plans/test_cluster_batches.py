import pytest
import torch

from cagat.models import Labelled
from cagat.nn import SparseFeatures
from cagat.training.plans.cluster_batches import ClusterBatches

NODES = 40


def batches(parts=8, parts_per_batch=3, seed=0, sparse=False) -> ClusterBatches:
    torch.manual_seed(0)
    edges = torch.randint(0, NODES, (2, 100))
    x = torch.arange(NODES, dtype=torch.float32)[:, None] + 1
    weight = edges[0] * NODES + edges[1]
    train = Labelled(torch.arange(0, NODES, 2), torch.arange(0, NODES, 2) % 3)
    inputs = (SparseFeatures.from_tensor(x.to_sparse()) if sparse else x, edges, weight)
    return ClusterBatches(inputs, train, parts, parts_per_batch, seed)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_batch_is_the_subgraph_that_its_parts_induce(sparse):
    made = batches(sparse=sparse)
    torch.manual_seed(0)
    source, target = torch.randint(0, NODES, (2, 100))
    seen = []
    for number, chosen in made.of_epoch(1):
        batch = made.make(number, chosen)
        x, edges, weight = batch.inputs
        nodes = (x.to_dense() if sparse else x)[:, 0].long() - 1
        inside = torch.isin(source, nodes) & torch.isin(target, nodes)
        kept = nodes[edges]
        # Each edge has come with its own weight, which tells its ends.
        assert torch.equal(weight, kept[0] * NODES + kept[1])
        assert sorted(weight.tolist()) == sorted((source * NODES + target)[inside].tolist())
        assert (nodes[batch.train.nodes] % 2 == 0).all()
        assert torch.equal(nodes[batch.train.nodes] % 3, batch.train.classes)
        seen += nodes.tolist()
    assert sorted(seen) == list(range(NODES))


def test_epochs_are_functions_of_seed_and_number():
    epochs = [batches(seed=seed).of_epoch(epoch) for seed, epoch in ((0, 1), (0, 1), (0, 2), (1, 1))]
    assert epochs[0] == epochs[1]
    assert epochs[0] != epochs[2]
    assert epochs[0] != epochs[3]
    assert [len(chosen) for _, chosen in epochs[0]] == [3, 3, 2]


def test_processes_share_the_batches_of_an_epoch():
    made = batches(parts=7, parts_per_batch=1)
    everything = made.of_epoch(3)
    shares = [made.of_epoch(3, rank, 3) for rank in range(3)]
    assert sorted(one for share in shares for one in share) == everything
    assert [len(share) for share in shares] == sorted((len(share) for share in shares), reverse=True)


def test_batches_without_training_nodes_are_left_out():
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    made = ClusterBatches((torch.ones(4, 1), edges, None), Labelled(torch.tensor([0]), torch.tensor([0])), 2, 1, seed=0)
    ((number, chosen),) = made.of_epoch(1)
    assert made.make(number, chosen).train.nodes.numel() == 1


def test_parts_without_edges_are_batches_too():
    none = torch.empty(2, 0, dtype=torch.long)
    train = Labelled(torch.arange(6), torch.zeros(6, dtype=torch.long))
    made = ClusterBatches((torch.arange(6.0)[:, None], none, torch.empty(0)), train, 3, 1, seed=0)
    seen = []
    for number, chosen in made.of_epoch(1):
        x, edges, weight = made.make(number, chosen).inputs
        assert edges.shape == (2, 0)
        assert weight.numel() == 0
        seen += x[:, 0].tolist()
    assert sorted(seen) == list(range(6))
