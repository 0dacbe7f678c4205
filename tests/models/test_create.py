import pytest

from cagat.errors import ConfigError
from cagat.models import NodeClassifier, card, create, names
from cagat.training import TrainConfig

PAPER = ["cagat", "gat", "gcn", "graphsage", "appnp", "mlp", "logreg", "labelprop", "labelprop-nl", "dgi", "cvd-pp"]


def test_has_every_model_of_the_paper():
    assert set(PAPER) <= set(names())
    assert {"gatv2", "sgc"} <= set(names())


@pytest.mark.parametrize("name", names())
def test_cards_are_complete(name):
    known = card(name)
    assert known.title
    assert known.paper
    assert known.link.startswith("http")
    assert known.default in known.presets
    assert issubclass(known.network, NodeClassifier)
    for preset, values in known.presets.items():
        # All that can be set is set: nothing of the model is left to a default of its class. Without a weight decay of
        # its own, attention has that of the rest.
        assert set(known.network.hyperparameters) <= {*values, "attention_weight_decay"}, preset
        assert "feature_norm" in values
        if not known.network.closed_form:
            assert {"lr", "weight_decay", "epochs", "patience"} <= set(values)
        assert isinstance(create(name, 6, 3, preset), known.network)
        assert TrainConfig.from_values({"model": name, "preset": preset}).preset == preset


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("gatt", {}, "There is no model 'gatt'. Did you mean gat?"),
        ("gcn", {"hiden": 3}, "gcn has no 'hiden'. Did you mean hidden?"),
        ("gcn", {"alpha": 0.1}, "gcn has no 'alpha'. Choose one of hidden, dropout."),
        ("gcn", {"preset": "best"}, "gcn has no preset 'best'. Choose one of ref, opt."),
    ],
)
def test_unknown_names(name, changes, message):
    with pytest.raises(ConfigError) as refused:
        create(name, 6, 3, **changes)
    assert str(refused.value) == message


def test_values_win_over_presets():
    assert create("gcn", 6, 3, "ref").conv1.out_channels == 16
    assert create("gcn", 6, 3).conv1.out_channels == 64
    assert create("gcn", 6, 3, hidden=5).conv1.out_channels == 5
    assert create("appnp", 6, 3, steps=4, alpha=0.2).propagation.K == 4
    assert create("labelprop-nl", 6, 3, "ref").alpha == 0.8
