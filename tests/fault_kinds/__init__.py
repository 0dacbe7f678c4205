"""The faults that `tools/faults.py` and `pytest -m slow` try."""
