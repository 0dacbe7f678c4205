"""Make the tables in this directory: an invented library, with all kinds of columns.

Run: python examples/mixed-table/make.py

240 books of three genres. An edge joins two books that the same people borrow. What is known about a book: its pages
(with gaps), its language, its publisher, the day it was published (with gaps), whether it has pictures, and what the
back cover says; and the shelf, which columns.yaml leaves out. The genre of a third of the books is not known.
"""

import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
BOOKS_PER_GENRE, LABELLED_PER_GENRE, PARTNERS = 80, 53, 4
# Pages, share with pictures, first year, and words of the back cover.
GENRES = {
    "crime": (350, 0.1, 1985, ["murder", "detective", "night", "secret", "witness", "harbour", "alibi", "letter"]),
    "travel": (220, 0.9, 1995, ["river", "mountain", "journey", "map", "harbour", "train", "desert", "letter"]),
    "cooking": (180, 0.8, 2000, ["kitchen", "garden", "bread", "recipe", "spice", "winter", "market", "secret"]),
}
COMMON = ["a", "the", "and", "story", "of", "life", "book", "new", "for", "all"]
LANGUAGES, PUBLISHERS = ["en", "fr", "de"], [f"House {number}" for number in range(50)]


def main() -> None:
    """Write edges.csv, nodes.csv and target.csv."""
    random = np.random.RandomState(2025)
    genres = random.permutation(np.repeat(list(GENRES), BOOKS_PER_GENRE))
    names = [f"book-{number:03}" for number in range(len(genres))]
    header = ["id", "pages", "language", "publisher", "published", "pictures", "cover", "shelf"]
    write("nodes.csv", header, [[name, *about(random, genre)] for name, genre in zip(names, genres, strict=True)])
    known = [node for genre in GENRES for node in np.flatnonzero(genres == genre)[:LABELLED_PER_GENRE]]
    write("target.csv", ["id", "target"], [[names[node], genres[node]] for node in sorted(known)])
    write("edges.csv", ["id_1", "id_2"], edge_rows(random, names, genres))


def about(random: np.random.RandomState, genre: str) -> list[object]:
    """Return the columns of a book; each of them says a little about its genre."""
    pages, pictures, year, words = GENRES[genre]
    language = random.choice(LANGUAGES, p=np.roll([0.6, 0.2, 0.2], list(GENRES).index(genre)))
    day = date(year, 1, 1) + timedelta(days=int(random.randint(0, 7300)))
    cover = [*random.choice(COMMON, 6), *random.choice(words, 2), random.choice([*GENRES["crime"][3], *words])]
    return [
        "" if random.random_sample() < 0.15 else max(20, int(random.normal(pages, 120))),
        language,
        random.choice(PUBLISHERS),
        "" if random.random_sample() < 0.1 else day.isoformat(),
        "yes" if random.random_sample() < pictures else "no",
        " ".join(random.permutation(cover)),
        f"{random.choice(list('ABCDEF'))}{random.randint(100, 999)}",
    ]


def edge_rows(random: np.random.RandomState, names: list[str], genres: np.ndarray) -> list[list[object]]:
    """Return pairs of books: each with a few partners, two of three from its own genre."""
    pairs = set()
    for node, genre in enumerate(genres):
        for _ in range(PARTNERS):
            near = random.random_sample() < 0.66
            partner = int(random.choice(np.flatnonzero(genres == genre) if near else len(names)))
            if partner != node:
                pairs.add((min(node, partner), max(node, partner)))
    return [[names[source], names[target]] for source, target in sorted(pairs)]


def write(file: str, header: list[str], rows: list[list[object]]) -> None:
    """Write one table."""
    with (HERE / file).open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)


if __name__ == "__main__":
    main()
