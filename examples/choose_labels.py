"""Choose which nodes to label with the estimator, round after round, and compare with labels drawn at random.

Run: python examples/choose_labels.py [--dataset cora] [--rounds 3] [--per-round 7]

The graph's own labels play the person who labels. All nodes without a label are test nodes.
"""

import argparse

import numpy as np

from cagat import CaGATClassifier, data, suggest

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--dataset", default="cora", help="a graph that `cagat data list` names")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--per-round", type=int, default=7, help="how many nodes are labelled in each round")
parser.add_argument("--epochs", type=int, default=100)
arguments = parser.parse_args()

graph = data.load(arguments.dataset)
X, truth = graph.x.numpy(), graph.y.numpy()


def fitted(labelled: list[int]) -> tuple[CaGATClassifier, float]:
    """The classifier fitted to these labels, and its accuracy on all other nodes."""
    y = np.full_like(truth, -1)
    y[labelled] = truth[labelled]
    classifier = CaGATClassifier(epochs=arguments.epochs, random_state=0).fit(X, y, graph=graph.edge_index)
    others = y == -1
    return classifier, float(np.mean(classifier.transduction_[others] == truth[others]))


# The first nodes are chosen without any label, the next ones also by what the fitted network is unsure of.
chosen = [one.index for one in suggest(graph, arguments.per_round, labelled=[])]
drawn = np.random.default_rng(0).permutation(graph.num_nodes).tolist()
for number in range(arguments.rounds):
    classifier, accuracy = fitted(chosen)
    _, at_random = fitted(drawn[: len(chosen)])
    print(f"{len(chosen)} labels: {accuracy:.1%} if chosen, {at_random:.1%} if drawn at random")
    if number + 1 < arguments.rounds:
        chosen += [one.index for one in classifier.suggest(arguments.per_round)]
