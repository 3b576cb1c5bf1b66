"""From the parameters of a mixture to what its engine is asked for."""

from __future__ import annotations

from typing import Any

from partita.engines.run import Control
from partita.estimator import as_generator
from partita.execution import check_memory
from partita.families.contract import is_conjugate
from partita.fitting.chains import bytes_of_chains, check_copies, resolve_sampling_prior
from partita.fitting.climb import Request, bytes_needed, resolve_prior
from partita.fitting.families import count_objects
from partita.fitting.outliers import check_noise
from partita.labels import canonical
from partita.table import Table

__all__ = ["CHAINS", "kinds_asked", "make_request"]

CHAINS = ("gibbs", "subclusters")  # the engines that sample
DEFAULT_BOUND = 30  # clusters that variational engines start with, when no number is given


def kinds_asked(model: Any, plan: Any) -> Any:
    """The kinds of columns: the plan's, and the exposure as a number."""
    if model.exposure is None:
        return plan.kinds
    if not (plan.kinds is None or isinstance(plan.kinds, (str, dict))):
        raise ValueError("with exposure=, give kinds as a mapping from column names, or leave it out")
    if isinstance(plan.kinds, str):
        raise ValueError(
            f"exposure={model.exposure!r} needs columns of two kinds: pass kinds={{column: kind, ...}} or "
            "family={'count': 'poisson'}"
        )
    return {**(plan.kinds or {}), model.exposure: "real"}


def make_request(model: Any, table: Table, blocks: Any, control: Control) -> Request:
    """What the engine is asked for; refuses what it cannot do, and what would not fit into memory."""
    n_components = _n_components(model, count_objects(table.weights))
    chains = model.inference in CHAINS
    exact, free_init = model.n_clusters is not None, isinstance(model.init, str)
    n_streams = model.n_chains if chains else model.n_init if free_init else 1
    if chains:
        prior = resolve_sampling_prior(model.prior, model.n_clusters, model.max_clusters, model.concentration)
    else:
        prior = resolve_prior(model.prior, model.inference, n_components, exact, model.concentration)
    ask = Request(
        n_components=n_components,
        exact=exact,
        prior=prior,
        learn_concentration=not exact and model.concentration is None,
        learn_likelihood=model.learn_hyper,
        maximum_likelihood=model.estimate == "ml",
        order=model.order,
        init=_init(model, table, n_components),
        rngs=as_generator(model.random_state).spawn(n_streams),
        tol=model.tol,
        max_iter=model.max_iter,
        control=control,
        debug=False,
        executor=model._make_executor(),
        folder=model.resume,
        n_chains=model.n_chains,
        n_draws=model.n_draws,
        burn_in=model.burn_in,
        thin=model.thin,
        limit=n_components if model.n_clusters or model.max_clusters else None,
        precision=model.precision,
        partition=model.partition,
        noise=model.noise,
    )
    _check(model, table, blocks, ask)
    return ask


def _check(model: Any, table: Table, blocks: Any, ask: Request) -> None:
    if ask.noise:
        check_noise(model.inference, blocks)
    if model.inference in CHAINS:
        n_objects = len(check_copies(table.weights))
        check_memory(
            bytes_of_chains(blocks, table.weights, ask),
            f"{ask.n_chains} chains of {ask.n_draws} draws over {n_objects:,} objects",
            "ask for fewer draws (n_draws, n_chains), or fit a sample of the rows",
        )
        if model.inference == "subclusters" and model.max_clusters is not None:
            raise ValueError(
                "inference='subclusters' cannot bound the number of clusters: leave max_clusters out, or use 'gibbs'"
            )
        return
    check_memory(
        bytes_needed(blocks, table.n_rows, ask, model.inference),
        f"{ask.n_components:,} clusters of {len(table.schema.columns):,} columns",
        "ask for fewer clusters (n_clusters, max_clusters), or leave columns out",
    )
    for block in blocks:
        if not is_conjugate(block.family):
            raise ValueError(
                f"{type(block.family).__name__} is not conjugate, so inference={model.inference!r} cannot take it: use "
                "inference='gibbs'"
            )


def _n_components(model: Any, n_objects: int) -> int:
    if model.n_clusters is None and model.inference == "em":
        raise ValueError(
            "inference='em' needs the number of clusters: pass n_clusters=, or use inference='vb', which finds it"
        )
    wanted = model.n_clusters or model.max_clusters or min(DEFAULT_BOUND, n_objects)
    if wanted > n_objects:
        model.fit_report_.add(
            "few_rows",
            f"{wanted} clusters were asked for, and there are only {n_objects} rows: at most that many are found",
            level="warning" if model.n_clusters else "info",  # a bound may well be larger than the table
        )
    return min(int(wanted), n_objects)


def _init(model: Any, table: Table, n_components: int) -> Any:
    if isinstance(model.init, str):
        return model.init
    init = canonical(model.init, missing=-1)
    bound = (
        n_components if model.n_clusters or model.max_clusters or model.inference not in CHAINS else len(init)
    )
    if len(init) != table.n_rows or init.max() >= bound:
        raise ValueError(
            f"init has {len(init)} labels of {init.max() + 1} clusters: give one label for each of the "
            f"{table.n_rows} rows, of at most {n_components} clusters (-1: none)"
        )
    if init.max() < 0:
        raise ValueError("init gives no row a cluster: label at least one row of each, or use init='seeds'")
    return init
