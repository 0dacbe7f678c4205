import pytest
import torch

from cagat import CaGAT, data
from cagat.models import Labelled, NodeClassifier
from cagat.training import EarlyStopping, FitOptions, accuracy, fit


class Scores(NodeClassifier):
    """A model that is one table of logits."""

    def __init__(self, nodes: int, classes: int) -> None:
        super().__init__()
        self.scores = torch.nn.Parameter(torch.zeros(nodes, classes))

    def forward(self) -> torch.Tensor:
        return self.scores


def test_early_stopping_keeps_copies_and_counts_patience():
    model, stopping = Scores(1, 2), EarlyStopping(patience=2)
    losses = [3.0, 2.0, 2.5, 2.0]
    stops = []
    for epoch, loss in enumerate(losses, 1):
        torch.nn.init.constant_(model.scores, epoch)
        stops.append(stopping.update(epoch, loss, model))
    assert stops == [False, False, False, True]  # Equal is not lower.
    assert (stopping.best_epoch, stopping.best_loss) == (2, 2.0)
    stopping.restore(model)
    assert model.scores.tolist() == [[2, 2]]


def test_nothing_to_restore_when_no_loss_was_a_number():
    model, stopping = Scores(1, 2), EarlyStopping(patience=1)
    assert stopping.update(1, float("nan"), model)
    with pytest.raises(RuntimeError, match="no epoch had a finite validation loss"):
        stopping.restore(model)


def test_fit_stops_at_the_best_validation_loss():
    # Node 1 has the class that training teaches nobody, so that its loss rises while node 0's falls.
    model = Scores(2, 2)
    train, val = Labelled(torch.tensor([0]), torch.tensor([1])), Labelled(torch.tensor([0, 1]), torch.tensor([1, 0]))
    epochs = []
    result = fit(model, (), train, val, FitOptions(lr=0.1, epochs=50, patience=5), epochs.append)
    assert [epoch.number for epoch in epochs] == list(range(1, len(result.history) + 1))
    best = min(epochs, key=lambda epoch: epoch.val_loss)
    assert result.best == best
    loss = torch.nn.functional.cross_entropy(model()[val[0]], val[1]).item()
    assert loss == pytest.approx(best.val_loss)


def test_fit_learns_cora():
    torch.manual_seed(0)
    graph = data.load("cora", sparse=True)
    split = data.split(graph.y, 20, 20, seed=0)
    inputs = (data.normalize_features(graph.x, "l1"), graph.edge_index)
    model = CaGAT(1433, 8, 2, 7)
    train, val, test = (Labelled(nodes, graph.y[nodes]) for nodes in split)
    fit(model, inputs, train, val, FitOptions(epochs=30, lr=0.02))
    assert accuracy(model, inputs, test) > 0.7


def test_weight_decay_draws_to_zero():
    losses = Labelled(torch.tensor([0]), torch.tensor([0]))
    sizes = []
    for weight_decay in (0.0, 1.0):
        model = Scores(1, 2)
        fit(model, (), losses, losses, FitOptions(lr=0.1, epochs=30, weight_decay=weight_decay))
        sizes.append(model.scores.abs().sum().item())
    assert sizes[1] < 0.5 * sizes[0]


def test_refuses_no_epochs():
    nodes = Labelled(torch.tensor([0]), torch.tensor([0]))
    with pytest.raises(ValueError, match="epochs must be a whole number of at least 1, but is 0"):
        fit(Scores(1, 2), (), nodes, nodes, FitOptions(epochs=0))
