"""Colours that colour-blind people can tell apart: Okabe and Ito's palette."""

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PINK = "#CC79A7"
AMBER = "#E69F00"
SKY = "#56B4E9"
BLACK = "#222222"
YELLOW = "#F0E442"
GREY = "#6B7280"

SERIES = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK, YELLOW)
"""The order in which things get their colours: those that stand out on white first."""

SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up")
"""What tells things apart when there are more of them than colours."""


def colour(number: int) -> str:
    """The colour of the thing with this number."""
    return SERIES[number % len(SERIES)]


def symbol(number: int) -> str:
    """The marker of the thing with this number: another one for each turn through the colours."""
    return SYMBOLS[number // len(SERIES) % len(SYMBOLS)]
