"""Configurations as YAML files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cagat.errors import ConfigError

_LARGEST = 50_000


class _EachKeyOnce(yaml.SafeLoader):
    """YAML with plain values, where a key that is given twice is an error; PyYAML itself would take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)


def read_config(path: Path) -> dict[str, Any]:
    """The keys and values of a configuration file; only plain values, nothing that YAML could execute."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}).") from error
    if len(text) > _LARGEST:
        raise ConfigError(f"{path}: is larger than {_LARGEST} characters, so it is no configuration.")
    try:
        values = yaml.load(text, _EachKeyOnce)  # noqa: S506 (it is a SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{path}: is not YAML with plain values: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: must have lines of the form key: value, but holds a {type(values).__name__}.")
    return values


def config_text(values: Mapping[str, Any], comments: tuple[str, ...] = ()) -> str:
    """A configuration as the text of a file, with comments at its head."""
    head = "".join(f"# {comment}\n" for comment in comments)
    return head + yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True)
