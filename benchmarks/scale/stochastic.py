"""Variational Bayes with parameters after each part of a large table, beside other methods for large tables.

Many rows of 20 columns over planted clusters, Gaussian and categorical: K, agreement with the planted labels, and
CPU seconds of `Mixture` with `inference="vb"`, `"memoized"` and `"subclusters"`, which find K, and of scikit-learn's
`MiniBatchKMeans`, which is given K and one-hot columns where columns are categorical. An oracle knows how the table was
made. Each fit is a process of its own, on one thread. To save time, variational fits have one start (the default is
three) and sub-clusters run one chain of 30 iterations (the default are four chains, until they agree).
"""

from __future__ import annotations

from benchmarks.processes import in_own_process, stopwatch

METHODS = ("vb", "memoized", "subclusters", "minibatch_kmeans")
TABLES = ("gaussian", "categorical")
N_COLUMNS, N_CLUSTERS, N_LEVELS = 20, 20, 10
ONE_CHAIN = {"n_chains": 1, "burn_in": 20, "n_draws": 10}
LEAST_ARI = 0.99  # of that of the oracle
MOST_MB = 6000  # peak memory of a fit, the table included


def run(*, full: bool, repeats: int) -> dict:
    n_rows = 1_000_000 if full else 30_000
    runs = []
    for table in TABLES:
        for method in METHODS:
            one = in_own_process(fit, table=table, method=method, n_rows=n_rows)
            runs.append({"table": table, "method": method, **one})
            print(
                f"   {table}, {method}: K {one['n_clusters']} (planted {N_CLUSTERS}), ARI {one['ari']:.4f} (oracle "
                f"{one['ari_oracle']:.4f}), {one['cpu_s']:.1f} s of CPU, {one['n_iter']} iterations, peak "
                f"{one['peak_mb']:.0f} MB",
                flush=True,
            )
    ours = [one for one in runs if one["method"] == "memoized"]
    bars = {
        "memoized VB finds the planted K": all(one["n_clusters"] == N_CLUSTERS for one in ours),
        "and the planted labels as well as the oracle (0.99)": all(
            one["ari"] >= LEAST_ARI * one["ari_oracle"] for one in ours
        ),
        "every fit takes less than 6 GB": all(one["peak_mb"] < MOST_MB for one in runs),
    }
    size = {"n_rows": n_rows, "n_columns": N_COLUMNS, "n_clusters": N_CLUSTERS, "n_levels": N_LEVELS}
    summary = {table: {one["method"]: one for one in runs if one["table"] == table} for table in TABLES}
    return {"size": size, "repeats": 1, "summary": summary, "bars": bars if full else {}}


# ---- in a process of its own -----------------------------------------------------------------------------------


def load(table: str, n_rows: int):
    """Rows, planted labels, and the labels of an oracle."""
    import numpy as np

    rng = np.random.default_rng(0)
    z = rng.choice(N_CLUSTERS, size=n_rows, p=rng.dirichlet(np.full(N_CLUSTERS, 5.0)))
    if table == "categorical":
        p = rng.dirichlet(np.full(N_LEVELS, 0.5), size=(N_CLUSTERS, N_COLUMNS))
        X = np.empty((n_rows, N_COLUMNS), np.int8)
        for k in range(N_CLUSTERS):
            own = np.flatnonzero(z == k)
            for d in range(N_COLUMNS):
                X[own, d] = rng.choice(N_LEVELS, size=len(own), p=p[k, d])
        log_p = np.log(np.maximum(p, 1e-300))
        scores = np.log(np.bincount(z, minlength=N_CLUSTERS))[None] + sum(
            log_p[:, d, X[:, d]].T for d in range(N_COLUMNS)
        )
        return X, z, scores.argmax(axis=1)
    centers = 2.0 * rng.normal(size=(N_CLUSTERS, N_COLUMNS))
    X = centers[z] + rng.normal(size=(n_rows, N_COLUMNS))
    scores = np.log(np.bincount(z, minlength=N_CLUSTERS)) + X @ centers.T - 0.5 * (centers**2).sum(axis=1)
    return X, z, scores.argmax(axis=1)


def fit(table: str, method: str, n_rows: int) -> dict:
    """One fit."""
    import warnings

    import numpy as np

    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    X, planted, oracle = load(table, n_rows)
    if method == "minibatch_kmeans":
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.preprocessing import OneHotEncoder

        with stopwatch() as watch:
            given = OneHotEncoder(dtype=np.float32).fit_transform(X) if table == "categorical" else X
            model = MiniBatchKMeans(N_CLUSTERS, random_state=0, n_init=3).fit(given)
        n_clusters = len(np.unique(model.labels_))
    else:
        from partita import Mixture

        options = {
            "inference": method,
            "random_state": 0,
            "kinds": "categorical" if table == "categorical" else None,
            **(ONE_CHAIN if method == "subclusters" else {"n_init": 1}),
        }
        Mixture(**options).fit(X[:300])  # compiled code is loaded here
        with stopwatch() as watch:
            model = Mixture(**options).fit(X)
        n_clusters = model.n_clusters_
    return {
        "n_clusters": int(n_clusters),
        "ari": round(float(adjusted_rand(planted, model.labels_)), 4),
        "ari_oracle": round(float(adjusted_rand(planted, oracle)), 4),
        "cpu_s": round(watch["cpu_s"], 2),
        "n_iter": int(model.n_iter_),
        "bound": float(getattr(model, "lower_bound_", np.nan)) / n_rows
        if method in ("vb", "memoized")
        else None,
    }
