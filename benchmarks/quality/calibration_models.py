"""Models for simulation-based calibration: parameters and a small table from the prior, then a chain given the table.

Every function ``simulate(rng)`` returns the traits of the truth and of thinned draws from its posterior. Concentration,
discount and hyper-parameters are drawn from their hyperpriors, with the widths that the chains assume, and are learned;
the Dirichlet parameter of the default prior of ``Mixture`` is held, as there.
Chains do not start from the truth. Tables with a number beyond ``LARGEST`` are drawn again together with their
parameters: this depends on the table alone, so that the posterior given a table remains the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from partita.blocks import chain as grids
from partita.blocks.sweep import DIRECTED, TABLE, UNDIRECTED, cell_clusters
from partita.blocks.sweep import log_joint as grid_log_joint
from partita.consensus.bce import gibbs as admixture
from partita.consensus.bce.concentration import MAX_ALPHA, MIN_ALPHA
from partita.consensus.label_layout import lay_out as lay_out_labels
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import outliers
from partita.engines.gibbs.chain import HYPER_CUT, HYPER_SPREAD, Schedule
from partita.engines.nonconjugate import neal8
from partita.engines.nonconjugate import parameters as explicit
from partita.engines.passes.rows import n_stats
from partita.families import (
    Bernoulli,
    Block,
    Categorical,
    Exponential,
    GaussianDiagonal,
    GaussianFull,
    Levels,
    Multinomial,
    Ordinal,
    Poisson,
    Student,
    background,
    log_background,
)
from partita.families.columns import take_columns
from partita.families.contract import (
    breadth,
    constrained,
    draw,
    held,
    is_conjugate,
    log_prior,
    n_columns,
    simulate,
    unconstrained,
)
from partita.families.rows import add_statistics, log_marginals
from partita.fitting.chains import resolve_sampling_prior
from partita.labels import canonical
from partita.partitions import (
    DirichletProcess,
    IndianBuffet,
    PitmanYor,
    log_eppf,
    specify,
    with_parameters,
)
from partita.partitions import simulate as simulate_partition
from partita.testing import size_traits, with_missing_cells
from partita.testing.calibration import Table
from partita.views.crosscat import chain as crosscat
from partita.views.crosscat import row_factors as crosscat_row_factors
from partita.views.crosscat import state as crosscat_state
from partita.views.crosscat.layout import lay_out
from partita.views.overlapping.additive import EFFECT_HYPERPRIOR, Effects, read_reals
from partita.views.overlapping.chain import OverlapPlan, chain_step
from partita.views.overlapping.combinations import CombinationColumns, combination_labels
from partita.views.overlapping.state import OverlapState, empty_state
from partita.views.overlapping.table import OverlapHyper, OverlapTable

N_DRAWS = 9  # of each chain: ten ranks
N_ROWS = 7
LARGEST, SMALLEST = 1e3, 1e-3
MISSING = 0.2
# Iterations between draws, which must be nearly independent: repeats of one value look like draws that are too narrow.
# Hyper-parameters are the slowest quantities, and shape and rate of a gamma prior, which move together, the slowest of
# them: 10 to 90 iterations per independent draw in tables of counts, 7 to 15 in tables of real numbers.
THIN, THIN_GAMMA, THIN_WALKS = 20, 60, 40
GAMMA = {"poisson", "exponential"}
FAMILIES = {
    "gaussian": GaussianDiagonal(*np.array([[0.3, -0.2], [0.4, 0.6], [3.0, 2.5], [2.0, 1.5]])),
    "gaussian_full": GaussianFull.of(np.array([0.2, -0.4]), 0.6, 5.5, np.array([[3.0, 0.5], [0.5, 2.0]])),
    "student": Student(*np.array([[0.3, -0.4], [1.5, 1.0], [-0.2, 0.2], [0.5, 0.4], [4.0, 7.0]])),
    "exponential": Exponential(np.array([2.5, 3.0]), np.array([1.5, 3.0])),
    "poisson": Poisson(np.array([1.3, 2.0]), np.array([0.7, 0.5])),
    "multinomial": Multinomial.of(np.array([0.5, 1.0, 0.8])),
    "bernoulli": Bernoulli(np.array([0.6, 1.0]), np.array([0.8, 0.7])),
    "categorical": Categorical.default([3, 2], alpha=0.7),
    "ordinal": Ordinal(
        *np.array([[0.3, -0.2], [0.5, 0.4], [3.0, 2.5], [2.0, 1.5]]),
        np.array([-np.inf, -0.6, 0.5, np.inf, -np.inf, -0.8, 0.1, 0.9, np.inf]),
        np.array([0, 4, 9]),
    ),
    "label members": Categorical.default([3, 2, 2], alpha=0.5, tied=True),
}


def cut_normal(rng: np.random.Generator, shape: tuple[int, ...], cut: float = HYPER_CUT) -> np.ndarray:
    """Standard normal numbers of at most ``cut``."""
    x = rng.standard_normal(shape)
    while (np.abs(x) > cut).any():
        x = np.where(np.abs(x) > cut, rng.standard_normal(shape), x)
    return x


def draw_family(center: Any, rng: np.random.Generator) -> Any:
    """The family with hyper-parameters drawn from the hyperprior of the chains."""
    cut = HYPER_CUT if is_conjugate(center) else np.inf
    family = center
    for name, value in unconstrained(center).items():
        if name not in held(center):
            spread = breadth(center, name) * HYPER_SPREAD
            family = constrained(family, name, value + spread * cut_normal(rng, value.shape, cut))
    return family


def draw_prior(prior: Any, rng: np.random.Generator) -> Any:
    """The prior with a concentration and a discount drawn from their hyperpriors."""
    discount = rng.random() if isinstance(prior, PitmanYor) else np.nan
    return with_parameters(prior, max(rng.exponential(), 1e-300), discount)


def is_usable(data: Any) -> bool:
    """Whether all numbers of a table have digits left in double precision."""
    values = [np.asarray(part, float) for part in (data if isinstance(data, tuple) else (data,))]
    sizes = np.abs(np.concatenate([v.ravel() for v in values]))
    return bool(
        np.isfinite(sizes).all() and (sizes <= LARGEST).all() and not np.any((sizes > 0) & (sizes < SMALLEST))
    )


def chain_draws(
    state: Any, step: Callable, traits: Callable, burn_in: int, thin: int
) -> list[dict[str, float]]:
    """Traits of ``N_DRAWS`` states of a chain."""
    out = []
    for iteration in range(1, burn_in + thin * N_DRAWS + 1):
        state = step(state)
        if iteration > burn_in and (iteration - burn_in) % thin == 0:
            out.append(traits(state))
    return out


# ---- mixtures ----------------------------------------------------------------------------------------------


def hyper_traits(prior: Any, families: Sequence[Any]) -> dict[str, float]:
    """Concentration, and the first hyper-parameter that is learned."""
    out = {"concentration": float(getattr(prior, "concentration", getattr(prior, "gamma", np.nan)))}
    learned = [name for name in unconstrained(families[0]) if name not in held(families[0])]
    return out | {"hyper-parameter": float(unconstrained(families[0])[learned[0]].ravel()[0])}


def mixture_log_joint(z: np.ndarray, prior: Any, families: Sequence[Any], data: Sequence[Any]) -> float:
    """Log joint of conjugate families; rows with the label -1 are left out."""
    own, K = np.flatnonzero(z >= 0), int(z.max()) + 1
    if not K:
        return 0.0
    n = np.bincount(z[own]).astype(float)
    total = log_eppf(prior, n[n > 0], int(np.count_nonzero(n)))
    for family, X in zip(families, data, strict=True):
        S = np.zeros((n_stats(family), K + 1))
        add_statistics(family, X, np.where(z >= 0, z, K).astype(np.int64), S)
        total += log_marginals(family, np.ascontiguousarray(S[:, :K][:, n > 0])).sum()
    return float(total)


def mixture(
    names: Sequence[str], prior: Any, missing: float, rng: np.random.Generator, *, learned: bool = True
) -> Table:
    """Chains of ``Mixture`` and ``NBCE``: collapsed Gibbs sampling, or auxiliary clusters for Student's t.

    The concentration is held at that of the prior unless it is ``learned``.
    """
    centers = [FAMILIES[name] for name in names]
    while True:
        drawn = draw_prior(prior, rng) if learned else prior
        families = [draw_family(center, rng) for center in centers]
        z = canonical(simulate_partition(drawn, N_ROWS, rng))
        with np.errstate(all="ignore"):
            thetas = [draw(family, np.zeros((n_stats(family), int(z.max()) + 1)), rng) for family in families]
            data = [simulate(family, theta, z, rng) for family, theta in zip(families, thetas, strict=True)]
        if all(is_usable(_numbers(X)) for X in data):
            break
    shown = [Levels.of(X.codes) if isinstance(X, Levels) else X for X in data]  # latent variables are hidden
    shown = [with_missing_cells(X, missing, rng) if missing else X for X in shown]
    walks = not all(map(is_conjugate, centers))
    # the log joint of drawn coordinates is not that of the table
    vectors = any(name == "ordinal" or (missing and name == "gaussian_full") for name in names)

    def traits(
        z: np.ndarray, prior: Any, families: Sequence[Any], value: Callable[[], float]
    ) -> dict[str, float]:
        out = size_traits(z) | hyper_traits(prior, families) | ({} if vectors else {"log joint": value()})
        return out if learned else {name: x for name, x in out.items() if name != "concentration"}

    if walks:
        value = log_eppf(drawn, np.bincount(z).astype(float), int(z.max()) + 1)
        for family, theta, X in zip(families, thetas, shown, strict=True):
            value += (
                log_prior(family, theta).sum() + explicit.log_densities(Block(family, X, ()), z, theta).sum()
            )
        truth = traits(z, drawn, families, lambda: float(value))
    else:
        truth = traits(z, drawn, families, lambda: mixture_log_joint(z, drawn, families, shown))
    blocks = [Block(center, X, ()) for center, X in zip(centers, shown, strict=True)]
    start = neal8.start if walks else chains.start
    state = start(blocks, prior, rng.integers(3, size=N_ROWS), int(rng.integers(2**62)))
    schedule = Schedule(n_moves=3, warm_up=30, learn_concentration=learned)

    def of_state(chain: Any) -> dict[str, float]:
        labels = chains.sweep.labels(chain.seating)
        own = [block.family for block in chain.seating.blocks]
        if walks:
            return traits(labels, chain.prior, own, lambda: neal8.log_joint(chain))
        canon = canonical(labels)
        return traits(canon, chain.prior, own, lambda: mixture_log_joint(canon, chain.prior, own, shown))

    step = neal8.step if walks else chains.step
    thin = THIN_WALKS if walks else THIN_GAMMA if GAMMA & set(names) else THIN
    return truth, chain_draws(state, lambda chain: step(chain, schedule), of_state, 100, thin)


def _numbers(data: Any) -> np.ndarray:
    """The numbers that a table holds."""
    for name in ("X", "latent", "counts"):
        if hasattr(data, name):
            return np.asarray(getattr(data, name))
    return np.asarray(data)


def mixture_with_outliers(rng: np.random.Generator) -> Table:
    """``Mixture(outliers=True)``: the share of outliers is learned too; the background is that of another table."""
    center, prior, D = Bernoulli(np.full(4, 0.6), np.full(4, 0.8)), specify("mfm"), 4
    law = background(center, np.random.default_rng(0).integers(2, size=(20, D)).astype(np.int8), np.ones(20))
    drawn, family = draw_prior(prior, rng), draw_family(center, rng)
    seats = canonical(simulate_partition(drawn, N_ROWS, rng))
    out = rng.random(N_ROWS) < rng.beta(outliers.A, outliers.B)
    X = simulate(family, draw(family, np.zeros((n_stats(family), int(seats.max()) + 1)), rng), seats, rng)
    ones = np.ones((1, D), np.int8)
    single = [log_background(law, np.where(np.arange(D) == d, ones, -1).astype(np.int8))[0] for d in range(D)]
    X[out] = rng.random((int(out.sum()), D)) < np.exp(single)
    log_density = log_background(law, X)

    def traits(z: np.ndarray, prior: Any, family: Any) -> dict[str, float]:
        away = z < 0
        value = outliers.log_prior_outliers(int(away.sum()), N_ROWS) + log_density[away].sum()
        value += mixture_log_joint(z, prior, [family], [X])
        found = size_traits(z) | hyper_traits(prior, [family])
        return found | {"log joint": float(value), "outliers": float(away.sum())}

    truth = traits(canonical(np.where(out, -1, seats), missing=-1), drawn, family)
    algorithm = outliers.algorithm(log_density)
    state = algorithm.start(
        [Block(center, X, ())], prior, rng.integers(3, size=N_ROWS), int(rng.integers(2**62))
    )
    schedule = Schedule(n_moves=3)

    def of_state(chain: Any) -> dict[str, float]:
        z = canonical(chains.sweep.labels(chain.seating), missing=-1)
        return traits(z, chain.prior, chain.seating.blocks[0].family)

    return truth, chain_draws(state, lambda chain: outliers.step(chain, schedule), of_state, 60, 6)


# ---- views -------------------------------------------------------------------------------------------------


def crosscat_table(rng: np.random.Generator) -> Table:
    """``CrossCat``: four columns of three families."""
    centers = (
        take_columns(FAMILIES["gaussian"], np.array([0])),
        FAMILIES["bernoulli"],
        take_columns(FAMILIES["categorical"], np.array([0])),
    )
    while True:
        gamma = rng.exponential()
        views = canonical(simulate_partition(DirichletProcess(max(gamma, 1e-300)), 4, rng))
        alphas = [max(rng.exponential(), 1e-300) for _ in range(int(views.max()) + 1)]
        z = [canonical(simulate_partition(DirichletProcess(a), N_ROWS, rng)) for a in alphas]
        families = [draw_family(center, rng) for center in centers]
        with np.errstate(all="ignore"):
            data = _columns_by_view(families, views, z, rng)
        if is_usable(data[0]):
            break
    blocks = [Block(center, X, ()) for center, X in zip(centers, data, strict=True)]
    layout = lay_out(blocks)
    plan = crosscat_state.CrossCatPlan(Schedule(n_moves=2), dtype=np.float64)

    def state_of(views, z, alphas, families, gamma):
        groups = [np.flatnonzero(views == v).tolist() for v in range(len(z))]
        priors = [DirichletProcess(a) for a in alphas]
        return crosscat_state.start(layout, groups, z, priors, rng, plan, families, gamma)

    def traits(state: Any) -> dict[str, float]:
        owner = np.empty(4, int)
        for v, view in enumerate(state.views):
            owner[crosscat_state.columns_in(layout, view.units)] = v
        found = size_traits(chains.sweep.labels(state.views[owner[0]].chain.seating))
        views = {f"views, {name}": value for name, value in size_traits(owner).items()}
        return (
            found
            | views
            | {
                "log joint": crosscat_row_factors.log_joint(state),
                "concentration": float(state.prior.concentration),
                "hyper-parameter": float(unconstrained(state.families[0])["k"].ravel()[0]),
            }
        )

    truth = traits(state_of(views, z, alphas, families, gamma))
    begin = state_of(np.zeros(4, int), [rng.integers(2, size=N_ROWS)], [1.0], list(centers), 1.0)
    return truth, chain_draws(begin, lambda state: crosscat.step(state, plan, rng), traits, 30, 4)


def _columns_by_view(families, views, z, rng) -> list[np.ndarray]:
    out, at = [], 0
    for family in families:
        parts = []
        for d in range(int(n_columns(family))):
            one, labels = take_columns(family, np.array([d])), z[views[at]]
            theta = draw(one, np.zeros((n_stats(one), int(labels.max()) + 1)), rng)
            parts.append(simulate(one, theta, labels, rng))
            at += 1
        out.append(np.ascontiguousarray(np.column_stack(parts).astype(parts[0].dtype)))
    return out


def overlapping_table(additive: bool, rng: np.random.Generator) -> Table:
    """``OverlappingViews``: three columns, at most two views, each column in at most two."""
    D, most = 3, 2
    plan = OverlapPlan(max_per_column=2, max_views=most, n_moves=1)
    centers = () if additive else (Bernoulli(np.array([0.6, 1.0, 0.8]), np.array([0.8, 0.7, 0.6])),)
    while True:
        buffet = IndianBuffet(max(rng.exponential(), 1e-300), max(rng.exponential(), 1e-12))
        Y = simulate_partition(buffet, D, rng).astype(bool)
        if Y.shape[1] > most or (Y.sum(axis=1) > plan.max_per_column).any():
            continue  # the prior is conditioned on the limits
        concentration = max(rng.exponential(), 1e-300)
        Z = tuple(canonical(simulate_partition(DirichletProcess(concentration), N_ROWS, rng)) for _ in Y.T)
        families = tuple(draw_family(center, rng) for center in centers)
        effects = Effects(center=2.0, a=3.0, b=2.0)
        effects = effects._replace(effect=rng.gamma(EFFECT_HYPERPRIOR.shape) / EFFECT_HYPERPRIOR.rate)
        X = _additive_columns(Y, Z, effects, rng) if additive else _combined_columns(Y, Z, families[0], rng)
        if not additive or is_usable(X):
            break
    if additive:
        table = OverlapTable(read_reals(X), None)
    else:
        table = OverlapTable(None, CombinationColumns((Block(centers[0], X, ()),)))
    hyper = OverlapHyper(effects if additive else Effects(), families)

    def traits(state: OverlapState) -> dict[str, float]:
        clusters = [size_traits(z) for z in state.Z]
        learned = (
            np.log(state.hyper.effects.effect) if additive else unconstrained(state.hyper.families[0])["a"][0]
        )
        return {
            "views": float(state.n_views),
            "memberships": float(state.Y.sum()),
            "pair of columns": float((state.Y[0] & state.Y[1]).any()),
            "clusters": sum(found["clusters"] for found in clusters),
            "entropy": sum(found["entropy"] for found in clusters),
            "pair": sum(found["pair"] for found in clusters),
            "log joint": table.log_joint(state),
            "concentration": float(state.concentration),
            "hyper-parameter": float(learned),
        }

    truth = traits(OverlapState(Z, Y, buffet, concentration, hyper))
    begin = empty_state(D, OverlapHyper(effects._replace(effect=1.0) if additive else Effects(), centers))
    return truth, chain_draws(begin, lambda state: chain_step(table, state, rng, plan), traits, 60, 12)


def _additive_columns(Y, Z, effects: Effects, rng) -> np.ndarray:
    X = np.empty((N_ROWS, len(Y)))
    for d, own in enumerate(Y):
        noise = np.sqrt(effects.b / rng.gamma(effects.a))
        X[:, d] = noise * (np.sqrt(effects.center) * rng.normal() + rng.normal(size=N_ROWS))
        for v in np.flatnonzero(own):
            X[:, d] += noise * np.sqrt(effects.effect) * rng.normal(size=int(Z[v].max()) + 1)[Z[v]]
    return X


def _combined_columns(Y, Z, family: Any, rng) -> np.ndarray:
    parts = []
    for d, own in enumerate(Y):
        one = take_columns(family, np.array([d]))
        z = combination_labels(Z, tuple(np.flatnonzero(own).tolist()), N_ROWS)
        theta = draw(one, np.zeros((n_stats(one), int(z.max()) + 1)), rng)
        parts.append(simulate(one, theta, z, rng))
    return np.ascontiguousarray(np.column_stack(parts).astype(np.int8))


# ---- blocks and the admixture of labels --------------------------------------------------------------------


def relational_blocks(mode: int, rng: np.random.Generator) -> Table:
    """``RelationalBlocks``: binary cells, a few of them missing."""
    shape = (6, 5) if mode == TABLE else (6,)
    center = Bernoulli.default(1, a=0.8, b=1.0)
    priors = tuple(draw_prior(DirichletProcess(), rng) for _ in shape)
    labels = tuple(canonical(simulate_partition(p, N, rng)) for p, N in zip(priors, shape, strict=True))
    family = draw_family(center, rng)
    rows, columns = labels[0], labels[-1]
    where = cell_clusters(mode, rows, columns, int(columns.max()) + 1)
    where = np.where(where < 0, 0, where)
    theta = draw(family, np.zeros((n_stats(family), int(where.max()) + 1)), rng)
    X = simulate(family, theta, where, rng).reshape(len(rows), -1)
    X[rng.random(X.shape) < 0.1] = -1
    if mode == UNDIRECTED:
        X = np.triu(X) + np.triu(X, 1).T
    data = np.ascontiguousarray(X.reshape(-1, 1).astype(np.int8))

    def traits(chain: Any) -> dict[str, float]:
        found = {"log joint": grid_log_joint(chain.grid, chain.priors)}
        for side, one in enumerate(chain.grid.sides):
            found |= {f"{name} {side}": value for name, value in size_traits(canonical(one.z)).items()}
            found[f"concentration {side}"] = float(chain.priors[side].concentration)
        return found | {"hyper-parameter": float(np.log(chain.grid.family.a[0]))}

    truth = traits(grids.start_grid(mode, family, data, labels, priors, seed=0))
    begin = grids.start_grid(
        mode, center, data, [np.zeros(N, int) for N in shape], (DirichletProcess(),) * len(shape),
        int(rng.integers(2**62)),
    )  # fmt: skip
    schedule = Schedule(n_moves=3)
    return truth, chain_draws(begin, lambda chain: grids.step_grid(chain, schedule), traits, 50, 6)


def admixture_of_labels(rng: np.random.Generator) -> Table:
    """``BCE``: three members of seven objects, two latent clusters, unequal concentrations."""
    K, smoothing, n_levels = 2, 0.6, np.array([3, 2, 2])
    alpha = rng.exponential(size=K)
    while (alpha < MIN_ALPHA).any() or (alpha > MAX_ALPHA).any():
        alpha = rng.exponential(size=K)
    shares = rng.dirichlet(alpha, size=N_ROWS)
    z = np.array([rng.choice(K, size=len(n_levels), p=p) for p in shares])
    codes = np.empty((N_ROWS, len(n_levels)), np.int64)
    for m, V in enumerate(n_levels):
        levels = rng.dirichlet(np.full(V, smoothing), size=K)
        codes[:, m] = [rng.choice(V, p=levels[k]) for k in z[:, m]]
    hidden = rng.random(codes.shape) < 0.1
    codes[hidden], z[hidden] = -1, -1
    cells = lay_out_labels(codes, n_levels, np.ones(N_ROWS), np.ones(len(n_levels)))
    members = np.arange(len(n_levels))

    def traits(chain: Any) -> dict[str, float]:
        found = size_traits(chain.z.ravel())
        found["pair"] = float(chain.z[0, 0] == chain.z[1, 0])
        return found | {"log joint": admixture.log_joint(chain), "concentration": float(chain.alpha.sum())}

    truth = traits(admixture.from_latent(cells, members, alpha, smoothing, z.astype(np.int16)))
    begin = admixture.init(cells, members, np.full(K, 0.5), smoothing, rng)
    return truth, chain_draws(
        begin, lambda chain: admixture.step(chain, rng, learn_alpha=True), traits, 100, 15
    )


MFM, PY = specify("mfm"), PitmanYor()
AUTO = resolve_sampling_prior(
    "auto", None, None, None
)  # the default of `Mixture`, which learns no concentration
MODELS: dict[str, Callable[[np.random.Generator], Table]] = {
    **{
        f"Mixture, {name}": partial(mixture, [name], MFM, 0.0) for name in FAMILIES if name != "label members"
    },
    "Mixture, default prior": partial(mixture, ["gaussian", "categorical"], AUTO, 0.0, learned=False),
    "Mixture, mixed columns": partial(mixture, ["gaussian", "poisson", "categorical"], PY, 0.0),
    "Mixture, missing cells": partial(mixture, ["gaussian", "bernoulli"], DirichletProcess(), MISSING),
    "Mixture, missing coordinates": partial(mixture, ["gaussian_full"], DirichletProcess(), MISSING),
    "Mixture, outliers": mixture_with_outliers,
    "NBCE": partial(mixture, ["label members"], DirichletProcess(), MISSING),
    "CrossCat": crosscat_table,
    "RelationalBlocks, table": partial(relational_blocks, TABLE),
    "RelationalBlocks, directed": partial(relational_blocks, DIRECTED),
    "RelationalBlocks, undirected": partial(relational_blocks, UNDIRECTED),
    "OverlappingViews, additive": partial(overlapping_table, True),
    "OverlappingViews, combinations": partial(overlapping_table, False),
    "BCE": admixture_of_labels,
}
