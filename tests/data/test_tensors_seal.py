import numpy as np
import pytest
import safetensors.numpy

from cagat.data.tensors_seal import METADATA, is_broken, sealed

TENSORS = {"a": np.arange(3), "name": np.ones(2, dtype=np.float32)}


@pytest.fixture
def content() -> bytes:
    return sealed(safetensors.numpy.save(TENSORS, METADATA))


def test_a_sealed_file_is_still_one(content, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    assert not is_broken(path)
    assert safetensors.numpy.load_file(path)["a"].tolist() == [0, 1, 2]


def test_every_bit_and_every_cut_is_noticed(content, tmp_path):
    path = tmp_path / "a.safetensors"
    cuts = [content[:length] for length in range(0, len(content), 3)]
    flips = [
        bytes([*content[:i], content[i] ^ (1 << b), *content[i + 1 :]]) for i in range(len(content)) for b in (0, 6)
    ]
    for changed in (*cuts, *flips):
        path.write_bytes(changed)
        if not is_broken(path):  # Then the head itself is no longer one.
            with pytest.raises(Exception):  # noqa: B017, PT011
                safetensors.numpy.load_file(path)


@pytest.mark.parametrize("metadata", [None, {"format": "np"}])
def test_files_of_others_have_no_seal_to_break(metadata, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors.numpy.save(TENSORS, metadata))
    assert not is_broken(path)
