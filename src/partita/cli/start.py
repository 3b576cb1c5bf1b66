"""Where the command begins: what goes wrong becomes one line and an exit code."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]

FAULTY_INPUT, INTERRUPTED = 2, 130


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit code.

    0: done. 1: a bug, or a failure of the machine. 2: the command or its files are faulty, and one line says what to
    do. 130: interrupted; what was found until then is written where the method can do that.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the process.
    """
    try:
        from partita.cli.app import run
    except ImportError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        print('partita: the command line needs its extra: pip install "partita[cli]"', file=sys.stderr)
        return FAULTY_INPUT
    try:
        return run(arguments)
    except KeyboardInterrupt:
        print("partita: interrupted before there was anything to keep", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, TypeError, ImportError, MemoryError, OSError) as error:
        if os.environ.get("PARTITA_DEBUG"):
            raise
        print(f"partita: {_one_line(error)}", file=sys.stderr)
        return FAULTY_INPUT


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def script() -> None:
    """The entry point of the package."""
    sys.exit(main())
