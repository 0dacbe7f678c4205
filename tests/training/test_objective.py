import math

import pytest
import torch
from torch.nn import functional as F

from cagat.errors import ConfigError
from cagat.models import Labelled, create, names
from cagat.models.node_classifier import NodeClassifier
from cagat.settings import FitOptions
from cagat.training import Run, TrainConfig, fit
from cagat.training.objective import Objective, Sampled
from cagat.training.trainer import FullBatch, Trainer

NODES = Labelled(torch.tensor([0, 2]), torch.tensor([0, 1]))


def test_supervised_is_the_cross_entropy():
    logits = torch.tensor([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0]])
    assert Objective().loss([logits], NODES.loss, 1) == NODES.loss(logits)


def test_hand_computed():
    # Two predictions of one node, 0.8 and 0.6 for its first class: the mean is 0.7, squared and scaled 0.49 / 0.58.
    predictions = [torch.tensor([[p, 1 - p]]).log().requires_grad_() for p in (0.8, 0.6)]
    labelled = Labelled(torch.tensor([0]), torch.tensor([0]))
    objective = Objective(samples=2, consistency=3.0, ramp=10, sharpening=0.5)
    target = 0.49 / 0.58
    disagreement = (2 * (0.8 - target) ** 2 + 2 * (0.6 - target) ** 2) / 2
    supervised = -(math.log(0.8) + math.log(0.6)) / 2
    loss = objective.loss(predictions, labelled.loss, 5)
    assert loss.item() == pytest.approx(supervised + 0.5 * 3 * disagreement, rel=1e-5)  # Half of the ramp.
    assert objective.loss(predictions, labelled.loss, 99).item() == pytest.approx(
        supervised + 3 * disagreement, rel=1e-5
    )
    # No gradient goes through the target: that of the second prediction's logits is as if it were a constant.
    (found,) = torch.autograd.grad(loss, predictions[1])
    constant = predictions[1].detach().requires_grad_()
    p = constant.softmax(dim=1)
    aim = torch.tensor([[target, 1 - target]])
    alone = (F.cross_entropy(constant, labelled.classes) + 1.5 * (p - aim).square().sum()) / 2
    assert torch.allclose(found, torch.autograd.grad(alone, constant)[0], atol=1e-6)


def test_alignment_makes_frequent_classes_rarer_in_the_target():
    probabilities = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]])
    shares = {}
    for power in (0.0, 0.5, 1.0):
        target = Objective(2, 1.0, 0, 1.0, power)._target(probabilities, 3.0, lambda share: share)
        assert torch.allclose(target.sum(dim=1), torch.ones(3))
        shares[power] = target[:, 0].mean().item()
    assert shares[0.0] == pytest.approx(probabilities[:, 0].mean().item())
    assert shares[0.0] > shares[0.5] > shares[1.0]
    # By hand: the mean share is 2.3 / 3, so the third node's odds become 0.6 / 0.4 * (0.7 / 2.3).
    odds = 0.6 / 0.4 * 0.7 / 2.3
    assert target[2, 0].item() == pytest.approx(odds / (1 + odds))


def test_certain_predictions_have_finite_gradients():
    logits = torch.tensor([[500.0, -500.0], [500.0, -500.0], [500.0, -500.0]], requires_grad=True)
    Objective(1, 1.0, 0, 0.5, 1.0).loss([logits], NODES.loss, 1).backward()
    assert logits.grad.isfinite().all()


