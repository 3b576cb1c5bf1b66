"""Advice of the library in the words of the command line: ``n_draws`` is ``--draws`` there.

Notes and errors of estimators name parameters of Python. Where the command has an option for one of them, the option is
named instead; a parameter without an option is marked as one of Python.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextvars import ContextVar

OPTIONS = {
    "n_clusters": "--clusters",
    "n_chains": "--chains",
    "n_draws": "--draws",
    "burn_in": "--burn-in",
    "time_limit": "--time-limit",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "inference": "--inference",
    "family": "--family",
    "kinds": "--kind",
    "missing_codes": "--na",
    "outliers": "--outliers",
    "n_members": "--members",
}
ONLY_PYTHON = (
    "max_clusters", "max_iter", "max_exact", "max_views", "n_init", "tol", "thin", "prior", "concentration", "estimate",
    "handle_unknown", "sample_weight", "learn_hyper", "balance", "identical", "exposure", "covariance", "beam_width",
)  # fmt: skip
# sentences that need other words than the names of their parameters
_SENTENCES = (
    (r"(?:give )?missing_codes=\{[^}]*\} \(on the command line (--na [^)]*)\)", r"give \1"),
    (r"declare kinds='ordinal' or kinds=\{[^}]*\} \(on the command line (--kind [^)]*)\)", r"give \1"),
    (r"declare a column '(\w+)' if (.*?) \(on the command line (--kind [^)]*)\)", r"give \3 if \2"),
    (r"declare kinds to change this", "change this with --kind column=kind"),
    (r"declare them 'ignore' if they should not be", "leave them out with --ignore if they should not be"),
    (r"declare them 'ignore' to use each value once", "leave them out with --ignore to use each value once"),
    (r"declare a kind, for example '(\w+)'(?: or '(\w+)')?, to model it", r"to model it, give --kind column=\1"),
    (r"declare the column '(\w+)'", r"give --kind column=\1"),
    (r"leave such a column out, or declare it 'ignore',", "leave such a column out with --ignore"),
    (r"merge its values into fewer categories, or declare it '(\w+)'",
     r"merge its values into fewer categories, or give --kind column=\1"),
    (r"(column '([^']*)'.*negative code (-\d+) in a categorical column; )replace it by NaN or None if it means missing"
     r", or convert the column to text if it is a level \(read_table also [^)]*\)",
     r"\1give --na '\2=\3' if it means missing, or write text in place of the codes of this column if it is a level"),
    (r"give the encoding if names look wrong \(--encoding on the command line\)",
     "give --encoding if names look wrong"),
    (r"set n_clusters to get clusters nevertheless", "give --clusters to get clusters nevertheless"),
    (r"kinds=\{'([^']*)': '(\w+)'\}", r"--kind '\1=\2'"),
    (r"family=\{'(\w+)': '(\w+)'\}", r"--family \1=\2"),
    (r"(?<=\. )(family=\{'real': \('auto', \{[^}]*\}\)\})", r"In Python, \1"),
    (r"(?<!Python[:,] )(family=\{'real': \('auto', \{[^}]*\}\)\})", r"in Python, \1"),
    (r"replace inf by a finite number, or by NaN to mark it as missing", "give --na inf if it means missing"),
    (r" on the command line\)", ")"),
)  # fmt: skip

# what precedes the name of a parameter: not the quote of a column that has this name
_ALONE = r"(?<![\w.'\"-])"

_available: ContextVar[frozenset[str]] = ContextVar("options", default=frozenset())


def begin_command(options: Collection[str]) -> None:
    """Remember the options of the command that runs."""
    _available.set(frozenset(options))


def in_options(text: str, available: Collection[str] | None = None) -> str:
    """A note or an error in the words of a command.

    Parameters
    ----------
    text : str
    available : collection of str, default=None
        The options of the command; None means those of the command that runs.

    Examples
    --------
    >>> in_options("raise n_draws or max_iter; kinds={'visits': 'count'}", {"--draws", "--kind"})
    "raise --draws or max_iter (in Python); --kind 'visits=count'"
    """
    known = _available.get() if available is None else available
    if not known:
        return text
    for pattern, words in _SENTENCES:
        changed = re.sub(pattern, words, text)
        if set(re.findall(r"--[a-z][a-z-]*", changed)) <= {*known, *re.findall(r"--[a-z][a-z-]*", text)}:
            text = changed
    for name, option in OPTIONS.items():
        if option in known:
            text = re.sub(rf"{_ALONE}{name}=['\"]?(\w[\w.]*)['\"]?", rf"{option} \1", text)
            if "_" in name:  # the others are also words
                text = re.sub(rf"{_ALONE}{name}(?:=(?!\w)|(?![\w=('\"]))", option, text)
    return _marked(text, known)


def _marked(text: str, known: Collection[str]) -> str:
    """Mark parameters that the command cannot set."""
    for name in (*OPTIONS, *ONLY_PYTHON):
        if "_" in name and OPTIONS.get(name) not in known:
            text = re.sub(
                rf"{_ALONE}({name}(?:=[\w.'\"]+|=)?)(?![\w('\"]| \(in Python)", r"\1 (in Python)", text
            )
    return text
