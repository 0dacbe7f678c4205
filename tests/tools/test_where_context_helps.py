import runpy
from pathlib import Path

import numpy as np

tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "where_context_helps.py"))

# 0 - 1 - 2 - 3 - 4, and 5 by itself; node 0 is the only training node.
EDGES = np.array([[0, 1, 1, 2, 2, 3, 3, 4], [1, 0, 2, 1, 3, 2, 4, 3]])
CLASSES = np.array([0, 0, 0, 1, 1, 1])
SIZES = np.repeat(np.arange(5), [3, 9, 1, 5, 7])


def test_kinds_by_hand():
    found = {kind: np.flatnonzero(mask).tolist() for kind, mask in tool["kinds"](EDGES, CLASSES, np.array([0])).items()}
    assert found == {
        "all test nodes": [0, 1, 2, 3, 4, 5],
        "1 neighbour": [0, 4, 5],
        "2 or 3 neighbours": [1, 2, 3],
        "4 to 7 neighbours": [],
        "8 neighbours or more": [],
        "all neighbours of its class": [0, 1, 4],
        "half of them or more": [2, 3],
        "fewer than half": [5],
        "1 step from a training node": [0, 1],
        "2 steps": [2],
        "3 steps": [3],
        "4 steps or more": [4, 5],
        "of the two smallest classes": [0, 1, 2, 3, 4, 5],
        "of the two largest classes": [],
        "of the other classes": [],
    }


def test_classes_by_size():
    found = tool["kinds"](np.empty((2, 0), dtype=np.int64), SIZES, np.array([0]))
    assert set(SIZES[found["of the two smallest classes"]]) == {0, 2}
    assert set(SIZES[found["of the two largest classes"]]) == {1, 4}
    assert set(SIZES[found["of the other classes"]]) == {3}


def test_the_table_by_hand():
    kinds = ("all test nodes", "few")
    splits = {
        0: {kind: {"nodes": 10, "gat": 5, "cagat": 6} for kind in kinds},
        1: {kind: {"nodes": 10, "gat": 5, "cagat": 8} for kind in kinds},
    }
    splits[1]["few"] = {"nodes": 0, "gat": 0, "cagat": 0}
    every, few = tool["table"]({"cora": splits}).rows
    assert every == ["all test nodes", "100 %", "50.0", "+20.0 [-107.1, +147.1]"]
    assert few == ["few", "50 %", "50.0", ""], "one split has no interval"


def test_a_split_of_a_small_graph(monkeypatch):
    names = tool["measured"].__globals__
    fit_task = names["fit_task"]
    monkeypatch.setitem(names, "fit_task", lambda values, *rest: fit_task(values | {"epochs": 30}, *rest))
    task = tool["Task"]("synthetic:nodes=240,degree=4,classes=2,features=16", 5, 0)
    found = tool["measured"](task, None)
    assert found["all test nodes"]["nodes"] == 240 - 2 * (5 + 20)
    for start, stop in ((1, 5), (5, 8), (8, 12), (12, 15)):
        parts = list(found.values())[start:stop]
        for key in ("nodes", "gat", "cagat"):
            assert sum(part[key] for part in parts) == found["all test nodes"][key]
    assert 0.5 < found["all test nodes"]["cagat"] / 190 <= 1
