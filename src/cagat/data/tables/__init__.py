"""Graphs in tables: a list of edges, and tables of features, labels and splits, in files or in memory."""

from cagat.data.tables.files import read_folder, read_tables
from cagat.data.tables.graph import graph_from_tables

__all__ = ["graph_from_tables", "read_folder", "read_tables"]
