"""Configurations as YAML files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cagat.errors import ConfigError
from cagat.files import read_bounded
from cagat.training.path_text import can_be_a_path

_LARGEST_BYTES = 50_000
_LARGEST_BITS = 10_000  # Python refuses to print numbers that are much longer.
_MERGE = "tag:yaml.org,2002:merge"
_WRONG_VALUE = "a value is not what its form or its tag says"


class _PlainLoader(yaml.SafeLoader):
    """YAML with plain values, each of them written out where it stands.

    A key that is given twice is an error; PyYAML itself would take the last. So are anchors, aliases and merges, by
    which a few lines stand for gigabytes.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:
            raise _problem(f"the name {event.anchor!r} (& or *) is not allowed; write the value out", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        if not isinstance(node, yaml.MappingNode):  # But one with the tag of a mapping.
            raise _problem(_WRONG_VALUE, node.start_mark)
        seen = set()
        for key, _ in node.value:
            if key.tag == _MERGE:
                raise _problem("a merge (<<) is not allowed; write the keys and values out", key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise _problem(f"the key {key.value!r} is given twice", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        text = super().construct_scalar(node)
        if isinstance(text, str) and not can_be_a_path(text):
            raise _problem(f"{text!r} holds a character that no name or path can have", node.start_mark)
        return text

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (yaml.YAMLError, RecursionError):
            raise
        except Exception as error:  # PyYAML lets through what int(), datetime() and others say of a wrong value.
            raise _problem(_WRONG_VALUE, node.start_mark) from error

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        number = super().construct_yaml_int(node)
        if number.bit_length() > _LARGEST_BITS:
            raise _problem("the number is too long", node.start_mark)
        return number


_PlainLoader.add_constructor("tag:yaml.org,2002:int", _PlainLoader.construct_yaml_int)


def _problem(what: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, what, mark)


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
    except Exception as error:  # Whatever a value with a wrong tag, or one in another, makes PyYAML raise.
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
