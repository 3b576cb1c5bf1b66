"""Planted surveys: answers on a scale read as ordered levels, as categories, as real numbers, and by default.

Groups differ in their mean on a latent scale of each question, with normal answers of deviation 1 around it; a question
turns the scale into 4, 5 or 7 levels at cuts of its own, so that answers are skewed. A third of the questions do not
depend on the group, and one answer in twenty is missing. The oracle labels each row by the true parameters. All fits
are `Mixture` with the same number of chains and draws; "real" has full covariance (its default), "independent"
reads real numbers with independent columns, and "inferred" declares nothing.

Two more sets show what the default decides. In "one_scale" all questions have five levels, in "codes" five names are
coded as 1 to 5, with probabilities of their own in each group: there the order means nothing, and the default must not
use it.
"""

from __future__ import annotations

import numpy as np

from benchmarks.processes import stopwatch
from benchmarks.record import spread

N_SEEDS = 12
SETS = {
    "few_rows": {"n_rows": 250, "n_questions": 12, "n_groups": 3, "separation": 1.1},
    "more_rows": {"n_rows": 800, "n_questions": 15, "n_groups": 5, "separation": 1.1},
    "one_scale": {"n_rows": 400, "n_questions": 12, "n_groups": 4, "separation": 1.1, "levels": (5,)},
    "codes": {"n_rows": 400, "n_questions": 12, "n_groups": 4, "separation": 0.0, "levels": (5,)},
}
DECIDED = ("one_scale", "codes")  # sets that show what the default decides
METHODS = {
    "ordinal": {"kinds": "ordinal"},
    "categorical": {"kinds": "categorical"},
    "real": {"kinds": "real"},
    "independent": {"kinds": "real", "family": "gaussian"},
    "inferred": {},
}
CHAINS = {"n_chains": 2, "n_draws": 60, "burn_in": 60}


def run(*, full: bool, repeats: int) -> dict:
    sets = SETS if full else {"few_rows": SETS["few_rows"]}
    n_seeds = N_SEEDS if full else 2
    runs: dict[str, dict[str, list[dict]]] = {}
    for method in METHODS:
        fit(method, SETS["few_rows"] | {"n_rows": 60}, seed=0)  # compiled code is loaded here
    for name, planted in sets.items():
        methods = ("ordinal", "categorical", "inferred") if name in DECIDED else tuple(METHODS)
        runs[name] = {method: [] for method in methods}
        for seed in range(n_seeds):
            for method in methods:
                one = fit(method, planted, seed)
                runs[name][method].append(one)
                print(
                    f"   {name:9} {method:11} seed {seed}: K = {one['n_clusters']}, ARI {one['ari']:.3f} "
                    f"(oracle {one['oracle_ari']:.3f}), {one['n_ordinal']} ordinal, {one['cpu_s']:.1f} s of CPU",
                    flush=True,
                )
    summary = {
        name: {method: _summary(found, methods["ordinal"]) for method, found in methods.items()}
        for name, methods in runs.items()
    }
    bars = {
        f"{name}: ordinal ahead of {method} by two standard errors": found["ahead"] > 2 * found["ahead_se"]
        for name, methods in summary.items()
        for method, found in methods.items()
        if method not in ("ordinal", "inferred") and name not in DECIDED
    }
    for name in set(DECIDED) & set(summary):
        best = max(summary[name]["ordinal"]["mean_ari"], summary[name]["categorical"]["mean_ari"])
        bars[f"{name}: the default is at most .02 below the better reading"] = (
            summary[name]["inferred"]["mean_ari"] > best - 0.02
        )
    return {"sets": sets, "n_seeds": n_seeds, "runs": runs, "summary": summary, "bars": bars if full else {}}


def _summary(found: list[dict], ordinal: list[dict]) -> dict:
    ahead = np.array([best["ari"] - one["ari"] for best, one in zip(ordinal, found, strict=True)])
    return {
        **{key: spread([one[key] for one in found]) for key in ("n_clusters", "ari", "oracle_ari", "cpu_s")},
        "mean_ordinal_columns": round(float(np.mean([one["n_ordinal"] for one in found])), 2),
        "mean_ari": round(float(np.mean([one["ari"] for one in found])), 4),
        "mean_oracle_ari": round(float(np.mean([one["oracle_ari"] for one in found])), 4),
        "ahead": round(float(ahead.mean()), 4),  # of the ordinal reading over this one, paired by seed
        "ahead_se": round(float(ahead.std(ddof=1) / np.sqrt(len(ahead))), 4),
    }


def fit(method: str, planted: dict, seed: int) -> dict:
    """Fit one reading of the answers to one planted survey."""
    import warnings

    from partita import Mixture
    from partita.metrics import adjusted_rand

    X, labels, oracle = make_survey(**planted, seed=seed)
    with warnings.catch_warnings(), stopwatch() as watch:
        warnings.simplefilter("ignore")
        frame = {f"q{d + 1}": X[:, d] for d in range(X.shape[1])}
        model = Mixture(**METHODS[method], **CHAINS, random_state=seed).fit(frame)
    return {
        "n_clusters": int(model.n_clusters_),
        "n_ordinal": model.schema_.kinds.count("ordinal"),
        "ari": float(adjusted_rand(model.labels_, labels)),
        "oracle_ari": float(adjusted_rand(oracle, labels)),
        "cpu_s": watch["cpu_s"],
    }


def make_survey(
    n_rows: int,
    n_questions: int,
    n_groups: int,
    separation: float,
    seed: int,
    missing: float = 0.05,
    levels: tuple[int, ...] = (4, 5, 7),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers (whole numbers, NaN where missing), groups, and the most probable groups under the true parameters.

    With a separation of zero the answers are codes of names.
    """
    from scipy.stats import norm

    rng = np.random.default_rng([seed, n_rows, n_questions])
    shares = rng.dirichlet(np.full(n_groups, 5.0))
    labels = rng.choice(n_groups, size=n_rows, p=shares)
    means = rng.normal(scale=separation, size=(n_groups, n_questions))
    means[:, : n_questions // 3] = 0.0
    X, log_joint = np.empty((n_rows, n_questions)), np.tile(np.log(shares), (n_rows, 1))
    absent = rng.random(X.shape) < missing
    for d in range(n_questions):
        n_levels = rng.choice(levels)
        if separation == 0.0:
            p = rng.dirichlet(np.full(n_levels, 1.0), size=n_groups).T  # [level, group]
        else:
            cuts = np.sort(rng.normal(scale=1.0, size=n_levels - 1) + rng.normal(scale=0.7))
            ends = np.concatenate([[-np.inf], cuts, [np.inf]])
            p = np.diff(norm.cdf(ends[:, None] - means[:, d]), axis=0)
        X[:, d] = (rng.random(n_rows) > p.cumsum(axis=0)[:, labels]).sum(axis=0).clip(0, n_levels - 1)
        log_p = np.log(p + 1e-300)
        log_joint += np.where(absent[:, [d]], 0.0, log_p[X[:, d].astype(int)])
    X[absent] = np.nan
    return X + 1.0, labels, log_joint.argmax(axis=1)
