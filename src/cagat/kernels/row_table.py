"""The table of steps that a row program is.

Its columns and operations are also given as plain numbers, which is all that compiled code knows.
"""

from enum import IntEnum


class Op(IntEnum):
    """What a step does, for each row i of its pattern; sums run over the entries e of the row, j is their column."""

    AGGREGATE = 0
    """``out[i] = sum_e (scale_x weight[e] x[j] + scale_y values[e] y[j]) + scale_add add[i]``"""
    AGGREGATE_TWICE = 1
    """``out[i] = scale_x sum_e weight[e] x[j]`` and ``out2[i] = scale_y sum_e values[e] x[j] + scale_add add[i]``"""
    INNER = 2
    """``out[e] = scale_x <x[i], y[j]> + scale_add add[e]``, for each head"""
    COMBINE = 3
    """``out[i] = scale_x x[i] + scale_add add[i]``"""
    TO_ROWS = 4
    """``out[i]`` is ``x[values[i]]``, with heads before channels there and channels before heads here; a row is one
    part"""
    FROM_ROWS = 5
    """The reverse of TO_ROWS: from ``x[i]`` to ``out[values[i]]``"""
    SOFTMAX = 6
    """``out[e] = softmax_e LeakyReLU(x[i] + y[j] + add[e])``, where x and y are vectors of heads"""
    SOFTMAX_BACKWARD = 7
    """Given softmax's ``values`` and the gradient there, ``weight``: ``out[e]``, the gradient at the logits before
    LeakyReLU, and ``out2[i]``, its sum"""
    SUM = 8
    """``out[i] = sum_e values[e]``"""
    PICK = 9
    """``out[e] = x[values[e]]``, vectors of heads"""
    PLACE = 10
    """The reverse of PICK: ``out[values[e]] = x[e]``"""
    LOGITS = 11
    """``out[i] = <x[i], weight>`` and ``out2[i] = <x[i], values>``, for each head, where weight and values are rows"""
    ADD_LOGITS = 12
    """The transpose of LOGITS: ``out[i] += x[i] weight + y[i] values``, where x and y are vectors of heads"""
    AGGREGATE_INNER = 13
    """As AGGREGATE_TWICE, of which ``out`` may be absent, and ``products[e] += scale_products <x[j], y[i]>``"""
    AGGREGATE_BOTH = 14
    """``out[i] = scale_y sum_e (values[e] + values[e']) y[j]``, where e' is the entry that mirrors e"""
    ADD_VALUES = 15
    """``out[e] += scale_x x[e]``, vectors of heads"""


class Field(IntEnum):
    """The columns of the table of steps: numbers and addresses, where 0 stands for what a step does not have."""

    OP = 0
    WAIT = 1
    BLOCKS = 2
    BOUNDS = 3
    ROWPTR = 4
    COL = 5
    ORDER = 6
    WEIGHT = 7
    VALUES = 8
    X = 9
    Y = 10
    ADD = 11
    OUT = 12
    OUT2 = 13
    SCALE_X = 14
    SCALE_Y = 15
    SCALE_ADD = 16
    PRODUCTS = 17
    SCALE_PRODUCTS = 18


class Head(IntEnum):
    """The columns of the first line, which is not a step."""

    LINES = 0
    """How many lines there are, this one among them"""
    COUNTERS = 1
    """The address of the counters"""
    WIDTH = 2
    """How long a row of features is"""
    LAST = 3
    """The number of the last entry of the pattern"""


# For compiled code.
COLUMNS = len(Field)
LINES, COUNTERS, WIDTH, LAST = (int(column) for column in Head)
OP, WAIT, BLOCKS, BOUNDS, ROWPTR, COL, ORDER, WEIGHT, VALUES = (int(field) for field in list(Field)[:9])
X, Y, ADD, OUT, OUT2, SCALE_X, SCALE_Y, SCALE_ADD, PRODUCTS, SCALE_PRODUCTS = (int(field) for field in list(Field)[9:])
AGGREGATE, AGGREGATE_TWICE, INNER, COMBINE, TO_ROWS, FROM_ROWS = (int(op) for op in list(Op)[:6])
SOFTMAX, SOFTMAX_BACKWARD, SUM, PICK, PLACE, LOGITS, ADD_LOGITS = (int(op) for op in list(Op)[6:13])
AGGREGATE_INNER, AGGREGATE_BOTH, ADD_VALUES = (int(op) for op in list(Op)[13:])
