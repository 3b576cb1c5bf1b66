"""Values that are computed when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Later:
    """A value of the size of a table that is elsewhere: ``get`` fetches it.

    Parameters
    ----------
    compute : callable
        Without arguments. It refers to what is on the device, which stays there as long.

    Examples
    --------
    >>> Later(lambda: 2 + 2).get()
    4
    """

    def __init__(self, compute: Callable[[], Any]):
        self._compute = compute

    def get(self) -> Any:
        """The value."""
        return self._compute()


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """``function(value)``, later if the value is there later.

    Examples
    --------
    >>> mapped(3, str), mapped(Later(lambda: 3), str).get()
    ('3', '3')
    """
    return Later(lambda: function(value.get())) if isinstance(value, Later) else function(value)


def fetched(value: Any) -> Any:
    """The value itself, fetched if it is to be computed later."""
    return value.get() if isinstance(value, Later) else value
