"""What of the vector registers is not seen in the results of the loops that use them."""

import numba
import numpy as np

from cagat.kernels.simd import keep_alive


@numba.njit
def _times_taken(count, turns):
    """How often an array that is made later lies where one does of which only the address is used."""
    array = np.zeros(count)
    address, taken = array.ctypes.data, 0
    for _ in range(turns):
        later = np.ones(count)
        taken += later.ctypes.data == address
    keep_alive(array)
    return taken


def test_an_array_that_is_kept_is_not_freed_while_its_address_is_used():
    assert _times_taken(1000, 100) == 0  # Without keep it is 100.
