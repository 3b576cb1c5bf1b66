"""Slow and plain versions of the divisive trees and linkages, straight from the definitions."""

import itertools

import numpy as np


def diana_division(D, members):
    """Who leaves, by (25.52) to (25.54) with means over the other members."""
    stay, gone = list(members), []

    def mean(i, group):
        others = [j for j in group if j != i]
        return np.mean([D[i, j] for j in others])

    first = max(stay, key=lambda i: (mean(i, stay), -i))
    stay.remove(first)
    gone.append(first)
    while len(stay) > 1:
        gains = {i: mean(i, stay) - mean(i, gone) for i in stay}
        best = max(stay, key=lambda i: (gains[i], -i))
        if gains[best] <= 1e-12:
            break
        stay.remove(best)
        gone.append(best)
    return frozenset(stay), frozenset(gone)


def diana(D):
    """All divisions, the widest group first, as pairs of sets with the diameter."""

    def width(group):
        return max((D[i, j] for i, j in itertools.combinations(group, 2)), default=-1.0)

    groups, out = [frozenset(range(len(D)))], []
    while len(groups) < len(D):
        widest = max(groups, key=width)
        stay, gone = diana_division(D, sorted(widest))
        out.append(({stay, gone}, width(widest)))
        groups = [g for g in groups if g != widest] + [stay, gone]
    return out


def agglomerate(D, link):
    """All merges, as pairs of sets with the height."""
    join = {"single": np.min, "complete": np.max, "average": np.mean}[link]
    groups, out = [frozenset([i]) for i in range(len(D))], []
    while len(groups) > 1:
        a, b = min(
            itertools.combinations(groups, 2),
            key=lambda pair: join(D[np.ix_(sorted(pair[0]), sorted(pair[1]))]),
        )
        out.append(({a, b}, join(D[np.ix_(sorted(a), sorted(b))])))
        groups = [g for g in groups if g not in (a, b)] + [a | b]
    return out


def merges_of(linkage):
    """A linkage matrix as pairs of sets with the heights."""
    n = len(linkage) + 1
    sets, out = [frozenset([i]) for i in range(n)], []
    for i, j, height, count in linkage:
        out.append(({sets[int(i)], sets[int(j)]}, height))
        sets.append(sets[int(i)] | sets[int(j)])
        assert len(sets[-1]) == count
    return out
