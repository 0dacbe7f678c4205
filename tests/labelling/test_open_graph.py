import pytest

from cagat.labelling.open_graph import open_graph
from cagat.labelling.store import LabelError

EDGES = "source,target\n" + "".join(f"n{one},n{(one + step) % 12}\n" for one in range(12) for step in (1, 2))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "graph"
    folder.mkdir()
    (folder / "edges.csv").write_text(EDGES)
    rows = (f'n{one},{one},"see https://example.org/{one}, <b>{one}</b>"\n' for one in range(12))
    (folder / "nodes.csv").write_text("id,size,text\n" + "".join(rows))
    return folder


def opened(*arguments, **options):
    found = open_graph(*arguments, **options)
    found.store.close()
    return found


def test_labels_of_a_directory_are_put_where_train_reads_them(folder):
    found = open_graph(str(folder), classes=["a", " b "])
    assert found.store.path == folder / "labels.csv"
    assert found.store.classes == ["a", "b"]
    assert found.command == f"cagat train --dataset {folder} --protocol all"
    found.store.label("n3", "a")
    found.store.undo()
    found.store.close()
    assert (folder / "labels.csv").read_text() == "node,label\n"
    assert opened(str(folder)).store.classes == ["a", "b"]


def test_columns_of_any_name(folder):
    (folder / "edges.csv").write_text(EDGES.replace("source,target", "from here,to there"))
    reading = {"source": "from here", "target": "to there"}
    found = opened(str(folder), classes=["a"], reading=reading)
    assert found.graph.num_nodes == 12
    assert found.command == (f"cagat train --dataset {folder} --protocol all --source 'from here' --target 'to there'")


def test_columns_are_shown_as_they_stand(folder):
    columns = opened(str(folder)).columns(3)
    assert columns == [
        {"name": "size", "value": "3"},
        {"name": "text", "value": "see https://example.org/3, <b>3</b>"},
    ]


def test_labels_that_are_there_go_on(folder):
    (folder / "labels.csv").write_text("node,label\nn1,x\nn2,y\n")
    found = opened(str(folder))
    assert found.store.labels == {"n1": "x", "n2": "y"}
    assert found.store.path == folder / "labels.csv"
    other = opened(str(folder), labels=folder.parent / "mine.csv")
    assert other.store.labels == {"n1": "x", "n2": "y"}
    assert other.command == f"cagat label {folder} --labels {folder.parent / 'mine.csv'} --finish"


@pytest.mark.parametrize("kind", ["file", "column"])
def test_labels_elsewhere_in_a_directory_are_left_alone(folder, kind, monkeypatch):
    if kind == "file":
        (folder / "target.csv").write_text("id,target\nn1,x\nn2,y\n")
    else:
        (folder / "nodes.csv").write_text("id,size,label\n" + "".join(f"n{one},{one},x\n" for one in range(12)))
    found = opened(str(folder))
    assert found.store.path.resolve() == folder.parent / "labels.csv"
    assert found.store.labels["n1"] == "x"
    monkeypatch.chdir(folder)
    with pytest.raises(LabelError, match="with --labels"):
        open_graph(".")


def test_a_published_graph_has_classes_but_no_labels(folder):
    found = opened("karate")
    assert found.store.labels == {}
    assert found.store.classes == list(found.graph.class_names)
    assert found.store.path.name == "labels.csv"
    assert opened("karate", classes=["u"]).store.classes == ["u"]
    assert opened("karate").columns(0) == []  # Karate has no features but its edges.


def test_the_labels_of_another_graph(folder):
    (folder.parent / "labels.csv").write_text("node,label\nzebra,x\n")
    with pytest.raises(LabelError, match="no node 'zebra'"):
        open_graph("karate")
