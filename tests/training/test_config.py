import pytest
import yaml

from cagat.errors import ConfigError
from cagat.training import TrainConfig
from cagat.training.config_file import config_text, read_config


def test_without_a_word_the_preset_is_the_one_that_won_on_validation_nodes():
    config = TrainConfig.from_values({})
    assert (config.dataset, config.model, config.seed, config.preset) == ("cora", "cagat", 0, "tuned")
    assert (config.alpha, config.lam, config.feature_norm) == (0.58, 0.66, "l2")
    assert config.hyperparameters()["support"] == "full"


def test_the_papers_preset_has_its_numbers():
    config = TrainConfig.from_values({"preset": "paper"})
    assert (config.hidden, config.heads, config.layers) == (8, 8, 2)
    assert (config.alpha, config.lam, config.xi, config.rounds, config.steps) == (0.4, 0.3, 1e-3, 3, 2)
    options = config.fit_options()
    assert (options.lr, options.epochs, options.patience) == (0.005, 10_000, 100)
    assert config.hyperparameters()["support"] == "full"


def test_a_given_value_wins_over_the_preset():
    config = TrainConfig.from_values({"alpha": 0.7, "feature-norm": "l1"})
    assert (config.alpha, config.feature_norm, config.lam) == (0.7, "l1", 0.66)


def test_what_a_model_has_no_use_for_stays_open():
    config = TrainConfig.from_values({"model": "gat"})
    assert config.alpha is None
    assert "alpha" not in config.values()


def test_values_survive_a_file(tmp_path):
    config = TrainConfig.from_values({"seed": 3, "xi": 1e-5, "dataset": "näher/graph"})
    path = tmp_path / "config.yaml"
    path.write_text(config_text(config.values(), ("a comment",)), encoding="utf-8")
    assert TrainConfig.from_values(read_config(path)) == config


def test_numbers_that_yaml_takes_for_words(tmp_path):
    (tmp_path / "config.yaml").write_text("lr: 5e-4\nweight_decay: 0\n")
    config = TrainConfig.from_values(read_config(tmp_path / "config.yaml"))
    assert (config.lr, config.weight_decay) == (5e-4, 0.0)
    assert isinstance(config.weight_decay, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alhpa": 0.3}, "no key 'alhpa'.*Did you mean alpha"),
        ({1: 2}, "no key 1"),
        ({"K": 3}, "Did you mean rounds"),
        ({"model": "gta"}, "no model 'gta'.*Did you mean gat"),
        ({"preset": "best"}, "cagat has no preset 'best'.*paper"),
        ({"model": "gat", "lam": 0.3}, "gat has no lam .*It takes hidden"),
        ({"alpha": 1.5}, "alpha must be from 0 to 1, but is 1.5"),
        ({"alpha": "much"}, "alpha must be a finite number, but is 'much'"),
        ({"lr": float("nan")}, "lr must be a finite number"),
        ({"lr": True}, "lr must be a finite number, but is True"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"epochs": 2.5}, "epochs must be a whole number, but is 2.5"),
        ({"seed": -1}, "seed must be from 0"),
        ({"seed": None}, "seed must not be empty"),
        ({"feedback": "yes"}, "feedback must be true or false"),
        ({"support": "all"}, "support must be one of full, edges, but is 'all'"),
        ({"dataset": ["cora"]}, "dataset must be a word"),
    ],
)
def test_bad_values_are_named(values, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig.from_values(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", "lines of the form key: value, but holds a list"),
        ("key: [", "is not YAML"),
        ("key: !!python/object/apply:os.system ['true']", "is not YAML with plain values"),
        ("a: " + "[" * 5000, "is not YAML"),
        ("seed: 1\nlr: 0.1\nseed: 2\n", "the key 'seed' is given twice"),
        ("x: " + "y" * 2_000_000, "is larger than"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_config(tmp_path / "config.yaml")


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_config(tmp_path / "config.yaml")
    (tmp_path / "config.yaml").write_text("# nothing\n")
    assert read_config(tmp_path / "config.yaml") == {}


def test_a_value_built_to_fill_the_memory_is_not_printed(tmp_path):
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    (tmp_path / "config.yaml").write_text("\n".join([*lines, "seed: *a11"]))
    with pytest.raises(ConfigError) as error:
        TrainConfig.from_values({"seed": read_config(tmp_path / "config.yaml")["seed"]})
    assert len(str(error.value)) < 500


def test_every_card_is_a_configuration():
    from cagat import models

    for name in models.names():
        for preset in models.card(name).presets:
            config = TrainConfig.from_values({"model": name, "preset": preset})
            assert yaml.safe_load(config_text(config.values())) == config.values()
