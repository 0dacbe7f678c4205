import os
import time
from pathlib import Path

import pytest

from cagat.errors import ConfigError
from cagat.training.config_file import read_config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", "lines of the form key: value, but holds a list"),
        ("key: [", "is not YAML"),
        ("key: !!python/object/apply:os.system ['true']", "is not YAML with plain values"),
        ("a: " + "[" * 1000, "is not YAML"),
        ("seed: 1\nlr: 0.1\nseed: 2\n", r"(?s)the key 'seed' is given twice.*line 3"),
        ("x: " + "y" * 2_000_000, r"config.yaml: cannot be read \(it is larger than 50000 bytes\)"),
        ("seed: &a 1\nlr: *a\n", r"(?s)aliases \(\*\) are not allowed; write the value out.*line 2"),
        *((f"seed: {value}", "is not YAML with plain values") for value in (
            "2001-99-99", "0x_", "!!int abc", "!!bool maybe", "!!timestamp abc", "!!map [a]", "9" * 5000, "!!set [a]",
            "!!omap {a: 1}", "!!binary é", "1:2:3:" * 2000 + "4.5",
        )),
    ],
)  # fmt: skip
def test_bad_files_are_refused(tmp_path, text, message):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_config(tmp_path / "config.yaml")


def test_aliases_that_would_fill_the_memory_are_refused_at_once(tmp_path):
    lines = ["seed: 1", "a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9)]
    (tmp_path / "config.yaml").write_text("\n".join(lines))
    started = time.process_time()
    with pytest.raises(ConfigError, match=r"config\.yaml.*aliases"):
        read_config(tmp_path / "config.yaml")
    assert time.process_time() - started < 2


@pytest.mark.posix
def test_what_has_no_end_or_never_begins_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "config.yaml")
    for path in (tmp_path / "config.yaml", Path("/dev/zero")):
        with pytest.raises(ConfigError, match=r"cannot be read \(it is no regular file\)"):
            read_config(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path)


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_config(tmp_path / "config.yaml")
    (tmp_path / "config.yaml").write_text("# nothing\n")
    assert read_config(tmp_path / "config.yaml") == {}
