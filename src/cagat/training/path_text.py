"""Which texts can be paths."""

import os


def can_be_a_path(text: str) -> bool:
    r"""Whether the system could be asked for a file of this name; ``"\0"`` and ``"\uD800"`` it cannot be asked for."""
    try:
        # Names that are not UTF-8 have a form in Python, too, and that the system understands.
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return "\0" not in text
