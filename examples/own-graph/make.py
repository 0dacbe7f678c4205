"""Make the tables in this directory: an invented cookbook, as anybody's own data might look.

Run: python examples/own-graph/make.py

240 recipes of three cuisines. An edge joins two recipes that the same people cook, with a weight that says how often; a
recipe's features are its ingredients; and for a quarter of the recipes nobody has written down the cuisine.
"""

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CUISINES = {
    "italian": [
        "basil",
        "tomato",
        "mozzarella",
        "parmesan",
        "oregano",
        "ricotta",
        "prosciutto",
        "polenta",
        "risotto",
        "pine-nut",
    ],
    "japanese": ["miso", "nori", "dashi", "tofu", "wasabi", "soba", "sesame", "matcha", "daikon", "shiso"],
    "mexican": [
        "tortilla",
        "avocado",
        "chili",
        "coriander",
        "lime",
        "black-bean",
        "corn",
        "cumin",
        "jalapeno",
        "tomatillo",
    ],
}
COMMON = ["salt", "onion", "garlic", "oil", "rice", "egg", "pepper", "sugar", "flour", "butter"]
RECIPES_PER_CUISINE, LABELLED_PER_CUISINE, PARTNERS = 80, 60, 4


def main() -> None:
    """Write edges.csv, features.csv and labels.csv."""
    random = np.random.RandomState(2024)
    cuisines = random.permutation(np.repeat(list(CUISINES), RECIPES_PER_CUISINE))
    names = [f"recipe-{number:03}" for number in range(len(cuisines))]
    write("features.csv", "node,feature,value", ingredient_rows(random, names, cuisines))
    write("labels.csv", "node,label", label_rows(random, names, cuisines))
    write("edges.csv", "source,target,weight", edge_rows(random, names, cuisines))


def ingredient_rows(random: np.random.RandomState, names: list[str], cuisines: np.ndarray) -> list[list[object]]:
    """Return three spoons of this and one of that: two ingredients of the cuisine, two common ones, one of any."""
    everything = [*COMMON, *(ingredient for own in CUISINES.values() for ingredient in own)]
    rows: list[list[object]] = []
    for name, cuisine in zip(names, cuisines, strict=True):
        chosen = [*random.choice(CUISINES[cuisine], 2), *random.choice(COMMON, 2), random.choice(everything)]
        rows += [[name, ingredient, random.randint(1, 4)] for ingredient in sorted(set(chosen))]
    return rows


def label_rows(random: np.random.RandomState, names: list[str], cuisines: np.ndarray) -> list[list[object]]:
    """Return the cuisine of each recipe, or nothing for those that nobody has labelled."""
    known = [
        node
        for cuisine in CUISINES
        for node in random.permutation(np.flatnonzero(cuisines == cuisine))[:LABELLED_PER_CUISINE]
    ]
    return [[name, cuisines[node] if node in known else ""] for node, name in enumerate(names)]


def edge_rows(random: np.random.RandomState, names: list[str], cuisines: np.ndarray) -> list[list[object]]:
    """Return pairs of recipes: each with a few partners, three of four from its own cuisine."""
    pairs = set()
    for node, cuisine in enumerate(cuisines):
        for _ in range(PARTNERS):
            near = random.random_sample() < 0.75
            partner = int(random.choice(np.flatnonzero(cuisines == cuisine) if near else len(names)))
            if partner != node:
                pairs.add((min(node, partner), max(node, partner)))
    return [[names[source], names[target], random.randint(1, 6)] for source, target in sorted(pairs)]


def write(file: str, header: str, rows: list[list[object]]) -> None:
    """Write one table."""
    with (HERE / file).open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(header.split(","))
        table.writerows(rows)


if __name__ == "__main__":
    main()
