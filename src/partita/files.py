"""Files that are replaced as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def write_atomically(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file under a temporary name and rename it to `path` when the block ends without an exception.

    The temporary file lies in the folder of `path`, so that renaming it is one operation of the file system: a reader
    sees the old file or the new one, never a part. It has the ending of `path`, for writers that look at it. After an
    exception the temporary file is removed and `path` is as it was.

    Parameters
    ----------
    path : path-like
        The file to write; an existing file is replaced. Its folder must exist.

    Yields
    ------
    pathlib.Path
        The temporary file, which is empty. Until it is renamed only its owner may read it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "numbers.txt")
    ...     with write_atomically(target) as temporary:
    ...         _ = temporary.write_text("1 2 3")
    ...     target.read_text(), len(os.listdir(folder))
    ('1 2 3', 1)
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{path.suffix}")
    mode = _create(temporary)
    with suppress(OSError):
        mode = stat.S_IMODE(path.stat().st_mode)  # a file that is replaced keeps its permissions
    try:
        yield temporary
        temporary.chmod(mode)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _create(path: Path) -> int:
    """Create an empty file that only its owner may read; returns the permissions that a new file has here.

    The mask of the process is not asked for: reading it means changing it, for all threads.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
    return mode
