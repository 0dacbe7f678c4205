import os

import pytest

from cagat.files import read_bounded


def test_a_file_of_just_so_many_bytes_is_read(tmp_path):
    path = tmp_path / "file"
    for content in (b"", b"12345"):
        path.write_bytes(content)
        assert read_bounded(path, 5) == content
    path.write_bytes(b"123456")
    with pytest.raises(OSError, match="larger than 5 bytes") as error:
        read_bounded(path, 5)
    assert error.value.filename == str(path)


@pytest.mark.posix
def test_links_are_followed_but_only_to_files(tmp_path):
    (tmp_path / "file").write_bytes(b"1")
    (tmp_path / "link").symlink_to("file")
    assert read_bounded(tmp_path / "link", 5) == b"1"
    (tmp_path / "endless").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    for name in ("endless", "pipe"):
        with pytest.raises(OSError, match="no regular file"):
            read_bounded(tmp_path / name, 5)
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "absent", 5)
    with pytest.raises(IsADirectoryError):
        read_bounded(tmp_path, 5)
