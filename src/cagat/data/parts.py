"""The parts of a split."""

PARTS = ("train", "val", "test")
"""A file numbers them 1, 2 and 3; a node in none of them has 0."""
