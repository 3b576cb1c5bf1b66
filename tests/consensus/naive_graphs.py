"""The definitions of Strehl and Ghosh, Fern and Brodley, and Huang, object by object."""

from itertools import product

import numpy as np


def naive_coassociation(Y, member_weights):
    """Weight of the members that agree on two objects over that of those that saw both; 0 on the diagonal."""
    N = len(Y)
    C = np.zeros((N, N))
    for i, j in product(range(N), repeat=2):
        both = [m for m in range(Y.shape[1]) if Y[i, m] >= 0 and Y[j, m] >= 0]
        if i != j and both:
            C[i, j] = sum(member_weights[m] for m in both if Y[i, m] == Y[j, m]) / sum(
                member_weights[m] for m in both
            )
    return C


def naive_cut(C, labels):
    return sum(C[i, j] for i in range(len(C)) for j in range(i) if labels[i] != labels[j])


def clusters_of(Y):
    """The sets of objects, member by member."""
    return [
        set(np.flatnonzero(Y[:, m] == level)) for m in range(Y.shape[1]) for level in range(Y[:, m].max() + 1)
    ]


def broken(clusters, labels):
    """Clusters whose objects are in more than one part."""
    return sum(len({labels[i] for i in cluster}) > 1 for cluster in clusters)


def naive_jaccard(clusters):
    return np.array([[len(a & b) / len(a | b) if a is not b else 0.0 for b in clusters] for a in clusters])


def naive_association(clusters, groups, N):
    """Mean indicator vector of the clusters of each group (objects x groups)."""
    return np.array([[np.mean([i in clusters[c] for c in group]) for group in groups] for i in range(N)])


def even_bipartitions(n, largest):
    """All ways to cut n things in two parts of at most `largest`."""
    for rest in product([0, 1], repeat=n - 1):
        labels = np.array([0, *rest])
        if max(labels.sum(), n - labels.sum()) <= largest:
            yield labels


def naive_bipartite_vectors(Y, n_vectors):
    """Unit rows of the leading eigenvectors of the normalized (objects + clusters) graph."""
    A = np.array([[i in cluster for cluster in clusters_of(Y)] for i in range(len(Y))], float)
    N, L = A.shape
    W = np.block([[np.zeros((N, N)), A], [A.T, np.zeros((L, L))]])
    d = 1 / np.sqrt(W.sum(axis=1))
    values, vectors = np.linalg.eigh(d[:, None] * W * d)
    vectors = vectors[:, np.argsort(-values)[:n_vectors]]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def naive_locally_weighted(Y, entropy_scale):
    """Gains and members in common of all pairs, and the weights of the clusters, as Huang writes them."""
    N, M = Y.shape
    weights = []
    for m in range(M):
        row = []
        for level in range(Y[:, m].max() + 1):
            entropies = []
            for other in range(M):
                labels = [Y[i, other] for i in range(N) if Y[i, m] == level and Y[i, other] >= 0]
                shares = [labels.count(k) / len(labels) for k in set(labels)]
                if labels:
                    entropies.append(-sum(p * np.log2(p) for p in shares))
            row.append(np.exp(-np.mean(entropies) / entropy_scale))
        weights.append(row)
    agreed, seen = np.zeros((N, N)), np.zeros((N, N))
    for i, j in product(range(N), repeat=2):
        for m in range(M):
            if Y[i, m] >= 0 and Y[j, m] >= 0:
                seen[i, j] += 1
                agreed[i, j] += weights[m][Y[i, m]] if Y[i, m] == Y[j, m] else 0
    return agreed, seen, np.concatenate(weights)


def pooled(agreed, seen):
    return agreed.sum() / seen.sum() if seen.sum() else 0.0


def naive_modularity(A, rows, columns):
    """Barber (2007): the sum over pairs of one part of the edges less what is expected of their degrees."""
    m = A.sum()
    return (
        sum(
            A[i, j] - A[i].sum() * A[:, j].sum() / m
            for i in range(len(A))
            for j in range(A.shape[1])
            if rows[i] == columns[j]
        )
        / m
    )
