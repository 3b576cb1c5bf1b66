"""Trees from the root down: the widest group is divided in two, until every object is alone.

A group is as wide as its diameter, the largest dissimilarity between two of its members; that is also the height of the
node, so heights fall on the way down whatever rule divides the groups.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["Divided", "diana_split", "divide", "medoid_split", "spanning_linkage"]

Split = Callable[[np.ndarray], np.ndarray]  # members -> True for those that leave


class Divided(NamedTuple):
    """A linkage matrix over the groups that were left, and the group of each object."""

    linkage: np.ndarray
    labels: np.ndarray


def divide(D: np.ndarray, split: Split, n_groups: int | None = None) -> Divided:
    """Divide the widest group until there are ``n_groups`` (default: one for each object).

    Parameters
    ----------
    D : ndarray (N, N)
        Dissimilarities.
    split : callable
        ``split(members)`` says which of the members (two at least) leave the group; some do, and some stay.

    Examples
    --------
    >>> D = np.abs(np.subtract.outer([0.0, 1.0, 9.0], [0.0, 1.0, 9.0]))
    >>> found = divide(D, lambda members: diana_split(D, members))
    >>> found.linkage
    array([[0., 1., 1., 2.],
           [2., 3., 9., 3.]])
    """
    N = len(D)
    wanted = N if n_groups is None else n_groups

    def entry(members: np.ndarray) -> tuple[float, int, np.ndarray]:
        width = float(D[np.ix_(members, members)].max()) if len(members) > 1 else -1.0
        return -width, int(members[0]), members

    heap = [entry(np.arange(N))]
    divisions: list[tuple[float, int, int]] = []  # width, smallest members of both sides
    while len(heap) < wanted:
        width, _, members = heapq.heappop(heap)
        leave = split(members)
        sides = members[~leave], members[leave]
        divisions.append((-width, int(sides[0][0]), int(sides[1][0])))
        for side in sides:
            heapq.heappush(heap, entry(side))
    groups = sorted((members for _, _, members in heap), key=lambda members: members[0])
    labels = np.empty(N, np.int64)
    for g, members in enumerate(groups):
        labels[members] = g
    return Divided(_linkage(divisions, labels, len(groups)), labels)


def _linkage(divisions: list[tuple[float, int, int]], labels: np.ndarray, n_groups: int) -> np.ndarray:
    """The divisions backwards are merges; heights do not fall, because a part is never wider than the whole."""
    node = np.arange(n_groups)  # of the tree so far that holds a group
    count = np.ones(2 * n_groups - 1)
    out = np.empty((n_groups - 1, 4))
    held: list[list[int]] = [[g] for g in range(n_groups)] + [[] for _ in range(n_groups - 1)]
    for t, (width, left, right) in enumerate(reversed(divisions)):
        i, j = sorted((int(node[labels[left]]), int(node[labels[right]])))
        count[n_groups + t] = count[i] + count[j]
        out[t] = i, j, width, count[n_groups + t]
        held[n_groups + t] = held[i] + held[j]
        node[held[n_groups + t]] = n_groups + t
        held[i] = held[j] = []
    return out


def diana_split(D: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Dissimilarity analysis (Macnaughton-Smith et al. 1964): a splinter group grows from the most distant member.

    A member's distance to its group is the mean over the *other* members. It moves while it is nearer to the splinter
    group than to its own, the one that gains most first; ties go to the first member.

    Examples
    --------
    >>> D = np.abs(np.subtract.outer([0.0, 1.0, 8.0, 9.0, 9.5], [0.0, 1.0, 8.0, 9.0, 9.5]))
    >>> diana_split(D, np.arange(5))
    array([ True,  True, False, False, False])
    """
    own = D[np.ix_(members, members)]
    n = len(members)
    leave = np.zeros(n, bool)
    to_group, to_splinters = own.sum(axis=1), np.zeros(n)
    i = int(to_group.argmax())
    while True:
        leave[i] = True
        to_group -= own[i]
        to_splinters += own[i]
        n_splinters = int(leave.sum())
        if n - n_splinters < 2:
            return leave
        gain = to_group / (n - n_splinters - 1) - to_splinters / n_splinters
        gain[leave] = -np.inf
        i = int(gain.argmax())
        if not gain[i] > 0.0:
            return leave


def medoid_split(D: np.ndarray, members: np.ndarray, max_iter: int = 50) -> np.ndarray:
    """Two medoids, from the most distant pair, by turns: members to the nearer medoid, medoids to the middle.

    Examples
    --------
    >>> D = np.abs(np.subtract.outer([0.0, 1.0, 8.0, 9.0, 9.5], [0.0, 1.0, 8.0, 9.0, 9.5]))
    >>> medoid_split(D, np.arange(5))
    array([False, False,  True,  True,  True])
    """
    own = D[np.ix_(members, members)]
    first, second = np.unravel_index(int(own.argmax()), own.shape)
    if first == second:  # all members are equal
        second = first + 1
    leave = np.zeros(len(members), bool)
    for _ in range(max_iter):
        before = first, second
        leave = own[:, second] < own[:, first]
        leave[second], leave[first] = True, False
        stay = np.flatnonzero(~leave)
        gone = np.flatnonzero(leave)
        first = stay[own[np.ix_(stay, stay)].sum(axis=1).argmin()]
        second = gone[own[np.ix_(gone, gone)].sum(axis=1).argmin()]
        if (first, second) == before:
            break
    return leave


def spanning_linkage(D: np.ndarray) -> np.ndarray:
    """Break the longest link of the minimum spanning tree, then the next, and so on: the tree of single linkage.

    Prim's algorithm in O(N^2); the order of equal links is that in which it finds them.

    Examples
    --------
    >>> D = np.abs(np.subtract.outer([0.0, 1.0, 9.0], [0.0, 1.0, 9.0]))
    >>> spanning_linkage(D)
    array([[0., 1., 1., 2.],
           [2., 3., 8., 3.]])
    """
    N = len(D)
    inside = np.zeros(N, bool)
    near, link = np.full(N, np.inf), np.zeros(N, np.int64)
    edges, i = [], 0
    for _ in range(N - 1):
        inside[i] = True
        closer = D[i] < near
        near[closer], link[closer] = D[i][closer], i
        i = int(np.where(inside, np.inf, near).argmin())
        edges.append((float(near[i]), int(link[i]), i))
    out, count = np.empty((N - 1, 4)), np.ones(2 * N - 1)
    owner = np.arange(2 * N - 1)

    def top(node: int) -> int:
        while owner[node] != node:
            owner[node] = owner[owner[node]]
            node = owner[node]
        return node

    for t, (length, a, b) in enumerate(sorted(edges, key=lambda edge: edge[0])):
        left, right = sorted((top(a), top(b)))
        owner[left] = owner[right] = N + t
        count[N + t] = count[left] + count[right]
        out[t] = left, right, length, count[N + t]
    return out
