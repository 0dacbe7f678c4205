import pytest
import torch

from cagat import CaGAT, data
from cagat.models import Labelled, NodeClassifier
from cagat.training import FitOptions, FullBatch, Trainer, accuracy, fit


class Scores(NodeClassifier):
    """A model that is one table of logits."""

    def __init__(self, nodes: int, classes: int) -> None:
        super().__init__()
        self.scores = torch.nn.Parameter(torch.zeros(nodes, classes))

    def forward(self) -> torch.Tensor:
        return self.scores


def test_early_stopping_keeps_the_first_best_weights_and_counts_patience():
    class Wandering(Scores):
        """A model whose validation losses are given."""

        losses_left = iter([3.0, 2.0, 2.5, 2.0, 1.0])

        def stopping_loss(self, inputs, logits, val):
            return torch.tensor(next(self.losses_left))

    nodes = Labelled(torch.tensor([0]), torch.tensor([0]))
    trainer = Trainer(FullBatch(Wandering(1, 2), (), nodes, nodes), FitOptions(patience=2))
    weights = []
    while not trainer.finished:
        trainer.run_epoch()
        weights.append(trainer.model.scores.tolist())
    assert len(weights) == 4  # Equal is not lower.
    assert (trainer.best.number, trainer.best.val_loss) == (2, 2.0)
    trainer.finish()
    assert trainer.model.scores.tolist() == weights[1]

    Wandering.losses_left = iter([3.0, 2.0, 2.5, 2.0, 1.0])
    trainer = Trainer(FullBatch(Wandering(1, 2), (), nodes, nodes), FitOptions(stopping="none", fixed_epochs=3))
    while not trainer.finished:
        trainer.run_epoch()
    assert (trainer.best.number, trainer.best.val_loss) == (3, 2.5)  # Watched, but it does not decide.


def test_hooks_run_where_they_say():
    calls = []

    class Watched(FullBatch):
        def losses(self, epoch):
            for number in (1, 2):
                calls.append(f"loss {number} of epoch {epoch}")
                yield from super().losses(epoch)

        def after_backward(self):
            assert self.model.scores.grad is not None
            calls.append(("after backward", self.model.scores.tolist()))

        def after_epoch(self, optimizer):
            calls.append(("after epoch", self.model.scores.tolist()))

        def validate(self):
            assert not self.model.training
            assert not torch.is_grad_enabled()
            calls.append("validate")
            return super().validate()

    nodes = Labelled(torch.tensor([0]), torch.tensor([0]))
    trainer = Trainer(Watched(Scores(1, 2), (), nodes, nodes))
    trainer.run_epoch()
    first, second, end = (call[1] for call in calls if isinstance(call, tuple))
    assert [call if isinstance(call, str) else call[0] for call in calls] == [
        "loss 1 of epoch 1", "after backward", "loss 2 of epoch 1", "after backward", "after epoch", "validate"
    ]  # fmt: skip
    assert first == [[0, 0]]  # Before the step.
    assert first != second != end


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
    fit(model, inputs, train, val, FitOptions(epochs=15, lr=0.03))
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
