"""Measurements and reproductions, each behind one command."""
