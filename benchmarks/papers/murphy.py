"""Murphy's figures 25.7 and 25.8: draws and P(K) of a Dirichlet-process mixture, and how fast it converges.

The points of the book are not published, so these are drawn from a mixture of the same kind: four Gaussians in the
plane. Figure 25.7: 100 points, one chain that starts from one cluster, its draws after 50, 100 and 200 iterations, and
P(K) of draws 51 to 200. Figure 25.8: 300 points, collapsed Gibbs sweeps only (no split-merge moves, fixed
hyper-parameters) for a Dirichlet process and for a finite mixture with the true K = 4, from the same random labels, and
the Dirichlet process with the split-merge moves of partita's chains. The log probability is that of the points given
the labels, with parameters integrated out, so it can be compared between the two priors. A start has arrived when its
log probability is within five nats of that of the planted labels.

The pictures are written to docs/images (with --full) or benchmarks/out; without matplotlib only the numbers are
written.
"""

from __future__ import annotations

import importlib.util

from benchmarks.processes import ROOT, in_own_process

N_CLUSTERS, SEPARATION, DATA_SEED = 4, 4.0, 2
N_DRAWS, BURN_IN, SHOWN = 200, 50, (50, 100, 200)
NEAR = 5.0  # nats
SAMPLERS = {
    "dp": "Dirichlet process",
    "finite": "finite, K = 4",
    "dp_split_merge": "Dirichlet process, split-merge",
}


def run(*, full: bool, repeats: int) -> dict:
    folder = ROOT / ("docs/images" if full else "benchmarks/out")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = in_own_process(sample_posterior, folder=str(folder))
    print(
        f"   P(K): {', '.join(f'{K}: {p:.2f}' for K, p in drawn['n_clusters_posterior'].items())}", flush=True
    )
    climb = in_own_process(
        climb_from_starts, folder=str(folder), n_starts=100 if full else 20, n_sweeps=100 if full else 40
    )
    for name, found in climb["samplers"].items():
        print(f"   {SAMPLERS[name]}: {found['arrived']} of {climb['n_starts']} starts arrive", flush=True)
    dp, finite = (climb["samplers"][name] for name in ("dp", "finite"))
    last = climb["n_sweeps"] + 1  # stands for "never"
    bars = {
        "as many starts of the Dirichlet process arrive as of the finite mixture": dp["arrived"]
        >= finite["arrived"],
        "and half of them no later": (dp["sweeps_until_half_arrived"] or last)
        <= (finite["sweeps_until_half_arrived"] or last),
    }
    return {"summary": {"figure_25_7": drawn, "figure_25_8": climb}, "bars": bars if full else {}}


# ---- in processes of their own ---------------------------------------------------------------------------------


def make_points(n_rows: int):
    from partita.datasets import make_gaussian_clusters

    return make_gaussian_clusters(n_rows, 2, N_CLUSTERS, SEPARATION, random_state=DATA_SEED)


def sample_posterior(folder: str) -> dict:
    """Figure 25.7."""
    import warnings

    import numpy as np

    from partita import DPGaussian
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")  # one short chain is not to be trusted, and says so
    data = make_points(100)
    options = {"n_chains": 1, "concentration": 1.0, "init": np.zeros(100, int), "random_state": 0}
    draws = DPGaussian(burn_in=0, n_draws=N_DRAWS, **options).fit(data.X).trace_.labels
    later = DPGaussian(burn_in=BURN_IN, n_draws=N_DRAWS - BURN_IN, **options).fit(data.X)
    if importlib.util.find_spec("matplotlib"):
        draw_posterior(data.X, {t: draws[t - 1] for t in SHOWN}, later, f"{folder}/murphy_25_7.png")
    shares = later.n_clusters_posterior_
    mode = max(shares, key=lambda K: shares[K])
    return {
        "n_clusters_posterior": {str(K): p for K, p in shares.items()},
        "mode": mode,
        "mode_share": shares[mode],
        "planted_share": shares.get(N_CLUSTERS, 0.0),
        "rand": {str(t): adjusted_rand(draws[t - 1], data.labels) for t in SHOWN},
        "oracle_rand": adjusted_rand(data.oracle, data.labels),
    }


