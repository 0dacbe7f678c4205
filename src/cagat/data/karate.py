"""Zachary's karate club."""

import networkx
import numpy as np

from cagat.data.raw_graph import RawGraph, one_hot


def karate() -> RawGraph:
    """34 members, 78 friendships, and which of two clubs each joined; the only feature is who one is."""
    club = networkx.karate_club_graph()
    clubs = ["Mr. Hi", "Officer"]
    return RawGraph(
        edge_index=np.array(club.edges, dtype=np.int64).T,
        features=one_hot(len(club)),
        labels=np.array([clubs.index(club.nodes[member]["club"]) for member in club], dtype=np.int64),
        node_names=[str(member) for member in club],
        class_names=clubs,
        name="karate",
        source="networkx.karate_club_graph",
    )
