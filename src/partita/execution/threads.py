"""Limit other libraries to one thread while partita runs its own threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    import sklearn.cluster  # noqa: F401  the controller finds only libraries that are loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Limit OpenMP (used by scikit-learn's k-means) to one thread within this context.

    Sums are then added in a fixed order, so that results do not depend on the number of cores, and work that already
    runs in several threads does not start more of them.

    Examples
    --------
    >>> with one_thread_each():
    ...     sum([1, 2])
    3
    """
    # OpenMP keeps this limit per thread. The limit of a BLAS is global and is not changed here: threads that set and
    # restore it concurrently would leave it changed.
    with _controller().limit(limits=1, user_api="openmp"):
        yield
