import os
import time
from pathlib import Path

import pytest
import yaml

from cagat.errors import ConfigError
from cagat.training import TrainConfig
from cagat.training.config_file import config_text, read_config


def test_without_a_word_the_preset_is_the_one_that_won_on_validation_nodes():
    config = TrainConfig.from_values({})
    assert (config.dataset, config.model, config.seed, config.preset) == ("cora", "cagat", 0, "tuned")
    assert (config.alpha, config.lam, config.feature_norm) == (0.92, 0.87, "l2")
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
    assert (config.alpha, config.feature_norm, config.lam) == (0.7, "l1", 0.87)


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
        ([1], "must give values to keys, but is a list. Pass a dict"),
        (None, "must give values to keys, but is a NoneType. Pass a dict"),
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
        ({"dataset": "\0"}, "dataset is .* a character that no name or path can have"),
        ({"data_dir": "\ud800"}, "data_dir is .* a character that no name or path can have"),
        ({"lr": 10**400}, "lr must be a finite number, but is a number of more than 18 digits"),
        ({"lr": "9" * 400}, "lr must be a finite number"),
        ({"hidden": 10**400}, "hidden must be at most 9223372036854775807"),
        ({"seed": 10**5000}, "seed must be at most"),
        ({"support": 10**5000}, "support must be one of full, edges"),
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
        ("x: " + "y" * 2_000_000, r"config.yaml: cannot be read \(it is larger than 50000 bytes\)"),
        ("seed: &a 1\n", "the name 'a' .* is not allowed; write the value out"),
        ("seed: *a\n", "the name 'a' .* is not allowed; write the value out"),
        ("&a seed: 1\n", "the name 'a' .* is not allowed"),
        ("<<: {seed: 1}\n", "a merge .* is not allowed; write the keys and values out"),
        ('dataset: "\\0"\n', "a character that no name or path can have"),
        ('out: "\\uD800"\n', "a character that no name or path can have"),
        ("seed: 0x" + "f" * 5000, "the number is too long"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_config(tmp_path / "config.yaml")


@pytest.mark.parametrize(
    "value",
    [
        "2001-99-99", "0x_", "0b_", "!!int abc", "!!float x", "!!bool maybe", "!!timestamp abc", "!!map [a]",
        "9" * 5000, "!!set [a]", "!!omap {a: 1}", "!!binary é", "1:2:3:" * 2000 + "4.5",
    ],
)  # fmt: skip
def test_values_that_are_not_what_they_say_are_refused(tmp_path, value):
    (tmp_path / "config.yaml").write_text(f"seed: {value}\n")
    with pytest.raises(ConfigError, match=r"config\.yaml: is not YAML with plain values") as error:
        read_config(tmp_path / "config.yaml")
    assert "line 1" in str(error.value)


def test_merges_that_would_fill_the_memory_are_refused_at_once(tmp_path):
    lines = ["seed: 1", "a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9)]
    (tmp_path / "config.yaml").write_text("\n".join(lines))
    started = time.process_time()
    with pytest.raises(ConfigError, match=r"config\.yaml.*the name 'a0'"):
        read_config(tmp_path / "config.yaml")
    assert time.process_time() - started < 2


def test_very_many_keys_do_not_take_long(tmp_path):
    (tmp_path / "config.yaml").write_text("".join(f"k{number}:\n" for number in range(6000)))
    started = time.process_time()
    assert len(read_config(tmp_path / "config.yaml")) == 6000
    assert time.process_time() - started < 5


def test_what_has_no_end_or_never_begins_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "config.yaml")
    for path in (tmp_path / "config.yaml", Path("/dev/zero")):
        with pytest.raises(ConfigError, match=r"cannot be read \(it is no regular file\)"):
            read_config(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path)


def test_names_of_files_that_are_no_unicode_survive(tmp_path):
    config = TrainConfig.from_values({"dataset": os.fsdecode(b"gr\xe4ph.npz")})
    path = tmp_path / "config.yaml"
    path.write_text(config_text(config.values()), encoding="utf-8")
    assert TrainConfig.from_values(read_config(path)) == config


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_config(tmp_path / "config.yaml")
    (tmp_path / "config.yaml").write_text("# nothing\n")
    assert read_config(tmp_path / "config.yaml") == {}


def test_every_card_is_a_configuration():
    from cagat import models

    for name in models.names():
        for preset in models.card(name).presets:
            config = TrainConfig.from_values({"model": name, "preset": preset})
            assert yaml.safe_load(config_text(config.values())) == config.values()
