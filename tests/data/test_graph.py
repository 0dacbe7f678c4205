"""Plain arrays. What `RawGraph.check` refuses is tried in test_graph_files.py and test_converters.py."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cagat.data.graph import sorted_unique


@given(st.lists(st.integers(-5, 5), max_size=12))
def test_distinct_keys_are_those_of_numpy(keys):
    keys = np.array(keys, dtype=np.int64)
    assert sorted_unique(keys).tolist() == np.unique(keys).tolist()
