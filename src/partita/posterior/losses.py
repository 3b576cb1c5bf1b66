"""Losses between partitions, all of them functions of the contingency table.

For an estimate c and a partition z of n objects every loss here is made of three sums over counts: ``S_c`` over the
sizes of c, ``S_z`` over those of z and ``S_cz`` over the cells of their table, of ``x log2 x`` (information) or
``x * x`` (pairs). Entropies are ``H = log2 n - S / n``.

====================  =============================================================================================
``"vi"``              ``a H(c|z) + (2 - a) H(z|c)`` in bits: the variation of information at a = 1
``"binder"``          ``2 / n^2`` times the sum over pairs of a (together in z, apart in c) + 2 - a (the reverse)
``"nvi"``             variation of information over the joint entropy: ``2 - (H(c) + H(z)) / H(c, z)``
``"nid"``             normalized information distance: ``1 - I(c; z) / max(H(c), H(z))``
====================  =============================================================================================

The parameter ``a`` (between 0 and 2) is the cost of separating two objects that belong together, and ``2 - a`` that of
joining two that do not: the larger, the fewer clusters.

References
----------
Binder (1978), Biometrika 65; Meila (2007), J. Multivariate Analysis 98; Vinh, Epps and Bailey (2010), JMLR 11; Wade and
Ghahramani (2018), Bayesian Analysis 13; Dahl, Johnson and Mueller (2022), J. Computational and Graphical Statistics 31.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.dispatch import kernel
from partita.posterior.draws import Draws, canonical_draws, check_partition, gather

VI, BINDER, NVI, NID = range(4)
LOSSES = {"vi": VI, "binder": BINDER, "nvi": NVI, "nid": NID}


class Loss(NamedTuple):
    """A loss as the kernels read it."""

    kind: int
    a: float

    @property
    def additive(self) -> bool:
        """Whether it is a sum over cells, so that objects that no draw separates may be moved together."""
        return self.kind in (VI, BINDER)


def make_loss(name: str, a: float = 1.0) -> Loss:
    """A checked loss by its name in `LOSSES`.

    Examples
    --------
    >>> make_loss("vi", 0.5)
    Loss(kind=0, a=0.5)
    >>> make_loss("rand")
    Traceback (most recent call last):
    ...
    ValueError: no loss is called 'rand': use vi, binder, nvi or nid
    """
    if name not in LOSSES:
        raise ValueError(f"no loss is called {name!r}: use vi, binder, nvi or nid")
    loss = Loss(LOSSES[name], float(a))
    if not 0.0 <= loss.a <= 2.0:
        raise ValueError(
            f"a is {a}: the cost of separating two objects that belong together must lie between 0 and 2"
        )
    if not loss.additive and loss.a != 1.0:
        raise ValueError(f"a is {a}, but {name} has no such parameter: use vi or binder, or leave a at 1")
    return loss


def counting_table(loss: Loss, n: int) -> NDArray[np.float64]:
    """The function of the counts 0..n that a loss sums: ``x log2 x`` or ``x * x``.

    Examples
    --------
    >>> counting_table(make_loss("vi"), 4).tolist() == [0, 0, 2, 3 * math.log2(3), 8]
    True
    """
    x = np.arange(n + 1, dtype=np.float64)
    return x * x if loss.kind == BINDER else x * np.log2(np.maximum(x, 1.0))


@kernel
def distance(kind, a, S_c, S_z, S_cz, n):
    """The loss from its three sums."""
    if kind == VI:
        return (a * (S_z - S_cz) + (2.0 - a) * (S_c - S_cz)) / n
    if kind == BINDER:
        return (a * (S_z - S_cz) + (2.0 - a) * (S_c - S_cz)) / (n * n)
    log_n = math.log2(n)
    H_c, H_z, H_cz = log_n - S_c / n, log_n - S_z / n, log_n - S_cz / n
    if kind == NVI:
        return 2.0 - (H_c + H_z) / H_cz if H_cz > 1e-12 else 0.0
    most = max(H_c, H_z)
    return 1.0 - (H_c + H_z - H_cz) / most if most > 1e-12 else 0.0


@kernel
def cross_losses(kind, a, first, second, K_first, K_second, weights, table, out):
    """Losses of the rows of `first` (estimates) against the rows of `second`; `weights` count the objects."""
    P, U = first.shape
    T = second.shape[0]
    n = 0
    for i in range(U):
        n += weights[i]
    cells = np.zeros((K_first, K_second), dtype=np.int64)
    rows, columns = np.zeros(K_first, dtype=np.int64), np.zeros(K_second, dtype=np.int64)
    for p in range(P):
        for b in range(T):
            for i in range(U):
                cells[first[p, i], second[b, i]] += weights[i]
            S_c, S_z, S_cz = 0.0, 0.0, 0.0
            for k in range(K_first):
                for l in range(K_second):
                    count = cells[k, l]
                    if count > 0:
                        S_cz += table[count]
                        rows[k] += count
                        columns[l] += count
                        cells[k, l] = 0
                S_c += table[rows[k]]
                rows[k] = 0
            for l in range(K_second):
                S_z += table[columns[l]]
                columns[l] = 0
            # rounding may give a value slightly below 0 for equal partitions
            out[p, b] = max(distance(kind, a, S_c, S_z, S_cz, float(n)), 0.0)


def losses_between(loss: Loss, partitions: NDArray[Any], draws: Draws) -> NDArray[np.float64]:
    """Losses [partition, draw] of partitions of the *groups* of the draws."""
    out = np.empty((len(partitions), len(draws.labels)))
    table = counting_table(loss, draws.n_objects)
    counts = [int(labels.max(initial=0)) + 1 for labels in (partitions, draws.labels)]
    cross_losses(loss.kind, loss.a, partitions, draws.labels, *counts, draws.group_weights, table, out)
    return out


def loss_matrix(
    partitions: ArrayLike, draws: ArrayLike, loss: str = "vi", *, a: float = 1.0
) -> NDArray[np.float64]:
    """Loss of each partition (rows, as estimates) against each draw (columns, as truths).

    Parameters
    ----------
    partitions : array-like of int, shape (P, N)
        Label vectors.
    draws : array-like of int, shape (T, N)
        Label vectors.
    loss : {"vi", "binder", "nvi", "nid"}, default="vi"
        Formulas at the top of this module.
    a : float, default=1.0
        Cost of separating two objects that belong together, between 0 and 2; for "vi" and "binder".

    Returns
    -------
    ndarray, shape (P, T)

    Examples
    --------
    >>> loss_matrix([[0, 0, 1, 1]], [[0, 0, 1, 1], [0, 1, 2, 2]]).tolist()
    [[0.0, 0.5]]
    """
    estimates, truths = canonical_draws(partitions), canonical_draws(draws)
    if estimates.shape[1] != truths.shape[1]:
        raise ValueError(
            f"partitions label {estimates.shape[1]} objects and draws {truths.shape[1]}: they must be the same"
        )
    T, N = truths.shape
    plain = Draws(truths, np.full(T, 1.0 / T), np.ones(N, np.int64), np.arange(N), np.arange(T))
    return losses_between(make_loss(loss, a), estimates, plain)


def expected_loss(
    partition: ArrayLike,
    draws: ArrayLike,
    loss: str = "vi",
    *,
    a: float = 1.0,
    weights: ArrayLike | None = None,
) -> float:
    """Posterior expected loss of one partition: the mean over the draws.

    Parameters
    ----------
    partition : array-like of int, shape (N,)
        The estimate.
    draws : array-like of int, shape (T, N)
        Label vectors from the posterior.
    loss, a
        As for `loss_matrix`.
    weights : array-like of float, shape (T,), default=None
        Weight of each draw, for example importance weights.

    Returns
    -------
    float

    Examples
    --------
    >>> expected_loss([0, 0, 1, 1], [[0, 0, 1, 1], [0, 1, 2, 2]])
    0.25
    """
    found = gather(draws, weights)
    estimate = check_partition(partition, found.n_objects)
    return float(losses_between(make_loss(loss, a), estimate[None], found)[0] @ found.weights)
