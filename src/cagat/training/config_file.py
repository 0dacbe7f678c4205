"""Configurations as YAML files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cagat.errors import ConfigError
from cagat.files import read_bounded

_LARGEST_BYTES = 50_000


class _PlainLoader(yaml.SafeLoader):
    """A safe loader that refuses keys given twice, and aliases, by which a few lines stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(None, None, "aliases (*) are not allowed; write the value out", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.MarkedYAMLError(None, None, f"the key {key.value!r} is given twice", key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else None)
        return super().construct_mapping(node, deep)


def read_config(path: Path) -> dict[str, Any]:
    """The keys and values of a configuration file; only plain values, nothing that YAML could execute."""
    try:
        text = read_bounded(path, _LARGEST_BYTES).decode()
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    try:
        values = yaml.load(text, _PlainLoader)  # noqa: S506 (it is a SafeLoader)
    except Exception as error:  # A value with a wrong tag makes PyYAML raise whatever int(), datetime() and so on do.
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