def test_agreement_and_alignment_count_more_where_labels_are_few():
    def of(classes, **given):
        train = Labelled(torch.arange(len(classes)), torch.tensor(classes))
        return Objective.of(FitOptions(objective="consistent", consistency=3.0, **given), train, 1000)

    def with_labels(labels, **given):
        return of([0, 1, 2] * labels, **given)

    assert with_labels(1).alignment == with_labels(2).alignment == 0.6
    assert with_labels(5).alignment == pytest.approx(0.4)
    assert with_labels(20).alignment == pytest.approx(0.1)
    assert with_labels(1).consistency == with_labels(20).consistency == 3  # Without emphasis.
    assert with_labels(1, emphasis=0.5).consistency == with_labels(2, emphasis=0.5).consistency == 4.5
    assert with_labels(20, emphasis=0.5).consistency == pytest.approx(3 * 1.05)
    # Classes without any label do not count.
    assert of([0] * 7 + [7]).alignment == pytest.approx(2 / 4)
    assert of([0] * 7 + [7], emphasis=1.0).consistency == pytest.approx(3 * 1.5)
    assert with_labels(1, alignment=0.3).alignment == 0.3
    assert Objective.of(FitOptions(), NODES, 9) == Objective()


def test_weight_decay_falls_where_labels_are_many():
    def trainer(labels, **given):
        train = Labelled(torch.arange(3 * labels), torch.arange(3).repeat(labels))
        options = FitOptions(weight_decay=0.2, **given)
        plan = FullBatch(Noisy(), (), train, train, Objective.of(options, train, 1000))
        return [group["weight_decay"] for group in Trainer(plan, options).optimizer.param_groups]

    assert trainer(1) == trainer(20) == trainer(20, objective="consistent") == [0.2]
    assert trainer(80) == trainer(80, objective="consistent") == [0.05]


def test_where_most_nodes_have_a_label_they_are_all_that_is_learnt_from():
    options = FitOptions(objective="consistent")
    assert Objective.of(options, NODES, 3) == Objective()
    assert Objective.of(options, NODES, 4).samples == 2


@pytest.mark.parametrize("name", names())
def test_every_network_takes_it(name, tmp_path):
    values = {"dataset": "cora", "model": name, "objective": "consistent", "epochs": 2, "baselines": False}
    config = TrainConfig.from_values(values)
    assert config.samples >= 2
    network = create(name, 3, 2)
    if network.has_own_losses or network.closed_form:
        with pytest.raises(ConfigError, match=f"{name} has a training of its own, so --objective consistent"):
            Run.start(config, tmp_path / "run").train()
        with pytest.raises(ConfigError, match="has a training of its own, so the objective consistent"):
            fit(network, (), None, None, config.fit_options())
    else:
        assert Run.start(config, tmp_path / "run").train().epochs == 2


class Noisy(NodeClassifier):
    """Logits that are drawn around weights."""

    def __init__(self):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.zeros(40, 2))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.logits + 0.1 * torch.randn(40, 2) * self.training


def test_agreement_labels_the_unlabelled():
    """Two labels out of 40 nodes: the supervised objective leaves the others alone, the other makes up its mind."""
    train, none = NODES, Labelled(torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64))
    sure = {}
    for objective in ("supervised", "consistent"):
        torch.manual_seed(0)
        model = Noisy()
        options = FitOptions(lr=0.1, weight_decay=0.0, fixed_epochs=60, objective=objective, samples=3, ramp=0)
        fit(model, (torch.empty(40, 0),), train, none, options)
        assert model.calls == 60 * (3 if objective == "consistent" else 1)
        sure[objective] = model.logits.softmax(dim=1).amax(dim=1).mean().item()
    assert sure["supervised"] < 0.55
    assert sure["consistent"] > 0.9


def test_samples_are_one_call_of_a_module():
    network = torch.nn.Dropout(0.5)
    drawn = Sampled(network, Objective(samples=3))(torch.ones(50))
    assert len(drawn) == 3
    assert not torch.equal(drawn[0], drawn[1])


def test_settings_of_an_objective_that_was_not_asked_for():
    with pytest.raises(ConfigError, match="samples=4 has no meaning without --objective consistent"):
        TrainConfig.from_values({"model": "gcn", "objective": "supervised", "samples": 4})
    with pytest.raises(ConfigError, match=r"sharpening must be a number from 0\.01 to 1, but is 0"):
        TrainConfig.from_values({"objective": "consistent", "sharpening": 0})
