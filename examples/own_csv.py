"""From CSV tables of your own to predictions and a page: the recipes of examples/own-graph get their cuisine.

Run: python examples/own_csv.py [--out cookbook] [--epochs 200]
"""

import argparse
import csv
from pathlib import Path

from cagat import explore
from cagat.training import Run, TrainConfig, TrainedRun

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("cookbook"), help="the run directory")
parser.add_argument("--epochs", type=int, default=200, help="the largest number of epochs")
arguments = parser.parse_args()

# A directory with edges.csv, features.csv and labels.csv. Every label trains; five folds estimate the accuracy.
tables = Path(__file__).parent / "own-graph"
# Leave `baselines` out to compare with a perceptron that does not see the graph, which takes as long again.
config = TrainConfig.from_values({"dataset": str(tables), "epochs": arguments.epochs, "baselines": False})
result = Run.start(config, arguments.out).train()
print(f"estimated accuracy: {result.estimated_accuracy:.0%} on {result.estimated_on} recipes")

# The run has written predictions.csv: a class, a confidence and the labelled recipes behind it, for every recipe.
with (arguments.out / "predictions.csv").open(encoding="utf-8") as stream:
    unlabelled = [row for row in csv.DictReader(stream) if row["split"] == ""]
for row in unlabelled[:5]:
    print(f"{row['node']}: {row['predicted']}, confidence {float(row['confidence']):.0%}, because of {row['because']}")

# The same model in Python, for example to look at the representation that it has learnt.
vectors = TrainedRun(arguments.out).embed().vectors
print(f"{len(vectors)} recipes in {vectors.shape[1]} dimensions")

page = arguments.out / "explore.html"
explore.write_page(arguments.out, page)
print(f"Open {page} in a browser.")
