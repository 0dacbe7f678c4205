"""From the arguments of `cagat label` to a session."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torch_geometric.data import Data

from cagat.data.loading import is_name
from cagat.data.table_files import folder_files
from cagat.labelling.node_view import NodeColumns
from cagat.labelling.results import same_command
from cagat.labelling.store import LabelError, LabelStore
from cagat.settings import TrainConfig
from cagat.training.problem import load_graph

FILE = "labels.csv"


class Opened(NamedTuple):
    """What a session is made of: see :class:`~cagat.labelling.session.Session`."""

    graph: Data
    store: LabelStore
    config: TrainConfig
    columns: NodeColumns
    directory: Path
    command: str


def open_graph(
    graph: str,
    *,
    classes: Sequence[str] = (),
    labels: Path | None = None,
    data_dir: str | None = None,
    reading: Mapping[str, str] | None = None,
) -> Opened:
    """Open a graph for labelling.

    Args:
        graph: What :func:`cagat.data.load` takes. A published graph by its name counts as one without labels.
        classes: Classes beside those that the graph and the labels have.
        labels: The file of labels; by default :data:`FILE`, in the graph's directory of tables if it can be there, else
            in the working directory.
        data_dir: Where published graphs are looked for.
        reading: How tables are read, as settings: what the columns are called (`source`, `target`, `node`, `label`) and
            hold (`columns`).
    """
    reading = reading or {}
    config = TrainConfig.from_values({"dataset": graph, "protocol": "all", "data_dir": data_dir, **reading})
    loaded = load_graph(graph, data_dir, config)
    folder = Path(graph) if not is_name(graph) and Path(graph).is_dir() else None
    path = default_place(graph, folder, has_labels=bool(loaded.class_names)) if labels is None else labels
    names, known = loaded.node_names, list(loaded.class_names)
    given = {}
    if not is_name(graph):
        given = {names[node]: known[loaded.y[node]] for node in (loaded.y >= 0).nonzero().flatten().tolist()}
    store = LabelStore(path, given, [*classes, *(known if not classes else ())], names)
    try:
        trains = folder is not None and path.resolve() == (folder / FILE).resolve()
        command = same_command(graph, path, reading, trains=trains)
        return Opened(loaded, store, config, NodeColumns(loaded, folder), path.parent, command)
    except BaseException:
        store.close()
        raise


def default_place(graph: str, folder: Path | None, *, has_labels: bool) -> Path:
    """Where labels are put unless somebody says where."""
    here = Path(FILE)
    if folder is None:
        return here
    own = folder_files(folder).get("labels")
    if (own is not None and own.name == FILE) or (own is None and not has_labels):
        return folder / FILE
    # A second file of labels would make the directory unreadable, and beside a file of labels a column of labels in
    # the table of features would be a feature.
    if here.resolve().parent == folder.resolve():
        raise LabelError(
            f"{graph} has labels already, and not in {FILE}, so that a second file there would be in the way. Say "
            "where to put yours with --labels, in another directory."
        )
    return here
