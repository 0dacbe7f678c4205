"""What an attack by files is, and what files that do harm are made of."""

import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Reading = Callable[[], object]
HUGE = 10**9
ZEROS = 2**24
"""How many zeros are packed once and then repeated."""

MAY_BE_READ = None
"""In the place of what must be told: the files may be read, if only nothing else happens."""


class Attack(NamedTuple):
    """Files that do harm.

    Attributes:
        make: Makes them in an empty directory, and returns what reads them.
        told: A pattern of the error that must come of it, by which it is refused for the reason that is meant.
    """

    make: Callable[[Path], Reading]
    told: str | None


def attacks(*given: tuple[Callable[[Path], Reading], str | None]) -> dict[str, Attack]:
    """Attacks by the names of the functions that make them."""
    return {make.__name__.replace("_", " "): Attack(make, told) for make, told in given}


class Bomb:
    """Writes a file when it is unpickled: `executed`, beside the files of the attack."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def put_zeros(file: zipfile.ZipFile, name: str, head: bytes, count: int) -> None:
    """Put a compressed member into an archive: a head, then `ZEROS` zeros so many times, packed only once."""
    block = _packed(bytes(ZEROS))
    packed = _packed(head) + count * block + zlib.compressobj(wbits=-15).flush()
    member = zipfile.ZipInfo(name)
    file.writestr(member, packed)
    # It was written as it is; now it is said what it is.
    member.compress_type, member.file_size = zipfile.ZIP_DEFLATED, len(head) + count * ZEROS
    member.CRC = zlib.crc32(head)
    for _ in range(count):
        member.CRC = zlib.crc32(bytes(ZEROS), member.CRC)
    end = file.fp.tell()
    file.fp.seek(member.header_offset)
    file.fp.write(member.FileHeader(zip64=False))
    file.fp.seek(end)


def _packed(content: bytes) -> bytes:
    """A piece of a compressed stream that can stand beside any other."""
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(content) + packer.flush(zlib.Z_FULL_FLUSH)
