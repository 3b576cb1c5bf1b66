"""All partitions of a small set, against which samplers and searches are tested."""

from collections.abc import Iterator


def set_partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Enumerate the partitions of n objects as canonical labelings.

    Every partition appears once, as its restricted growth string: the labels start at 0 and every new
    label is one above the largest before it. The order is lexicographic. There are `n_set_partitions(n)`
    of them, so n above about 12 takes long.

    Parameters
    ----------
    n : int
        Number of objects, 0 or more. The empty set has one partition, the empty one.

    Yields
    ------
    tuple of int
        The label of every object.

    Examples
    --------
    >>> list(set_partitions(3))
    [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]
    """
    _check_size(n)
    return _growth_strings(n)


def n_set_partitions(n: int) -> int:
    """Count the partitions of n objects: the Bell number, as an exact integer.

    Parameters
    ----------
    n : int
        Number of objects, 0 or more.

    Returns
    -------
    int

    Examples
    --------
    >>> [n_set_partitions(n) for n in range(6)]
    [1, 1, 2, 5, 15, 52]
    """
    _check_size(n)
    row = [1]
    for _ in range(n):
        # Bell triangle: a row starts with the last entry of the row above and adds its neighbors up.
        following = [row[-1]]
        for entry in row:
            following.append(following[-1] + entry)
        row = following
    return row[0]


def _check_size(n: int) -> None:
    if n < 0:
        raise ValueError(f"n is {n}: the number of objects cannot be negative")


def _growth_strings(n: int) -> Iterator[tuple[int, ...]]:
    labels = [0] * n
    largest = [0] * n  # largest[i] is the largest of labels[:i], 0 for i = 0
    while True:
        yield tuple(labels)
        i = n - 1
        while i > 0 and labels[i] > largest[i]:
            i -= 1
        if i <= 0:
            return
        labels[i] += 1
        top = max(largest[i], labels[i])
        for j in range(i + 1, n):
            labels[j], largest[j] = 0, top
