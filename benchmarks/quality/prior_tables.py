"""Calibration of the number of groups on tables of real columns that are drawn from the model's own prior.

The partition is drawn from the default prior of chains, means and covariances from the normal-inverse-Wishart prior,
with hyper-parameters from their hyperprior where the fit learns them, and at their defaults where it holds them. A
calibrated posterior has E[K] - K = 0 on average, P(K = 1) near 1 where K = 1 more often than not, and among pairs of
rows that are said to be together with probability p, a share p that are.

The fit either sees the tables in the units in which they were drawn (the option ``standardize``), as by a user who
knows how wide groups are and where they lie, or each column in a unit of its own. Then `Mixture` divides columns by
their deviation, of which the distances between the clusters are a part, and measures from their mean, so it does not
see the units in which the prior was stated.

How much of this is due to the mean alone is computed without any sampler, by enumeration of the partitions of small
tables with known hyper-parameters.
"""

from __future__ import annotations

import math
import statistics

from benchmarks.processes import in_own_process

N_TABLES, SMALL = 60, 12
CASES = {  # whether hyper-parameters are learned, and whether the fit sees the units in which the table was drawn
    "learned": (True, False),
    "learned_in_units": (True, True),
    "fixed": (False, False),
    "fixed_in_units": (False, True),
}
STEPS_OFF = {"lumps": False, "powers": False, "ties": False, "signal": False}
SHAPES = ((60, 2), (120, 2), (120, 4), (200, 3))  # rows, columns
N_BINS = 10
N_ENUMERATED, SMALL_ENUMERATED, N_ROWS = 3000, 200, 7  # tables, and rows of each
ORIGINS = ("given", "own_mean")  # what rows are measured from


def run(*, full: bool, repeats: int) -> dict:
    found = {}
    for name in CASES:
        found[name] = in_own_process(calibrate, n_tables=N_TABLES if full else SMALL, case=name)
        print(
            f"   {name}, {found[name]['n_tables']} tables: E[K] - K {found[name]['excess']:+.3f} "
            f"(se {found[name]['excess_se']:.3f}), P(K = 1) where K = 1 {found[name]['p_one']:.3f} "
            f"({found[name]['n_one']} tables), calibration error of pairs {found[name]['pair_error']:.4f}",
            flush=True,
        )
    exact = in_own_process(enumerate_tables, n_tables=N_ENUMERATED if full else SMALL_ENUMERATED, n_columns=2)
    for name in ORIGINS:
        print(f"   exact, rows measured from the {name}: {exact[name]}", flush=True)
    return {"summary": found, "exact": {name: exact[name] for name in ORIGINS}}


# ---- in a process of its own -----------------------------------------------------------------------------------


def calibrate(n_tables: int, case: str) -> dict:
    """Fit tables drawn from the prior and compare posteriors with what was drawn."""
    import warnings

    import numpy as np

    from partita import Mixture

    warnings.simplefilter("ignore")
    excess, ones = [], []
    together = np.zeros((2, N_BINS))
    p_sums = np.zeros(N_BINS)
    for number in range(n_tables):
        rng = np.random.default_rng([7, number])
        learn, in_units = CASES[case]
        X, z = draw_table(rng, *SHAPES[number % len(SHAPES)], hyper=learn, in_units=in_units)
        family = {"real": ("gaussian_full", {"standardize": False}) if in_units else ("auto", STEPS_OFF)}
        model = Mixture(family, learn_hyper=learn, n_draws=100, burn_in=100, random_state=number).fit(X)
        K = int(z.max()) + 1
        excess.append(sum(k * p for k, p in model.n_clusters_posterior_.items()) - K)
        if K == 1:
            ones.append(model.n_clusters_posterior_.get(1, 0.0))
        i, j = np.triu_indices(len(z), 1)
        some = rng.choice(len(i), size=min(len(i), 2000), replace=False)
        i, j = i[some], j[some]
        p = np.mean([draw[i] == draw[j] for draw in model.trace_.labels[::4]], axis=0)
        bins = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
        together[0] += np.bincount(bins, minlength=N_BINS)
        together[1] += np.bincount(bins, z[i] == z[j], N_BINS)
        p_sums += np.bincount(bins, p, N_BINS)
    used = together[0] > 0
    gaps = np.abs(together[1][used] - p_sums[used])
    return {
        "n_tables": n_tables,
        "excess": round(statistics.mean(excess), 4),
        "excess_se": round(statistics.stdev(excess) / math.sqrt(n_tables), 4),
        "p_one": round(statistics.mean(ones), 4) if ones else math.nan,
        "n_one": len(ones),
        "pair_error": round(float(gaps.sum() / together[0].sum()), 4),
    }


