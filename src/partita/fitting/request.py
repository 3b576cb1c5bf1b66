"""From the parameters of a mixture to the request to its engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partita.engines.run import Control
from partita.estimator import FitReport, as_generator
from partita.families import Block, Ordinal
from partita.families.contract import is_conjugate
from partita.fitting.chains import learns_concentration, resolve_sampling_prior
from partita.fitting.climb import resolve_prior
from partita.fitting.contract import Request, Settings
from partita.fitting.engines import ENGINES, names_of
from partita.fitting.families import Plan
from partita.fitting.outliers import check_outliers
from partita.fitting.real_columns import count_objects
from partita.labels import canonical
from partita.table import Table

DEFAULT_BOUND = 30  # clusters of a variational start if no number is given


def kinds_asked(plan: Plan, exposure: str | None) -> Any:
    """The kinds of columns: those of the plan, and the exposure as a number."""
    if exposure is None:
        return plan.kinds
    if not (plan.kinds is None or isinstance(plan.kinds, (str, dict))):
        raise ValueError("with exposure=, give kinds as a mapping from column names, or leave it out")
    if isinstance(plan.kinds, str):
        raise ValueError(
            f"exposure={exposure!r} needs columns of two kinds: pass kinds={{column: kind, ...}} or "
            "family={'count': 'poisson'}"
        )
    return {**(plan.kinds or {}), exposure: "real"}


def make_request(
    settings: Settings,
    table: Table,
    blocks: Sequence[Block],
    *,
    control: Control,
    executor: Any,
    report: FitReport,
) -> Request:
    """The request to the engine; refuses what the engine cannot do."""
    engine = ENGINES[settings.inference]
    n_components = _n_components(settings, count_objects(table.weights), report)
    exact, free_init = settings.n_clusters is not None, isinstance(settings.init, str)
    n_streams = settings.n_chains if engine.samples else settings.n_init if free_init else 1
    ask = Request(
        n_components=n_components,
        exact=exact,
        prior=_prior(settings, n_components),
        learn_concentration=learns_concentration(
            settings.prior, settings.n_clusters, settings.concentration, samples=engine.counts_objects
        ),
        learn_likelihood=settings.learn_hyper,
        maximum_likelihood=settings.estimate == "ml",
        order=settings.order,
        init=_init(settings, table, n_components),
        rngs=as_generator(settings.random_state).spawn(n_streams),
        tol=settings.tol,
        max_iter=settings.max_iter,
        control=control,
        debug=False,
        executor=executor,
        folder=settings.resume,
        n_chains=settings.n_chains,
        n_draws=settings.n_draws,
        burn_in=settings.burn_in,
        thin=settings.thin,
        limit=n_components if settings.n_clusters or settings.max_clusters else None,
        precision=settings.precision,
        partition=settings.partition,
        outliers=settings.outliers,
        width=settings.beam_width,
    )
    _check(settings, blocks, ask)
    return ask


def _prior(settings: Settings, n_components: int) -> Any:
    """The prior: engines that partition objects take any, the others a finite one."""
    given = settings.prior, settings.n_clusters, settings.max_clusters, settings.concentration
    if ENGINES[settings.inference].counts_objects:
        return resolve_sampling_prior(*given)
    exact = settings.n_clusters is not None
    return resolve_prior(settings.prior, settings.inference, n_components, exact, settings.concentration)


def _check(settings: Settings, blocks: Sequence[Block], ask: Request) -> None:
    engine, inference = ENGINES[settings.inference], settings.inference
    if ask.outliers:
        if not engine.finds_outliers:
            raise ValueError(
                f"outliers=True needs inference={names_of('finds_outliers')}, not {inference!r}: the other "
                "engines do not model outliers"
            )
        check_outliers(blocks)
    if settings.max_clusters is not None and not engine.bounds_n_clusters:
        raise ValueError(
            f"inference={inference!r} cannot bound the number of clusters: leave max_clusters out, or use 'gibbs'"
        )
    explicit = [type(block.family).__name__ for block in blocks if not is_conjugate(block.family)]
    for block in blocks:
        if isinstance(block.family, Ordinal) and (explicit or not engine.completes_vectors):
            cause = f"beside {explicit[0]} columns" if explicit else f"with inference={inference!r}"
            raise ValueError(
                f"column {block.columns[0]!r} is ordinal, and its latent variable cannot be drawn {cause}: use "
                f"inference={names_of('completes_vectors')} and conjugate families, or declare the column "
                "'categorical' (or 'real' if its levels are numbers)"
            )
        if not is_conjugate(block.family) and not engine.takes_non_conjugate:
            raise ValueError(
                f"{type(block.family).__name__} is not conjugate, so inference={inference!r} cannot take it: use "
                f"inference={names_of('takes_non_conjugate')}"
            )


def _n_components(settings: Settings, n_objects: int, report: FitReport) -> int:
    if settings.n_clusters is None and ENGINES[settings.inference].needs_n_clusters:
        raise ValueError(
            f"inference={settings.inference!r} needs the number of clusters: pass n_clusters=, or use inference='vb', "
            "which finds it"
        )
    wanted = settings.n_clusters or settings.max_clusters or min(DEFAULT_BOUND, n_objects)
    if wanted > n_objects:
        report.add(
            "few_rows",
            f"{wanted} clusters were asked for, but there are only {n_objects} rows: at most that many are found",
            level="warning" if settings.n_clusters else "info",  # a bound may be larger than the table
        )
    return min(int(wanted), n_objects)


def _init(settings: Settings, table: Table, n_components: int) -> Any:
    if isinstance(settings.init, str):
        return settings.init
    init = canonical(settings.init, missing=-1)
    is_bounded = settings.n_clusters or settings.max_clusters or not ENGINES[settings.inference].samples
    bound = n_components if is_bounded else len(init)
    if len(init) != table.n_rows or init.max() >= bound:
        raise ValueError(
            f"init has {len(init)} labels of {init.max() + 1} clusters: give one label for each of the "
            f"{table.n_rows} rows, of at most {n_components} clusters (-1: none)"
        )
    if init.max() < 0:
        raise ValueError("init gives no row a cluster: label at least one row of each, or use init='seeds'")
    return init
