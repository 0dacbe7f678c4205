import os
from pathlib import Path

import numpy as np
import pytest
import yaml

from cagat import configs
from cagat.configs import card
from cagat.errors import ConfigError
from cagat.nn import CaGATConv
from cagat.settings import SETTINGS, TrainConfig, checked, reference_page
from cagat.training.config_file import config_text, read_config


def test_without_a_word_the_preset_is_the_one_that_won_on_validation_nodes():
    config = TrainConfig.from_values({})
    assert (config.dataset, config.model, config.seed, config.preset) == ("cora", "cagat", 0, "best")
    assert config.values().items() >= card("cagat").preset("best").items()
    assert (config.objective, config.stopping) == ("consistent", "loss")  # A default gives way to the preset.
    assert TrainConfig.from_values({"objective": "supervised"}).samples is None
    assert config.hyperparameters()["support"] == "full"


def test_the_papers_preset_has_its_numbers():
    config = TrainConfig.from_values({"preset": "paper"})
    assert (config.hidden, config.heads, config.layers) == (8, 8, 2)
    assert (config.alpha, config.lam, config.xi, config.rounds, config.steps) == (0.4, 0.3, 1e-3, 3, 2)
    options = config.fit_options()
    assert (options.lr, options.epochs, options.patience) == (0.005, 10_000, 100)


def test_a_given_value_wins_over_the_preset():
    config = TrainConfig.from_values({"preset": "tuned", "alpha": 0.7, "feature-norm": "l1", "lam": None})
    assert (config.alpha, config.feature_norm, config.lam) == (0.7, "l1", 0.87)
    gat = TrainConfig.from_values({"model": "gat"})
    assert gat.alpha is None
    assert "alpha" not in gat.values()


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("hidden", np.int64(8), 8),
        ("dropout", np.float32(0.5), 0.5),
        ("dropout", 0, 0.0),
        ("steps", 0, 0),
        ("feedback", np.bool_(False), False),
        ("lr", "5e-4", 5e-4),  # To YAML, a number without a point is text.
        ("dataset", 2019, "2019"),
    ],
)
def test_values_get_the_type_of_their_setting(name, value, found):
    assert checked(name, value) == found
    assert type(checked(name, value)) is type(found)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alhpa": 0.3}, "no key 'alhpa'.*Did you mean alpha"),
        ({1: 2}, "no key '1'"),
        ([1], "must give values to keys, but is a list. Pass a dict"),
        (None, r"must give values to keys, but is empty \(None\). Pass a dict"),
        ({"K": 3}, "Did you mean rounds"),
        ({"model": "gta"}, "no model 'gta'.*Did you mean gat"),
        ({"preset": "finest"}, "cagat has no preset 'finest'.*paper"),
        ({"model": "gat", "lam": 0.3}, r"gat has no lam \(lam=0.3 was given\). It takes hidden"),
        ({"alpha": 1.5}, "alpha must be a number from 0 to 1, but is 1.5"),
        ({"alpha": "much"}, "alpha must be a number from 0 to 1, but is 'much'"),
        ({"alpha": [0.1]}, "alpha must be a number from 0 to 1, but is a list"),
        ({"lr": float("nan")}, "lr must be a number from 0 to 1000, but is nan"),
        ({"lr": True}, "lr must be a number .*, but is True"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, but is 0"),
        ({"epochs": 2.5}, "epochs must be a whole number .*, but is 2.5"),
        ({"hidden": "8"}, "hidden must be a whole number from 1 to 1048576, but is '8'"),
        ({"heads": True}, "heads must be a whole number .*, but is True"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": None}, r"seed must be a whole number .*, but is empty \(None\)"),
        ({"feedback": "yes"}, "feedback must be true or false, but is 'yes'"),
        ({"feedback": 1}, "feedback must be true or false, but is 1"),
        ({"support": "all"}, "support must be one of full, edges, but is 'all'"),
        ({"dataset": ["cora"]}, "dataset must be valid text, but is a list"),
        ({"dataset": "\0"}, r"dataset must be valid text, but is '\\x00'"),
        ({"data_dir": "\ud800"}, r"data_dir must be valid text, but is '\\ud800'"),
        ({"lr": 10**400}, "lr must be a number .*, but is a number of more than 18 digits"),
        ({"lr": "9" * 400}, "lr must be a number"),
        ({"seed": 10**5000}, "seed must be a whole number .* but is a number of more than 18 digits"),
        ({"support": 10**5000}, "support must be one of full, edges"),
    ],
)
def test_bad_values_are_named(values, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig.from_values(values)


def test_the_layer_has_the_same_bounds():
    names = {"alpha": "alpha", "lam": "lam", "xi": "xi", "rounds": "K", "steps": "T", "attention_dropout": "dropout"}
    for name, argument in names.items():
        low, high = SETTINGS[name].low, SETTINGS[name].high
        for inside, outside in ((low, low - 1), (high, high * 2)):
            CaGATConv(2, 1, **{argument: inside})
            with pytest.raises(ValueError, match=f"{argument} must be"):
                CaGATConv(2, 1, **{argument: outside})


def test_the_reference_page_is_up_to_date():
    page = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"
    assert page.read_text() == reference_page(), "run: python -m cagat.settings > docs/reference/settings.md"


def test_every_preset_is_a_configuration_and_survives_a_file(tmp_path):
    path = tmp_path / "config.yaml"
    for name in configs.names():
        for preset in configs.card(name).presets:
            config = TrainConfig.from_values({"model": name, "preset": preset, "xi": None, "dataset": "näher/graph"})
            text = config_text(config.values(), ("a comment",))
            path.write_text(text, encoding="utf-8")
            assert TrainConfig.from_values(read_config(path)) == config
            assert yaml.safe_load(text) == config.values()


def test_names_of_files_that_are_no_unicode_survive(tmp_path):
    config = TrainConfig.from_values({"dataset": os.fsdecode(b"gr\xe4ph.npz")})
    path = tmp_path / "config.yaml"
    path.write_text(config_text(config.values()), encoding="utf-8")
    assert TrainConfig.from_values(read_config(path)) == config
