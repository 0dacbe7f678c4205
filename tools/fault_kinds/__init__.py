"""The faults that `tools/faults.py` tries, one kind a module."""

from fault_kinds.bad_arguments import BAD_ARGUMENTS
from fault_kinds.command_lines import COMMAND_LINES
from fault_kinds.damage import CUTS, FLIPS
from fault_kinds.determinism import DETERMINISM
from fault_kinds.disk import DISK
from fault_kinds.extremes import EXTREMES
from fault_kinds.hostile import HOSTILE
from fault_kinds.kills import KILLS
from fault_kinds.races import RACES

FAULTS = (KILLS, FLIPS, CUTS, DISK, HOSTILE, BAD_ARGUMENTS, DETERMINISM, RACES, COMMAND_LINES, EXTREMES)
"""In the order of the table."""
