import io
import zipfile

import pytest

from cagat.zip_seal import is_broken, opened, sealed


@pytest.fixture
def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("name", "content")
    return buffer.getvalue()


def test_a_sealed_archive_is_still_an_archive(archive, tmp_path):
    assert opened(sealed(archive)) == archive
    path = tmp_path / "a.zip"
    path.write_bytes(sealed(archive))
    assert not is_broken(path)
    with zipfile.ZipFile(path) as file:
        assert file.read("name") == b"content"


def test_every_bit_and_every_cut_is_noticed(archive, tmp_path):
    whole, path = sealed(archive), tmp_path / "a.zip"
    for place in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)
        assert is_broken(path), place
        assert opened(bytes(changed)) is None
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert is_broken(path) or length == 0, length


def test_an_archive_without_a_comment_has_no_seal_to_break(archive, tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(archive)
    assert not is_broken(path)
    assert opened(archive) is None
