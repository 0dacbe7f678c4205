"""Numbers that are part of the name of a graph."""

from collections.abc import Sequence

from cagat.errors import DatasetError


def spelled_numbers(words: str, known: Sequence[str]) -> dict[str, int]:
    """Read what stands behind the colon of `name:key=NUMBER,...`; keys may be left out.

    Raises:
        DatasetError: A key is not known, stands there twice, or has no whole number of at most 18 digits.
    """
    given: dict[str, int] = {}
    for word in words.partition(":")[2].split(",") if ":" in words else []:
        key, _, value = word.partition("=")
        if key not in known or not value.isascii() or not value.isdigit() or len(value) > 18:
            raise DatasetError(f"{words}: {word!r} is not one of {', '.join(f'{name}=NUMBER' for name in known)}.")
        if key in given:
            raise DatasetError(f"{words}: {key} is given twice. Give it once.")
        given[key] = int(value)
    return given
