"""The memory that a fit may use, checked before anything is allocated."""

from __future__ import annotations

import os


def memory_limit() -> int | None:
    """Return half of the machine's memory in bytes, or None if the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def check_memory(n_bytes: int, what: str, remedy: str) -> None:
    """Raise an error if ``n_bytes`` exceed the limit; it gives both numbers and a remedy.

    Examples
    --------
    >>> check_memory(10**18, "10,000 clusters", "ask for fewer clusters")
    Traceback (most recent call last):
    ...
    ValueError: 10,000 clusters need about 1,000,000,000.0 GB ..., more than the ... GB ...: ask for fewer clusters
    """
    limit = memory_limit()
    if limit is not None and n_bytes > limit:
        raise ValueError(
            f"{what} need about {n_bytes / 1e9:,.1f} GB of memory ({n_bytes:,} bytes), more than the "
            f"{limit / 1e9:,.1f} GB that a fit may use (half of this machine's memory): {remedy}"
        )
