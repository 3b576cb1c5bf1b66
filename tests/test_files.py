"""Atomic writes: whole or not at all."""

import os
import stat

import pytest

from partita.files import write_atomically


def test_replaces_the_whole_file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with write_atomically(path) as temporary:
        assert temporary.parent == tmp_path and temporary.suffix == ".csv"
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_exception_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(error), write_atomically(path) as temporary:
        temporary.write_text("half")
        raise error
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["table.csv"]


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError), write_atomically(tmp_path / "none" / "a.txt") as temporary:
        temporary.write_text("")


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_the_file_has_the_permissions_of_any_new_file(tmp_path):
    with write_atomically(tmp_path / "ours") as temporary:
        temporary.write_text("")
    (tmp_path / "plain").write_text("")
    ours, plain = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "plain"))
    assert ours == plain


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_nobody_else_reads_a_file_while_it_is_written(tmp_path):
    """A file that is replaced keeps its permissions, and the new content is never more open than that."""
    secret = tmp_path / "secret"
    secret.write_text("old")
    secret.chmod(0o600)
    with write_atomically(secret) as temporary:
        temporary.write_text("new")
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600 and secret.read_text() == "new"
