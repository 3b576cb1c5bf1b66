"""How much memory a fit may take: asked before anything is allocated."""

from __future__ import annotations

import os

__all__ = ["check_memory", "memory_limit"]


def memory_limit() -> int | None:
    """Half of the machine's memory in bytes; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return None


def check_memory(n_bytes: int, what: str, remedy: str) -> None:
    """Refuse what would not fit, with both numbers and a way out.

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
            f"{limit / 1e9:,.1f} GB that a fit may take (half of this machine's): {remedy}"
        )
