import pytest

from cagat.memory import OutOfMemoryError, require_memory


def test_what_fits_passes():
    require_memory(1, "Nothing", "")


def test_what_does_not_fit_names_amount_and_alternative():
    with pytest.raises(OutOfMemoryError, match=r"^Work would need 909\.5 TiB .*, but only .* are free\. Do less\.$"):
        require_memory(10**15, "Work", "Do less.")
