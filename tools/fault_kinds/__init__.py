"""The faults that `tools/faults.py` tries."""
