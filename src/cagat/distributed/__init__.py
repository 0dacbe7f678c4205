"""Graphs in parts: partitions, processes that work together, and exact products over nodes that several hold."""

from cagat.distributed.halo import Halo
from cagat.distributed.parted_graph import PartedGraph
from cagat.distributed.partition import metis_parts
from cagat.distributed.traffic import Traffic
from cagat.distributed.world import World

__all__ = ["Halo", "PartedGraph", "Traffic", "World", "metis_parts"]
