"""CaGATConv in a plain PyG training loop, in the place of GATConv: a network of two layers on Cora.

Run: python examples/pyg_training_loop.py [--dataset cora] [--epochs 200]
"""

import argparse

import torch
import torch.nn.functional as F

from cagat import CaGATConv, CSRGraph, data

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--dataset", default="cora", help="a graph that `cagat data list` names, or a path")
parser.add_argument("--labels", type=int, default=20, help="training nodes per class, and as many for validation")
parser.add_argument("--epochs", type=int, default=200)
arguments = parser.parse_args()

torch.manual_seed(0)
graph = data.load(arguments.dataset)  # A PyG Data object; use your own in its place.
x = data.normalize_features(graph.x, "l2")
train, val, test = data.split(graph.y, arguments.labels, arguments.labels, seed=0)
edges = CSRGraph.from_edge_index(graph.edge_index, graph.num_nodes)  # Prepared once; a plain edge_index works, too.


class Net(torch.nn.Module):
    """Two layers, as in GAT."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first = CaGATConv(features, 8, heads=8, dropout=0.6, lam=0.8, xi=0.0)
        self.last = CaGATConv(64, classes, heads=1, concat=False, dropout=0.6, lam=0.8, xi=0.0)

    def forward(self, x: torch.Tensor, edges: CSRGraph) -> torch.Tensor:
        """Return the logits of all nodes."""
        hidden = F.elu(self.first(F.dropout(x, 0.6, self.training), edges))
        return self.last(F.dropout(hidden, 0.6, self.training), edges)


net = Net(graph.num_features, len(graph.class_names))
optimizer = torch.optim.Adam(net.parameters(), lr=0.005, weight_decay=5e-4)
best_loss, best_accuracy = float("inf"), 0.0
for epoch in range(1, arguments.epochs + 1):
    net.train()
    optimizer.zero_grad()
    F.cross_entropy(net(x, edges)[train], graph.y[train]).backward()
    optimizer.step()

    net.eval()
    with torch.no_grad():
        logits = net(x, edges)
    val_loss = float(F.cross_entropy(logits[val], graph.y[val]))
    if val_loss < best_loss:
        best_loss = val_loss
        best_accuracy = float((logits[test].argmax(dim=1) == graph.y[test]).float().mean())
    if epoch % 20 == 0:
        print(f"epoch {epoch}: validation loss {val_loss:.3f}")
print(f"test accuracy at the lowest validation loss: {best_accuracy:.1%}")

# Whom does node 0 attend to? Rows of S reach nodes that it has no edge to.
rows = net.first.attention(x, edges, nodes=[0])
strongest = rows.S[0].mean(dim=0).topk(5)
print("node 0 attends most to", ", ".join(graph.node_names[node] for node in strongest.indices.tolist()))
