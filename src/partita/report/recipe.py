"""How to do the fit again."""

from __future__ import annotations

import datetime
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from partita._version import __version__
from partita.summaries.words import safe

__all__ = ["recipe"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def recipe(model: Any, weighted: bool) -> list[str]:
    """The call that repeats the fit, with versions; what it leaves out is said."""
    call = safe(_call(model), 3000)
    lines = [f"partita {__version__}, Python {platform.python_version()}, {platform.system()}"]
    lines.append(", ".join(f"{name} {_version(name)}" for name in PACKAGES))
    seed = getattr(model, "random_state", None)
    fit = f"{call}.fit(X{', sample_weight=...' if weighted else ''})"
    parts = [f"<pre>{fit}\n\n{chr(10).join(lines)}</pre>"]
    if seed is None:
        parts.append('<p class="note">No random_state was given: another fit may differ a little.</p>')
    elif not isinstance(seed, (int, np.integer)):
        parts.append(
            '<p class="note">random_state was a generator: its state at the time of the fit is not recorded here.</p>'
        )
    parts.append(f'<p class="note">Written on {datetime.date.today().isoformat()}.</p>')
    return parts


def _call(model: Any) -> str:
    """The constructor with the parameters that differ from their defaults, whatever their length."""
    try:
        defaults = type(model)().get_params(deep=False)
    except (AttributeError, TypeError):  # no scikit-learn estimator, or one that asks for arguments
        return f"{type(model).__name__}(...)"
    changed = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if not (value is defaults[name] or (np.isscalar(value) and value == defaults[name]))
    }
    return f"{type(model).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not found"
