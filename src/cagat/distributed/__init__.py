"""Graphs in parts: partitions, processes that work together, and exact products over nodes that several hold."""

from cagat.distributed.parted_graph import Halo, PartedGraph
from cagat.distributed.partition import metis_parts
from cagat.distributed.turns import take_turns
from cagat.distributed.world import Traffic, World

__all__ = ["Halo", "PartedGraph", "Traffic", "World", "metis_parts", "take_turns"]
