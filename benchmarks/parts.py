"""Parts of a long benchmark, stored as they are done, so that a run that was ended goes on from there.

The parts of a run are in a folder of their own, below that for temporary files; its name has the digest of the source
and of the versions of the packages, so that a part is used only if the same code would make it again. A run that
reaches its end removes them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT, in_own_process
from benchmarks.record import versions
from partita.files import write_atomically

SOURCES = ("src/partita", "benchmarks")


class Parts:
    """The stored parts of one benchmark.

    Parameters
    ----------
    benchmark : str
        Its name.
    folder : path, optional
        Where the folder of the parts is; by default that for temporary files.
    """

    def __init__(self, benchmark: str, folder: str | Path | None = None):
        self.folder = Path(folder or tempfile.gettempdir()) / f"partita-{benchmark}-parts-{source_digest()}"

    def run(self, function: Callable[..., dict], **arguments: Any) -> dict:
        """The result of a function in a process of its own, or the stored one."""
        asked = json.dumps([function.__module__, function.__qualname__, arguments], sort_keys=True)
        path = self.folder / f"{hashlib.sha256(asked.encode()).hexdigest()[:32]}.json"
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))
        found = in_own_process(function, **arguments)
        self.folder.mkdir(parents=True, exist_ok=True)
        with write_atomically(path) as temporary:
            temporary.write_text(json.dumps(found), encoding="utf-8")
        return found

    def forget(self) -> None:
        """Remove the stored parts."""
        shutil.rmtree(self.folder, ignore_errors=True)


def source_digest() -> str:
    """Digest of the source of the package and the benchmarks, and of the versions of the packages."""
    digest = hashlib.sha256(json.dumps(versions()).encode())
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