def enumerate_tables(n_tables: int, n_columns: int) -> dict:
    """The exact posterior of K in small tables from the prior, with rows measured from its location or their mean."""
    import numpy as np
    from scipy.special import logsumexp

    from partita.families import GaussianFull
    from partita.families.rows import log_marginals
    from partita.fitting.chains import resolve_sampling_prior
    from partita.labels import set_partitions
    from partita.partitions import bind, log_eppf

    prior = bind(resolve_sampling_prior("auto", None, None, None), N_ROWS)
    family, low = GaussianFull.default(n_columns), np.tril_indices(n_columns)
    labels = np.array(list(set_partitions(N_ROWS)))
    K = labels.max(axis=1) + 1
    log_prior = np.array([log_eppf(prior, np.bincount(z).astype(float), z.max() + 1) for z in labels])
    powers = 1 << np.arange(N_ROWS)
    members = np.arange(2**N_ROWS)[:, None] & powers > 0  # of every set of rows
    clusters = np.stack([(labels == k) @ powers for k in range(N_ROWS)], axis=1)
    rng = np.random.default_rng(11)
    excess: dict[str, list[float]] = {name: [] for name in ORIGINS}
    ones: dict[str, list[float]] = {name: [] for name in ORIGINS}
    for _ in range(n_tables):
        X, z = draw_table(rng, N_ROWS, n_columns, hyper=False, in_units=True)
        for name, Y in zip(ORIGINS, (X, X - X.mean(axis=0))):
            T = np.column_stack([np.ones(N_ROWS), Y, Y[:, low[0]] * Y[:, low[1]]])
            evidence = log_marginals(family, np.ascontiguousarray((members @ T).T)).sum(axis=0)
            evidence[0] = 0.0  # of the empty set
            log_joint = log_prior + evidence[clusters].sum(axis=1)
            p = np.exp(log_joint - logsumexp(log_joint))
            excess[name].append(float(p @ K) - (int(z.max()) + 1))
            if z.max() == 0:
                ones[name].append(float(p[K == 1].sum()))
    return {
        name: {
            "n_tables": n_tables,
            "excess": round(statistics.mean(excess[name]), 4),
            "excess_se": round(statistics.stdev(excess[name]) / math.sqrt(n_tables), 4),
            "p_one": round(statistics.mean(ones[name]), 4),
            "n_one": len(ones[name]),
        }
        for name in ORIGINS
    }


def draw_table(rng, n_rows: int, n_columns: int, *, hyper: bool, in_units: bool):
    """A table and its partition from the priors, each column in a unit of its own unless ``in_units``.

    With ``hyper``, the hyper-parameters are drawn too.
    """
    import numpy as np

    from benchmarks.quality.calibration_models import draw_family
    from partita.families import GaussianFull
    from partita.families.contract import draw, simulate
    from partita.fitting.chains import resolve_sampling_prior
    from partita.labels import canonical
    from partita.partitions import bind
    from partita.partitions import simulate as simulate_partition

    family = GaussianFull.default(n_columns)
    if hyper:
        family = draw_family(family, rng)
    prior = bind(resolve_sampling_prior("auto", None, None, None), n_rows)
    z = canonical(simulate_partition(prior, n_rows, rng))
    S = np.zeros((1 + n_columns + n_columns * (n_columns + 1) // 2, int(z.max()) + 1))
    X = simulate(family, draw(family, S, rng), z, rng)
    if in_units:
        return X, z
    return X * np.exp(rng.normal(0.0, 3.0, n_columns)) + rng.normal(0.0, 100.0, n_columns), z
