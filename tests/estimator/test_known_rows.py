import numpy as np
from scipy import sparse

from cagat.estimator.known_rows import KnownRows


def test_rows_are_found_in_either_form():
    rows = np.array([[0, 1], [2, 0], [0, 1], [0, 0]], dtype=np.float32)
    for form in (rows, sparse.csr_array(rows)):
        known = KnownRows(form)
        assert known.are(rows)
        assert known.are(sparse.csr_array(rows))
        assert not known.are(rows[::-1])
        assert not known.are(rows[:2])
        asked = np.array([[0, 1], [1, 0], [2, 0], [-0.0, 0]], dtype=np.float32)
        assert known.find(asked).tolist() == [0, -1, 1, 3]  # Of equal rows, the first.