def climb_from_starts(folder: str, n_starts: int, n_sweeps: int) -> dict:
    """Figure 25.8."""
    import numpy as np

    from partita.partitions import DirichletProcess, FiniteDirichlet

    data = make_points(300)
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    priors = (DirichletProcess(1.0), FiniteDirichlet(float(N_CLUSTERS), N_CLUSTERS), DirichletProcess(1.0))
    starts = np.random.default_rng(0).integers(N_CLUSTERS, size=(n_starts, len(X)))
    curves = {
        name: np.array([climb(X, prior, z, n_sweeps, seed, n_moves) for seed, z in enumerate(starts)])
        for name, prior, n_moves in zip(SAMPLERS, priors, (0, 0, 5), strict=True)
    }
    if importlib.util.find_spec("matplotlib"):
        draw_climb(curves, f"{folder}/murphy_25_8.png")
    goal = log_likelihood(start_chain(X, priors[0], data.labels, 0)) - NEAR
    return {
        "n_starts": n_starts,
        "n_sweeps": n_sweeps,
        "planted": round(goal + NEAR, 2),
        "samplers": {name: arrivals(values, goal) for name, values in curves.items()},
    }


def start_chain(X, prior, z, seed: int):
    from partita.engines.gibbs import chain as chains
    from partita.families import Block, GaussianFull

    return chains.start([Block(GaussianFull.default(2), X, ("x", "y"))], prior, z, seed)


def log_likelihood(chain) -> float:
    """Log probability of the points given the labels."""
    from partita.families.rows import log_marginals

    live, K = chain.seating.blocks[0], int(chain.seating.K[0])
    return float(log_marginals(live.family, live.S[:, :K]).sum())


def climb(X, prior, z, n_sweeps: int, seed: int, n_moves: int) -> list[float]:
    """Log probability after each sweep."""
    from partita.engines.gibbs import chain as chains

    schedule = chains.Schedule(n_moves=n_moves, learn_concentration=False, learn_likelihood=False)
    chain, out = start_chain(X, prior, z, seed), []
    for _ in range(n_sweeps):
        chain = chains.step(chain, schedule)
        out.append(log_likelihood(chain))
    return out


def arrivals(values, goal: float) -> dict:
    """How many starts come near the top, and after how many sweeps half of all have."""
    import numpy as np

    there = values >= goal
    first = np.where(there.any(axis=1), there.argmax(axis=1) + 1, values.shape[1] + 1)
    half = int(np.sort(first)[(len(first) - 1) // 2])
    return {
        "arrived": int(there.any(axis=1).sum()),
        "sweeps_until_half_arrived": half if half <= values.shape[1] else None,
        "median_at_end": round(float(np.median(values[:, -1])), 2),
        "worst_at_end": round(float(values[:, -1].min()), 2),
    }


# ---- pictures --------------------------------------------------------------------------------------------------


def draw_posterior(X, shown: dict, later, path: str) -> None:
    plt = _pyplot()
    from partita.plotting import plot_draw, plot_n_clusters

    figure, axes = plt.subplots(2, 2, figsize=(7.2, 6.4), layout="constrained")
    for ax, (iteration, labels) in zip(axes.flat, shown.items(), strict=False):
        plot_draw(X, labels, ax=ax)
        ax.set_title(f"draw {iteration}: {ax.get_title(loc='left')}", loc="left")
    plot_n_clusters(later, ax=axes[1, 1]).set_title(f"P(K), draws {BURN_IN + 1} to {N_DRAWS}", loc="left")
    figure.savefig(path, dpi=110)


def draw_climb(curves: dict, path: str) -> None:
    plt = _pyplot()
    from partita.plotting import plot_climb

    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained", sharey=True)
    pair = {SAMPLERS[name]: curves[name][:20] for name in ("dp", "finite")}
    plot_climb(pair, ax=axes[0]).set_title("20 starts", loc="left")
    every, n_starts = {SAMPLERS[name]: curves[name] for name in SAMPLERS}, len(curves["dp"])
    plot_climb(every, quantiles=(0.05, 0.95), ax=axes[1]).set_title(
        f"median and 5% to 95% of {n_starts} starts", loc="left"
    )
    axes[1].set_ylabel("")
    figure.savefig(path, dpi=110)


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
