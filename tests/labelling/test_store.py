import json
import os
import signal
import subprocess
import sys

import pytest

from cagat.data.table_files import read_table
from cagat.labelling.store import LabelError, LabelStore, checked_class


@pytest.fixture
def path(tmp_path):
    return tmp_path / "labels.csv"


@pytest.fixture
def store(path):
    store = LabelStore(path, classes=["cat", "dog"])
    yield store
    store.close()


def reopened(store, **options):
    store.close()
    return LabelStore(store.path, **options)


def test_a_label_is_in_the_file_at_once_and_in_a_form_that_train_reads(store, path):
    assert not path.exists()
    store.label("n1", "cat")
    assert path.read_text() == "node,label\nn1,cat\n"
    store.label("n,2", "dog")
    store.label("n1", "dog")
    assert path.read_text() == 'node,label\nn1,dog\n"n,2",dog\n'
    names, codes = read_table(path, "labels").codes(0)
    assert [names[code] for code in codes] == ["n1", "n,2"]


def test_undo_goes_back_step_by_step_also_after_a_restart(store, path):
    store.label("n1", "cat")
    store.label("n1", "dog")
    store.skip("n2")
    store.add_class("bird")
    assert store.undo().do == "class"
    assert store.classes == ["cat", "dog"]
    again = reopened(store, classes=["cat", "dog"])
    assert again.undo().node == "n2"
    assert again.skipped == {}
    again.undo()
    assert again.labels == {"n1": "cat"}
    again.undo()
    assert again.labels == {}
    assert path.read_text() == "node,label\n"
    assert again.undo() is None
    last = reopened(again)
    assert last.labels == {}
    assert last.undo() is None
    last.close()


def test_starting_again_goes_on(store):
    store.add_class(" bird ")
    store.label("n1", "bird")
    store.skip("n2")
    again = reopened(store)
    assert again.labels == {"n1": "bird"}
    assert again.classes == ["cat", "dog", "bird"]
    assert list(again.skipped) == ["n2"]
    again.close()


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_file_that_lacks_the_last_lines_of_the_journal_gets_them(store, path, lost):
    contents = []
    for number in range(4):
        contents.append(path.read_bytes() if path.exists() else None)
        store.label(f"n{number}", "cat")
    expected = store.labels
    path.write_bytes(contents[4 - lost])
    again = reopened(store)
    assert again.labels == expected
    assert path.read_text().count("\n") == 5
    again.close()


def test_half_a_line_of_the_journal_is_forgotten(store, path):
    store.label("n1", "cat")
    journal = path.with_name("labels.csv.journal")
    with journal.open("ab") as stream:
        stream.write(b'{"do": "label", "no')
    again = reopened(store)
    again.label("n2", "cat")
    assert again.labels == {"n1": "cat", "n2": "cat"}
    assert [json.loads(line)["node"] for line in journal.read_text().splitlines()] == ["", "", "n1", "n2"]
    again.close()


def test_a_file_that_was_edited_by_hand_is_right(store, path):
    store.label("n1", "cat")
    store.label("n2", "cat")
    path.write_text("node,label\nn1,dog\nn3,cow\n")
    again = reopened(store)
    assert again.labels == {"n1": "dog", "n3": "cow"}
    assert "cow" in again.classes
    # What is undone was about another label.
    again.undo()
    assert again.labels == {"n1": "dog", "n3": "cow"}
    again.close()


def test_a_damaged_journal_is_an_error_that_says_what_to_do(store, path):
    store.label("n1", "cat")
    path.with_name("labels.csv.journal").write_text("[]\n")
    store.close()
    with pytest.raises(LabelError, match="move the journal away"):
        LabelStore(path)
    path.with_name("labels.csv.journal").unlink()
    again = LabelStore(path)  # The error left no lock behind.
    assert not again.read_only
    assert again.labels == {"n1": "cat"}
    again.close()


def test_names_of_columns_and_rows_without_a_label_stay(path):
    path.write_text("id,target\na,cat\nb,\nc,NA\n")
    store = LabelStore(path)
    assert store.labels == {"a": "cat"}
    store.label("c", "cat")
    store.label("d", "cat")
    assert path.read_text() == "id,target\na,cat\nb,\nc,cat\nd,cat\n"
    store.undo()
    store.undo()
    assert path.read_text() == "id,target\na,cat\nb,\nc,NA\n"
    store.close()


def test_files_that_cannot_be_kept_whole_are_refused(path):
    path.write_text("node,label,split\na,cat,train\n")
    with pytest.raises(LabelError, match="only those of node and label"):
        LabelStore(path)
    path.write_text("node,label\na,cat\nz,cat\n")
    with pytest.raises(LabelError, match="no node 'z'"):
        LabelStore(path, nodes=["a", "b"])
    with pytest.raises(LabelError, match=r"ends in \.csv"):
        LabelStore(path.with_suffix(".parquet"))


def test_given_labels_are_written_with_the_first_of_ours(path):
    store = LabelStore(path, {"a": "cat"})
    store.label("b", "cat")
    assert path.read_text() == "node,label\na,cat\nb,cat\n"
    store.close()


@pytest.mark.parametrize("name", ["", "  ", "NA", "nan", "a\nb", "x" * 201])
def test_names_that_are_no_class(store, name):
    with pytest.raises(LabelError, match="cannot be the name"):
        store.add_class(name)
    assert checked_class(" a b ") == "a b"


def test_unknown_and_known_classes(store):
    with pytest.raises(LabelError, match="no class 'cow'"):
        store.label("n1", "cow")
    with pytest.raises(LabelError, match="already"):
        store.add_class("cat")
    assert store.labels == {}


def test_undoing_a_class_that_nodes_have_keeps_it(store):
    store.add_class("bird")
    store.label("n1", "bird")
    store.undo()
    store.undo()
    assert "bird" not in store.classes


OTHER = """
import sys
from pathlib import Path
from cagat.labelling.store import LabelStore
store = LabelStore(Path(sys.argv[1]), classes=["cat"])
number = 0
while True:
    store.label(f"n{number}", "cat")
    print(number, flush=True)
    number += 1
"""


@pytest.mark.posix
def test_kill_9_loses_nothing_that_was_confirmed(path):
    with subprocess.Popen([sys.executable, "-c", OTHER, path], stdout=subprocess.PIPE, text=True) as other:
        for line in other.stdout:
            confirmed = int(line)
            if confirmed >= 25:
                break
        # It is alive, and has the file.
        second = LabelStore(path, classes=["cat"])
        assert "Another process" in second.read_only
        assert len(second.labels) >= 25
        with pytest.raises(LabelError, match="Another process"):
            second.label("n0", "cat")
        second.close()
        os.kill(other.pid, signal.SIGKILL)
        confirmed = max([confirmed, *map(int, other.stdout.read().split())])
    store = LabelStore(path)
    assert not store.read_only
    assert {f"n{number}" for number in range(confirmed + 1)} <= store.labels.keys()
    store.label("more", "cat")
    assert not list(path.parent.glob("*.part"))
    assert not list(path.parent.glob(".*.part"))
    store.close()
