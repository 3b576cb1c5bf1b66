"""Libraries that start threads of their own, held to one thread while others run beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["one_thread_each"]


@cache
def _controller() -> Any:
    import sklearn.cluster  # noqa: F401  the library that is to be held must be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Hold OpenMP (scikit-learn's k-means) to one thread in this thread.

    Sums are then added in one order, so that an answer does not depend on the number of cores, and work that is
    already spread over threads does not ask for more of them.

    Examples
    --------
    >>> with one_thread_each():
    ...     sum([1, 2])
    3
    """
    # OpenMP keeps this number for each thread; that of a BLAS is common to all and is left alone, as threads that
    # change it in turn would leave it changed
    with _controller().limit(limits=1, user_api="openmp"):
        yield
