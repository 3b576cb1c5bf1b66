"""Evidence accumulation as its paper defines it, on the N x N co-association matrix of single objects.

With holes: members that agree over members that saw both; for average link both are summed over all pairs of objects
first. Identical rows are joined first of all (their likeness is 1, the largest there is). Other ties: average and
complete link join the clusters that hold the smallest rows of labels, single link the smallest pair of rows.
"""

import numpy as np


def naive_eac(Y, link, member_weights=None):
    """Merges (by position in sorted order), their links, and the order of the rows."""
    order = np.lexsort(Y.T[::-1])
    Y = Y[order]
    power = np.ones(Y.shape[1]) if member_weights is None else np.asarray(member_weights, float)
    both = (Y[:, None] >= 0) & (Y[None, :] >= 0)
    agreed = (both & (Y[:, None] == Y[None, :])) @ power
    seen = both @ power
    first = np.array([int(np.argmax((Y == row).all(axis=1))) for row in Y])
    if link == "single":
        merges, links = _single(_ratio(agreed, seen), first)
    else:
        merges, links = _greedy(agreed, seen, first, link)
    return order, merges, links


def naive_cut(found, n_clusters):
    order, merges, _ = found
    labels = np.arange(len(order))
    for u, v in merges[: len(order) - n_clusters]:
        labels[labels == labels[v]] = labels[u]
    result = np.empty(len(order), int)
    result[order] = labels
    return result


def naive_lifetime(links):
    """The number of clusters, 2 or more, that lasts longest; of equal ones the smallest."""
    distances = [0.0, *(1 - np.array(links))]
    N = len(links) + 1
    lasts = {K: distances[N - K + 1] - distances[N - K] for K in range(2, N + 1)}
    longest = max(lasts.values())
    return min(K for K, time in lasts.items() if time > longest - 1e-12)


def _ratio(agreed, seen):
    return np.divide(agreed, seen, out=np.zeros_like(agreed), where=seen > 0)


def _single(likeness, first):
    i, j = np.triu_indices(len(likeness), 1)
    by_link = np.lexsort((j, i, first[i] != first[j], -likeness[i, j]))
    owner = np.arange(len(likeness))
    merges, links = [], []
    for a, b in zip(i[by_link], j[by_link]):
        if owner[a] != owner[b]:
            merges.append((a, b))
            links.append(likeness[a, b])
            owner[owner == owner[b]] = owner[a]
    return merges, links


def _greedy(agreed, seen, first, link):
    agreed, seen = agreed.copy(), seen.copy()
    likeness = _ratio(agreed, seen)
    alive = np.arange(len(agreed))
    merges, links = [], []
    while alive.size > 1:
        value = likeness[np.ix_(alive, alive)]
        value[np.tril_indices(alive.size)] = -1
        identical = np.triu(first[alive][:, None] == first[alive][None, :], 1)
        a, b = np.unravel_index(np.argmax(value + identical), value.shape)  # the first of the largest
        u, v = alive[a], alive[b]
        merges.append((u, v))
        links.append(value[a, b])
        agreed[u] += agreed[v]
        agreed[:, u] += agreed[:, v]
        seen[u] += seen[v]
        seen[:, u] += seen[:, v]
        if link == "average":
            likeness[u] = likeness[:, u] = _ratio(agreed[u], seen[u])
        else:
            likeness[u] = likeness[:, u] = np.minimum(likeness[u], likeness[v])
        alive = np.delete(alive, b)
    return merges, links
