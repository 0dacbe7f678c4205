import pytest

from cagat.memory import OutOfMemoryError, free_memory, peak_memory, require_memory, total_memory


def test_what_fits_passes():
    require_memory(1, "Nothing", "")


def test_what_does_not_fit_names_amount_and_alternative():
    with pytest.raises(OutOfMemoryError, match=r"^Work would need 909\.5 TiB .*, but only .* are free\. Do less\.$"):
        require_memory(10**15, "Work", "Do less.")


@pytest.mark.parametrize(
    ("limit", "current"),
    [("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes")],
)
def test_a_container_has_less_than_its_machine(limit, current, tmp_path, monkeypatch):
    monkeypatch.setattr("cagat.memory._CGROUPS", tmp_path)
    (tmp_path / "memory").mkdir()
    of_the_machine = total_memory()
    (tmp_path / limit).write_text("5000000\n")
    (tmp_path / current).write_text("2000000\n")
    assert (total_memory(), free_memory()) == (5_000_000, 3_000_000)
    stat = (tmp_path / current).with_name("memory.stat")
    stat.write_text("anon 1200000\ninactive_file 500000\n")
    assert free_memory() == 3_500_000  # Files that were read can be forgotten.
    stat.write_text("anon 1200000\n")
    with pytest.raises(OutOfMemoryError, match=r"only 2\.861 MiB are free"):
        require_memory(4_000_000, "Work", "Do less.")
    (tmp_path / limit).write_text("max\n")
    assert total_memory() == of_the_machine


def test_the_peak_stays_when_memory_is_freed():
    before = peak_memory()
    block = bytearray(200 * 2**20)
    block[::4096] = b"x" * len(block[::4096])
    del block
    assert peak_memory() >= before
    assert peak_memory() > 2**20
