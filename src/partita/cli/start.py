"""The entry point of the command line: errors become one line on standard error and an exit code."""

from __future__ import annotations

import os
import sys

from partita.cli.progress import INTERRUPTED

INVALID_INPUT = 2


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit code.

    0: success. 1: a bug, or a failure of the machine. 2: the command or its files are invalid, and one line says what
    to do. 130: interrupted by Ctrl-C; methods that can stop early have written their result so far.

    Parameters
    ----------
    arguments : list of str, default=None
        The arguments; None means those of the process.
    """
    try:
        from partita.cli.app import run
    except ImportError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        print('partita: the command line needs the extra "cli": pip install "partita[cli]"', file=sys.stderr)
        return INVALID_INPUT
    try:
        return run(arguments)
    except KeyboardInterrupt:
        print("partita: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (ValueError, TypeError, ImportError, MemoryError, OSError) as error:
        if os.environ.get("PARTITA_DEBUG"):
            raise
        print(f"partita: {_one_line(error)}", file=sys.stderr)
        return INVALID_INPUT


def _one_line(error: BaseException) -> str:
    from partita.cli.advice import in_options
    from partita.cli.output import visible

    return visible(in_options(" ".join(str(error).split()))) or type(error).__name__


def script() -> None:
    """The entry point of the package."""
    sys.exit(main())
