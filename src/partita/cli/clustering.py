"""The commands that fit a model: each reads a file, fits, and writes labels, model and report into a folder.

Estimators are imported after the file has been read and the options have been checked: a command that refuses its
input does not wait for scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from partita.cli.appended import check_output, write_appended
from partita.cli.output import (
    Outcome,
    alternatives_figures,
    clustering_figures,
    clustering_lines,
    clustering_sentences,
    numbered,
    write_columns,
)
from partita.cli.progress import INTERRUPTED_NOTE, FitMonitor, shows_progress
from partita.cli.results import (
    COLUMNS_FILE,
    LABELS_FILE,
    REPORT_FILE,
    Destination,
    context_of,
    member_notes,
    named_rows,
    notes_of,
    noting_replaced,
    save_model,
    write_account,
    write_page,
    write_report,
)
from partita.cli.sources import InputTable, join_names, list_kinds, open_table, open_typed
from partita.cli.standard_input import STANDARD
from partita.progress import tell_stage
from partita.table import KINDS
from partita.wording import count

CONSENSUS_METHODS = {
    "consensus": "Consensus",
    "nbce": "NBCE",
    "laca": "LACA",
    "mixture": "MixtureConsensus",
    "bce": "BCE",
    "eac": "EvidenceAccumulation",
    "lwea": "LWEA",
    "voting": "Voting",
    "qmi": "QMI",
    "hbgf": "HBGF",
    "cspa": "CSPA",
    "hgpa": "HGPA",
    "mcla": "MCLA",
    "modularity": "BipartiteModularity",
}
INFERENCES = ("auto", "gibbs", "subclusters", "vb", "memoized", "cvb", "em", "beam")
ORDER_INFERENCES = ("auto", "gibbs", "vb", "memoized", "em")  # those that use the order of levels
VIEW_INFERENCES = ("gibbs", "vb", "search")
GRAINS = ("coarse", "medium", "fine", "agreed")


@shows_progress
def consensus(
    path: str | Path,
    *,
    method: str = "consensus",
    n_clusters: int | None = None,
    noise: str = "missing",
    out: str | Path | None = None,
    output: str | None = None,
    time_limit: float | None = None,
    jobs: int | None = None,
    seed: int = 0,
    grain: str | None = None,
    verbose: bool | None = None,
    **reading: Any,
) -> Outcome:
    """Combine the clusterings in a file into one.

    Parameters
    ----------
    path : str or path
        The label matrix: one column of labels per clustering, one line per object. Empty cells are missing labels.
    method : str, default="consensus"
        One of `CONSENSUS_METHODS`.
    n_clusters : int, default=None
        The number of clusters, if it is known.
    grain : str, default=None
        The level of the grain to write and to report: "coarse", "medium", "fine", "agreed" or a number of groups.
        None is the answer.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        What the label -1 means.
    out : path, default=None
        Folder to write to; None means ``<name of the file>-partita``.
    output : str, default=None
        Where to write the file with the groups appended, see :func:`partita.cli.appended.write_appended`.
    time_limit : float, default=None
        Seconds.
    jobs : int, default=None
        Number of threads.
    seed : int, default=0
        Seed of the random numbers.
    verbose : bool, default=None
        Whether to show the progress; None means: in a terminal.
    **reading
        Options of :func:`partita.cli.sources.open_table`.

    Returns
    -------
    Outcome
    """
    check_grain(grain)
    check_output(output)
    if method not in CONSENSUS_METHODS:
        raise ValueError(f"no method {method!r}; there are {', '.join(CONSENSUS_METHODS)}")
    table = open_table(path, labels=True, **reading)
    import partita

    cls = getattr(partita, CONSENSUS_METHODS[method])
    known = cls().get_params()
    options: dict[str, Any] = {"noise": noise, **_running_options(method, known, time_limit, jobs)}
    if n_clusters is not None:
        if "n_clusters" not in known:
            raise ValueError(f"{method} finds its own number of clusters: leave --clusters out")
        options["n_clusters"] = n_clusters
    if "random_state" in known:
        options["random_state"] = seed
    model = cls(**options)
    interrupted = fit_until_interrupted(model, table.columns, verbose)
    where = Destination(out, output)
    return _write_clustering(
        "consensus", model, table.columns, table, where, interrupted, grain, noun="object"
    )


@shows_progress
def cluster(
    path: str | Path,
    *,
    kinds: Sequence[str] = (),
    family: Sequence[str] = (),
    n_clusters: int | None = None,
    inference: str = "auto",
    n_chains: int = 4,
    n_draws: int | None = None,
    burn_in: int | None = None,
    outliers: bool = False,
    time_limit: float | None = None,
    out: str | Path | None = None,
    output: str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    grain: str | None = None,
    verbose: bool | None = None,
    **reading: Any,
) -> Outcome:
    """Cluster the rows of a table with columns of any kind (:class:`partita.Mixture`).

    Parameters
    ----------
    path : str or path
        The table.
    kinds : sequence of str, default=()
        ``"column=kind"`` or ``"pattern*=kind"``; the kinds of the other columns are inferred. ``"kind"`` alone is
        that of all columns.
    family : sequence of str, default=()
        One family for all columns, as in :class:`partita.Mixture`, or ``"kind=family"``; empty means that it is chosen.
    n_clusters : int, default=None
        The number of groups, if it is known.
    inference : {"auto", "gibbs", "subclusters", "vb", "memoized", "cvb", "em", "beam"}, default="auto"
    n_chains : int, default=4
    n_draws : int, default=None
        Draws per chain; by default chains run until they agree.
    burn_in : int, default=None
        Iterations of each chain before its first draw; by default half of the iterations until the chains agree.
    outliers : bool, default=False
        Whether rows may belong to no group.
    time_limit : float, default=None
        Seconds.
    out, output, jobs, seed, grain, verbose, **reading
        As in :func:`consensus`.

    Returns
    -------
    Outcome
    """
    check_grain(grain)
    check_output(output)
    if inference not in INFERENCES:
        raise ValueError(f"no inference {inference!r}; there are {', '.join(INFERENCES)}")
    table, declared, X = open_typed(path, kinds, infer_ordinal=inference in ORDER_INFERENCES, **reading)
    from partita import Mixture
    from partita.fitting.engines import ENGINES

    options: dict[str, Any] = {"n_clusters": n_clusters, "inference": inference, "time_limit": time_limit}
    if inference == "auto" or ENGINES[inference].samples:
        options |= {"n_chains": n_chains, "n_draws": n_draws, "burn_in": burn_in, "outliers": outliers}
    model = Mixture(kinds=declared, random_state=seed, n_jobs=jobs, **options, **_family_option(family))
    interrupted = fit_until_interrupted(model, X, verbose)
    return _write_clustering("cluster", model, X, table, Destination(out, output), interrupted, grain)


@shows_progress
def views(
    path: str | Path,
    *,
    kinds: Sequence[str] = (),
    family: Sequence[str] = (),
    overlapping: bool = False,
    inference: str | None = None,
    n_chains: int | None = None,
    n_draws: int | None = None,
    burn_in: int | None = None,
    time_limit: float | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    output: str | None = None,
    seed: int = 0,
    verbose: bool | None = None,
    **reading: Any,
) -> Outcome:
    """Find several groupings of the rows of one table, each with its own columns.

    Parameters
    ----------
    path, kinds, family, time_limit, jobs, out, output, seed, verbose, **reading
        As in :func:`cluster`.
    overlapping : bool, default=False
        Whether a column may belong to several views (:class:`partita.OverlappingViews` instead of
        :class:`partita.CrossCat`).
    inference : str, default=None
        As in the estimator; None means its default.
    n_chains, n_draws, burn_in : int, default=None
        As in the estimator; None means its default.

    Returns
    -------
    Outcome
    """
    check_output(output)
    if overlapping and inference is not None:
        raise ValueError("--overlapping has one way of inference: leave --inference out")
    if inference not in (None, *VIEW_INFERENCES):
        raise ValueError(f"no inference {inference!r}; there are {', '.join(VIEW_INFERENCES)}")
    table, declared, X = open_typed(path, kinds, **reading)
    import partita

    cls = partita.OverlappingViews if overlapping else partita.CrossCat
    given: dict[str, Any] = {
        "inference": inference,
        "n_chains": n_chains,
        "n_draws": n_draws,
        "burn_in": burn_in,
    }
    given |= {"time_limit": time_limit, "n_jobs": jobs, **_family_option(family)}
    model = cls(random_state=seed, **{name: value for name, value in given.items() if value is not None})
    if "kinds" in model.get_params():
        model.set_params(kinds=declared)
    interrupted = fit_until_interrupted(model, X, verbose)
    return _write_views(model, X, table, Destination(out, output), interrupted)


@shows_progress
def tree(
    path: str | Path,
    *,
    kinds: Sequence[str] = (),
    family: Sequence[str] = (),
    n_clusters: int | None = None,
    time_limit: float | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    output: str | None = None,
    seed: int = 0,
    grain: str | None = None,
    verbose: bool | None = None,
    **reading: Any,
) -> Outcome:
    """Build a tree of the rows whose merges have posterior odds, and cut it at merges whose odds are below one.

    The estimator is :class:`partita.BayesianTree`.

    Parameters
    ----------
    path, kinds, family, n_clusters, time_limit, jobs, out, output, seed, grain, verbose, **reading
        As in :func:`cluster`.

    Returns
    -------
    Outcome
    """
    check_grain(grain)
    check_output(output)
    table, declared, X = open_typed(path, kinds, **reading)
    from partita import BayesianTree

    model = BayesianTree(
        n_clusters=n_clusters,
        kinds=declared,
        random_state=seed,
        time_limit=time_limit,
        n_jobs=jobs,
        **_family_option(family),
    )
    interrupted = fit_until_interrupted(model, X, verbose, can_stop=False)
    outcome = _write_clustering("tree", model, X, table, Destination(out, output), interrupted, grain)
    found = model.diagnostics_
    outcome.figures.update(
        grade=found.grade,
        n_clusters_of_searches=list(found.n_clusters_of_searches),
        n_clusters_posterior_among="the partitions of this tree",
    )
    return outcome


@shows_progress
def blocks(
    path: str | Path,
    *,
    family: str | None = None,
    n_chains: int | None = None,
    n_draws: int | None = None,
    burn_in: int | None = None,
    time_limit: float | None = None,
    jobs: int | None = None,
    out: str | Path | None = None,
    output: str | None = None,
    seed: int = 0,
    verbose: bool | None = None,
    **reading: Any,
) -> Outcome:
    """Group the rows and the columns of a matrix (:class:`partita.RelationalBlocks`); all cells are of one kind.

    Parameters
    ----------
    path, time_limit, jobs, out, output, seed, verbose, **reading
        As in :func:`cluster`.
    family : str, default=None
        That of the cells, as in the estimator; None means that it is chosen.
    n_chains, n_draws, burn_in : int, default=None
        As in the estimator; None means its default.

    Returns
    -------
    Outcome
    """
    check_output(output)
    table = open_table(path, mark_codes=True, **reading)
    matrix = table.matrix()
    from partita import RelationalBlocks

    given: dict[str, Any] = {"family": family, "n_chains": n_chains, "n_draws": n_draws, "burn_in": burn_in}
    given |= {"time_limit": time_limit, "n_jobs": jobs}
    model = RelationalBlocks(
        random_state=seed, **{name: value for name, value in given.items() if value is not None}
    )
    interrupted = fit_until_interrupted(model, matrix, verbose)
    rows, columns = np.asarray(model.row_labels_), np.asarray(model.column_labels_)
    K, L = len(np.unique(rows)), len(np.unique(columns))
    words = f"{count(K, 'group')} of {len(rows)} rows and {count(L, 'group')} of {len(columns)} columns."
    figures = {"method": "RelationalBlocks", "n_row_clusters": K, "n_column_clusters": L}
    where = Destination(out, output)
    folder = where.folder(table)
    table = noting_replaced(table, folder, "blocks")
    groups = {"group": numbered(rows)}
    write_columns(
        folder / "rows.csv", named_rows(table, "row", groups), escape_formulas=table.escape_formulas
    )
    write_columns(
        folder / "columns.csv",
        {"column": np.array(list(table.columns)), "group": numbered(columns)},
        escape_formulas=table.escape_formulas,
    )
    files = {
        str(folder / "rows.csv"): "the group of each row",
        str(folder / "columns.csv"): "the group of each column",
    }
    files |= save_model(model, folder, table, "blocks", interrupted)
    files |= write_report(model, matrix, table, folder)
    return _finished(Outcome(words, figures, files, interrupted=interrupted), model, table, where, groups)


# ---- fitting and writing, for all commands -------------------------------------------------------------------------


def fit_until_interrupted(model: Any, X: Any, verbose: bool | None, *, can_stop: bool = True) -> bool:
    """Fit; returns whether Ctrl-C ended the fit early.

    Estimators that have both `callback` and `keep_partial` stop after the current iteration and keep their result.
    In all others, and with ``can_stop=False`` (for fits that spend most of their time outside of iterations), Ctrl-C
    raises KeyboardInterrupt. Python's warnings are not shown: the fit report has them.
    """
    parameters = model.get_params()
    can_stop = can_stop and "callback" in parameters and "keep_partial" in parameters
    with FitMonitor(can_stop=can_stop) as monitor, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "callback" in parameters:
            model.set_params(callback=monitor, verbose=verbose)
        tell_stage(f"fitting {type(model).__name__}")
        model.fit(X)
    if "callback" in parameters:
        model.set_params(callback=None, verbose=None)
    tell_stage("writing the report")
    if monitor.stopped:
        model.fit_report_.notes = [
            replace(note, message=note.message.replace("by the callback", "by Ctrl-C"))
            for note in model.fit_report_
        ]
        model.fit_report_.add("interrupted", INTERRUPTED_NOTE, level="warning")
    return monitor.stopped


def _running_options(
    method: str, known: Collection[str], time_limit: float | None, jobs: int | None
) -> dict[str, Any]:
    """The options of how a fit runs; an error names those that a method does not have."""
    given = {"time_limit": time_limit, "n_jobs": jobs}
    for name, option in (("time_limit", "--time-limit"), ("n_jobs", "--jobs")):
        if given[name] is not None and name not in known:
            raise ValueError(f"{method} has no {option}, because it takes little time: leave it out")
    return {name: value for name, value in given.items() if value is not None}


def _family_option(family: Sequence[str]) -> dict[str, Any]:
    """``["gaussian"]`` or ``["real=gaussian", "count=poisson"]`` as a parameter; none if nothing is given."""
    if not family:
        return {}
    if len(family) == 1 and "=" not in family[0]:
        return {"family": family[0]}
    pairs = [text.partition("=")[::2] for text in family]
    for text, (kind, name) in zip(family, pairs, strict=True):
        if kind not in KINDS or not name:
            raise ValueError(
                f"--family {text}: write --family family for all columns, or --family kind=family"
            )
    return {"family": dict(pairs)}


def check_grain(grain: str | None) -> None:
    """Refuse what cannot be a level of a grain, before anything is read."""
    if grain is not None and grain not in GRAINS and not (grain.isdigit() and int(grain) > 0):
        raise ValueError(f"no grain {grain!r}: give {', '.join(GRAINS)} or a number of groups")


def _missing_level(model: Any, grain: str | None) -> str | None:
    """Why a fitted model has no such level; None where it has."""
    from partita.summaries.context import level_of

    try:
        if grain is not None:
            level_of(model, grain)
    except ValueError as error:
        return str(error)
    return None


def _write_clustering(
    command: str,
    model: Any,
    X: Any,
    table: InputTable,
    where: Destination,
    interrupted: bool,
    grain: str | None = None,
    noun: str = "row",
) -> Outcome:
    missing = _missing_level(model, grain)
    if missing:  # the fit may have taken hours: the answer is written before the error is raised
        asked, grain = grain, None
    context = context_of(model, X, table, grain)
    folder = where.folder(table)
    table = noting_replaced(table, folder, command)
    groups = {"group": numbered(context.model.labels_)}
    if hasattr(context.model, "confidence_"):
        groups["confidence"] = np.asarray(context.model.confidence_)
        if "provisional" in model.fit_report_:  # one state of the chains, which agrees with itself
            groups["confidence"] = np.full(len(groups["group"]), np.nan)
    if context.alternatives:
        groups |= {row.name: numbered(model.grain_.at(row.n_clusters)) for row in context.alternatives}
    write_columns(
        folder / LABELS_FILE, named_rows(table, noun, groups), escape_formulas=table.escape_formulas
    )
    scales = " and of the alternatives" if context.alternatives else ""
    files = {str(folder / LABELS_FILE): f"the group and the confidence of each {noun}{scales}"}
    files |= save_model(model, folder, table, command, interrupted, grain)
    files |= write_page(context, folder / REPORT_FILE, table.path.name)
    figures = clustering_figures(context)
    if command != "consensus":
        figures["kinds"] = list_kinds(model.schema_)
        files |= write_account(model, folder, table)
    account = model.schema_.describe() if command != "consensus" else ""
    words, lines = clustering_sentences(context), clustering_lines(context)
    outcome = Outcome(words, figures, files, member_notes(context), interrupted, account, lines)
    finished = _finished(outcome, model, table, where, groups)
    if missing:
        groups_there = count(int(context.model.n_clusters_), "group")
        raise ValueError(f"--grain {asked}: {missing}; the answer, {groups_there}, is written to {folder}")
    return finished


def _write_views(model: Any, X: Any, table: InputTable, where: Destination, interrupted: bool) -> Outcome:
    from partita.summaries.views import number_of_views, view_map

    found = view_map(model)
    assert found is not None
    names = np.array(list(table.columns), dtype=object)
    lines, views = _view_lines(model, found)
    diagnosis = model.diagnostics_.sentence
    head = f"{number_of_views(found)}; {table.n_rows} rows and {len(names)} columns. {diagnosis}"
    words = "\n".join([head.rstrip(), *lines])
    folder = where.folder(table)
    table = noting_replaced(table, folder, "views")
    of_rows: dict[str, Any] = {}
    for v in model.counted_views_.tolist():
        of_rows[f"view_{v + 1}"] = numbered(model.view_labels_[:, v])
        of_rows[f"view_{v + 1}_confidence"] = np.asarray(model.confidence_[:, v])
    of_columns = {f"view_{v + 1}": model.feature_views_[:, v] for v in model.counted_views_.tolist()}
    write_columns(
        folder / LABELS_FILE, named_rows(table, "row", of_rows), escape_formulas=table.escape_formulas
    )
    if not write_account(model, folder, table, of_columns):
        write_columns(
            folder / COLUMNS_FILE, {"column": names, **of_columns}, escape_formulas=table.escape_formulas
        )
    files = {
        str(folder / LABELS_FILE): "the group and the confidence of each row in each view",
        str(folder / COLUMNS_FILE): "the probability of each column in each view, and how it was read",
    }
    files |= save_model(model, folder, table, "views", interrupted)
    files |= write_report(model, X, table, folder)
    after = {str(n): round(p, 6) for n, p in model.n_views_posterior_.items()}
    figures: dict[str, Any] = {"method": type(model).__name__, "n_views": len(views)}
    figures |= {"n_views_posterior": after, "views": views}
    if hasattr(model, "schema_"):
        figures["kinds"] = list_kinds(model.schema_)
    account = model.schema_.describe() if hasattr(model, "schema_") else ""
    outcome = Outcome(words, figures, files, interrupted=interrupted, account=account)
    return _finished(outcome, model, table, where, of_rows)


def _view_lines(model: Any, found: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """What the terminal says about each view and about the columns in none, and the figures of the views."""
    from partita.summaries.context import CONFIDENCE_THRESHOLD
    from partita.summaries.grains import alternatives_rows
    from partita.summaries.views import lone_columns

    grains = list(getattr(model, "grain_", ()))
    lines, views = [], []
    for v in model.counted_views_.tolist():
        own, sizes = [name for name, _ in found.views[v].columns], found.views[v].sizes
        rows = alternatives_rows(grains[v], len(sizes)) if v < len(grains) else []
        confidence = np.asarray(model.confidence_[:, v])
        unsure = None if np.isnan(confidence).any() else int((confidence < CONFIDENCE_THRESHOLD).sum())
        views.append(
            {
                "view": v + 1,
                "n_clusters": len(sizes),
                "sizes": sizes.tolist(),
                "columns": own,
                "n_uncertain": unsure,
                "alternatives": alternatives_figures(rows),
            }
        )
        also = ", ".join(f"{row.n_clusters} ({row.name})" for row in rows if not row.is_answer)
        line = f"  view {v + 1}: {count(len(sizes), 'group')} by {join_names(own)}"
        line += "" if unsure is None else f"; {count(unsure, 'uncertain row')}"
        lines.append(line + (f"; also {also}" if also else ""))
    alone, without = lone_columns(found)
    if alone:
        lines.append(f"  columns with groups of their own, in no view: {join_names(alone)}")
    if without:
        lines.append(f"  columns without groups of rows: {join_names(without)}")
    return lines, views


def _finished(
    outcome: Outcome, model: Any, table: InputTable, where: Destination, groups: dict[str, Any]
) -> Outcome:
    """Write the table with its groups, and add what is known after the fit: notes, and why it ended early."""
    from partita.estimator import early_end

    appended = write_appended(where.output, table, groups, where.folder(table) / "table")
    return outcome._replace(
        files=outcome.files | appended.files,
        notes=[*outcome.notes, *notes_of(model, table), *appended.notes],
        stopped=early_end(model),
        words_aside=where.output == STANDARD,
    )
