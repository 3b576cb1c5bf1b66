"""A collapsed chain on a million categorical rows, to convergence: sweeps, CPU time, peak memory.

Twenty columns of ten levels, ten planted clusters, cell probabilities Dirichlet(0.5), one byte per cell. The chain
starts from random labels of thirty clusters, with one split-merge move per iteration and the merges of a warm-up. It
has converged when it has the planted number of clusters within one and the log joint no longer rises by more than 1e-5
of itself from sweep to sweep; ten more sweeps check that it stays there.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process, peak_mb, stopwatch
from benchmarks.record import spread

N_COLUMNS, N_LEVELS, N_CLUSTERS, N_START = 20, 10, 10, 30
MOST_SWEEPS, MORE_SWEEPS, STILL = 100, 10, 1e-5
MOST_MB, LEAST_RAND = 1000.0, 0.98


def run(*, full: bool, repeats: int) -> dict:
    n_rows = 1_000_000 if full else 100_000
    runs = []
    for seed in range(repeats):
        runs.append(in_own_process(converge, n_rows=n_rows, seed=seed))
        one = runs[-1]
        print(
            f"   data {seed}: {one['n_sweeps']} sweeps, {one['cpu_s']:.1f} s of CPU, {one['n_clusters']} clusters, "
            f"Rand {one['rand']:.4f}, peak {one['peak_mb']:.0f} MB ({one['before_mb']:.0f} before)",
            flush=True,
        )
    keys = ("n_sweeps", "cpu_s", "cpu_s_per_sweep_after", "n_clusters", "rand", "peak_mb", "before_mb")
    summary = {key: spread([one[key] for one in runs], 4) for key in keys}
    bars = {
        f"peak memory below {MOST_MB:.0f} MB": summary["peak_mb"]["max"] < MOST_MB,
        "the planted clusters are found": summary["rand"]["min"] >= LEAST_RAND,
    }
    size = {"n_rows": n_rows, "n_columns": N_COLUMNS, "n_levels": N_LEVELS, "n_clusters": N_CLUSTERS}
    return {"size": size, "repeats": repeats, "runs": runs, "summary": summary, "bars": bars if full else {}}


# ---- in a process of its own -----------------------------------------------------------------------------------


def converge(n_rows: int, seed: int) -> dict:
    """Run a chain until it has converged."""
    import numpy as np

    from partita.engines.gibbs import chain as chains
    from partita.engines.gibbs import sweep
    from partita.engines.subclusters.warm_up import merge_seated_pieces
    from partita.families import Block, Categorical
    from partita.metrics import adjusted_rand
    from partita.partitions import DirichletProcess

    rng = np.random.default_rng(seed)
    X, planted = make_table(n_rows, rng)
    family, columns = Categorical.default([N_LEVELS] * N_COLUMNS), tuple(range(N_COLUMNS))
    schedule, prior = chains.Schedule(n_moves=1), DirichletProcess(1.0)

    def iterate(chain):
        chain = chains.step(chain, schedule)
        return chain._replace(seating=merge_seated_pieces(chain.seating, chain.prior)[0])

    chain = chains.start([Block(family, X[:500], columns)], prior, rng.integers(N_START, size=500), 0)
    for _ in range(3):
        chain = iterate(chain)  # compiled code is loaded here
    chains.log_joint(chain)
    before, values, after = peak_mb(), [-np.inf], 0.0
    with stopwatch() as watch:
        chain = chains.start([Block(family, X, columns)], prior, rng.integers(N_START, size=n_rows), seed)
    seconds, n_sweeps, converged = watch["cpu_s"], 0, False
    while not converged and n_sweeps < MOST_SWEEPS:
        with stopwatch() as watch:
            chain = iterate(chain)
            values.append(chains.log_joint(chain))
        seconds, n_sweeps = seconds + watch["cpu_s"], n_sweeps + 1
        close = abs(int(chain.seating.K[0]) - N_CLUSTERS) <= 1
        converged = close and values[-1] - values[-2] < STILL * abs(values[-1])
    for _ in range(MORE_SWEEPS):
        with stopwatch() as watch:
            chain = chains.step(chain, schedule)
        after += watch["cpu_s"] / MORE_SWEEPS
    peak = peak_mb()
    return {
        "converged": converged,
        "n_sweeps": n_sweeps,
        "cpu_s": seconds,
        "cpu_s_per_sweep_after": after,
        "n_clusters": int(chain.seating.K[0]),
        "rand": adjusted_rand(sweep.labels(chain.seating), planted.astype(np.int64)),
        "log_joint": values[-1],
        "chain_mb": round(peak - before, 1),
        "before_mb": round(before, 1),
    }


def make_table(n_rows, rng):
    """Codes of one byte, made in pieces: the table is to be the largest thing in memory."""
    import numpy as np

    z = rng.integers(N_CLUSTERS, size=n_rows, dtype=np.int8)
    X = np.empty((n_rows, N_COLUMNS), np.int8)
    upper = np.cumsum(rng.dirichlet(np.full(N_LEVELS, 0.5), (N_COLUMNS, N_CLUSTERS)), axis=2)
    for lo in range(0, n_rows, 50_000):
        rows = slice(lo, lo + 50_000)
        for d in range(N_COLUMNS):
            u = rng.random((len(z[rows]), 1))
            X[rows, d] = (u > upper[d, z[rows], :-1]).sum(axis=1)
    return X, z
