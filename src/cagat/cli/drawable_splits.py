"""Whether an experiment has the splits that it asks for."""

from collections.abc import Iterable
from itertools import product


def require_drawable_splits(datasets: Iterable[str], labels: Iterable[int], data_dir: str | None) -> None:
    """Raise unless every graph can be loaded, and has nodes enough in each class, before anything is written.

    Args:
        datasets: The graphs.
        labels: Numbers of training nodes a class.
        data_dir: Where published graphs are looked for.

    Raises:
        DatasetError: The graph is named, and what is wrong with it.
    """
    from cagat.data.splits import split
    from cagat.errors import DatasetError
    from cagat.experiments.task import cached_graph
    from cagat.training.problem import DEFAULT_LABELS

    for name, count in product(datasets, labels):
        graph = cached_graph(name, data_dir)
        try:
            # Which nodes are drawn depends on the seed, but not whether there are enough.
            split(graph.y, count, DEFAULT_LABELS, class_names=graph.class_names)
        except DatasetError as error:
            raise DatasetError(f"{name} with --labels {count}: {error}") from error
