"""Graphs in parts on disk: cut once, then opened part by part by the processes that share them."""

from cagat.parts.opened import OpenedParts, open_parts
from cagat.parts.part_files import Manifest, read_manifest

__all__ = ["Manifest", "OpenedParts", "open_parts", "read_manifest"]
