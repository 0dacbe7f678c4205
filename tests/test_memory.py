import pytest

from cagat.memory import OutOfMemoryError, peak_memory, require_memory


def test_what_fits_passes():
    require_memory(1, "Nothing", "")


def test_what_does_not_fit_names_amount_and_alternative():
    with pytest.raises(OutOfMemoryError, match=r"^Work would need 909\.5 TiB .*, but only .* are free\. Do less\.$"):
        require_memory(10**15, "Work", "Do less.")


def test_the_peak_stays_when_memory_is_freed():
    before = peak_memory()
    block = bytearray(200 * 2**20)
    block[::4096] = b"x" * len(block[::4096])
    del block
    assert peak_memory() >= before
    assert peak_memory() > 2**20
