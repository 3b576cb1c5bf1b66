"""The commands that fit a model: each reads a file, fits, and writes labels, model and report into a folder."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from partita.cli.output import Outcome, describe, in_words, write_columns
from partita.cli.progress import Watch
from partita.cli.sources import InputTable, kinds_of, open_table, shown_kinds, some_names
from partita.summaries.words import count

__all__ = ["CONSENSUS_METHODS", "as_labels", "blocks", "cluster", "consensus", "tree", "views", "write_page"]

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
MODEL, SOURCE, LABELS, REPORT = "model.npz", "source.json", "labels.csv", "report.html"


def consensus(
    path: str | Path,
    *,
    method: str = "consensus",
    n_clusters: int | None = None,
    noise: str = "missing",
    out: str | Path | None = None,
    seed: int = 0,
    quiet: bool = False,
    **reading: Any,
) -> Outcome:
    """One clustering from many: a file with a column of labels for each clustering, a line for each object.

    Parameters
    ----------
    path : str or path
        The label matrix; empty cells and -1 are missing labels.
    method : str
        One of `CONSENSUS_METHODS`.
    n_clusters : int, optional
        The number of clusters, where it is known.
    noise : {"missing", "cluster", "singletons"}
        What the label -1 means.
    out : path, optional
        Folder to write to; by default ``<name of the file>-partita``.
    seed : int
    quiet : bool
        No progress.
    **reading
        Options of :func:`partita.cli.sources.open_table`.

    Returns
    -------
    Outcome
    """
    import partita

    if method not in CONSENSUS_METHODS:
        raise ValueError(f"no method {method!r}; there are {', '.join(CONSENSUS_METHODS)}")
    table = open_table(path, **reading)
    cls = getattr(partita, CONSENSUS_METHODS[method])
    options: dict[str, Any] = {"noise": noise}
    if n_clusters is not None:
        if "n_clusters" not in cls().get_params():
            raise ValueError(f"{method} finds its own number of clusters: leave --clusters out")
        options["n_clusters"] = n_clusters
    if "random_state" in cls().get_params():
        options["random_state"] = seed
    columns = {name: as_labels(values) for name, values in table.columns.items()}
    with Watch("start", quiet=quiet) as watch:
        if "callback" in cls().get_params():
            options["callback"] = watch
        model = _fit(cls(**options), columns)
    return _finish("consensus", model, table, out, watch, noun="object", X=columns)


def cluster(
    path: str | Path,
    *,
    kinds: Sequence[str] = (),
    n_clusters: int | None = None,
    inference: str = "gibbs",
    n_chains: int = 4,
    n_draws: int = 200,
    burn_in: int = 100,
    outliers: bool = False,
    time_limit: float | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    jobs: int | None = None,
    quiet: bool = False,
    **reading: Any,
) -> Outcome:
    """Groups of the rows of a table with columns of any kind, and how sure they are (:class:`partita.Mixture`).

    Parameters
    ----------
    path : str or path
    kinds : sequence of str
        ``"column=kind"``; the kinds of the other columns are inferred.
    n_clusters : int, optional
        The number of groups, where it is known.
    inference : {"gibbs", "subclusters", "vb", "cvb", "em", "beam"}
    n_chains, n_draws, burn_in : int
        Of the chains.
    outliers : bool
        Whether rows may belong to no group.
    time_limit : float, optional
        Seconds.
    out, seed, quiet, **reading
        As in :func:`consensus`.
    jobs : int, optional
        Threads.

    Returns
    -------
    Outcome
    """
    from partita import Mixture
    from partita.fitting.engines import ENGINES

    table = open_table(path, **reading)
    options: dict[str, Any] = {"n_clusters": n_clusters, "inference": inference, "time_limit": time_limit}
    samples = inference in ENGINES and ENGINES[inference].samples
    if samples:
        options |= {"n_chains": n_chains, "n_draws": n_draws, "burn_in": burn_in, "outliers": outliers}
    total = burn_in + n_draws if samples else None
    with Watch("chain" if total else "start", total, quiet) as watch:
        model = Mixture(
            kinds=kinds_of(kinds, table),
            callback=watch,
            keep_partial=True,
            random_state=seed,
            n_jobs=jobs,
            **options,
        )
        _fit(model, table.columns)
    return _finish("cluster", model, table, out, watch, X=table.columns)


def views(
    path: str | Path,
    *,
    kinds: Sequence[str] = (),
    overlapping: bool = False,
    inference: str | None = None,
    n_chains: int | None = None,
    n_draws: int | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    quiet: bool = False,
    **reading: Any,
) -> Outcome:
    """Several groupings of one table, each with its own columns (CrossCat, or views that share columns).

    Parameters
    ----------
    path, kinds, out, seed, quiet, **reading
        As in :func:`cluster`.
    overlapping : bool
        Whether a column may serve several views (:class:`partita.OverlappingViews`).
    inference : str, optional
        Of :class:`partita.CrossCat`.
    n_chains, n_draws : int, optional

    Returns
    -------
    Outcome
    """
    import partita

    table = open_table(path, **reading)
    cls = partita.OverlappingViews if overlapping else partita.CrossCat
    given = {"inference": inference, "n_chains": n_chains, "n_draws": n_draws}
    model = cls(random_state=seed, **{name: value for name, value in given.items() if value is not None})
    known = model.get_params()
    if "kinds" in known:
        model.set_params(kinds=kinds_of(kinds, table))
    with Watch(quiet=quiet) as watch:
        if "callback" in known:
            model.set_params(callback=watch)
        _fit(model, table.columns)
    return _finish_views(model, table, out, watch)


def tree(
    path: str | Path,
    *,
    kinds: Sequence[str] = (),
    out: str | Path | None = None,
    seed: int = 0,
    quiet: bool = False,
    **reading: Any,
) -> Outcome:
    """A tree of the rows whose merges have odds (:class:`partita.BayesianTree`), cut where they fall below one half.

    Parameters
    ----------
    path, kinds, out, seed, quiet, **reading
        As in :func:`cluster`.

    Returns
    -------
    Outcome
    """
    from partita import BayesianTree

    table = open_table(path, **reading)
    model = BayesianTree(kinds=kinds_of(kinds, table))
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    with Watch(quiet=quiet) as watch:
        _fit(model, table.columns)
    return _finish("tree", model, table, out, watch, X=table.columns)


def blocks(
    path: str | Path,
    *,
    out: str | Path | None = None,
    seed: int = 0,
    quiet: bool = False,
    **reading: Any,
) -> Outcome:
    """Rows and columns grouped together (:class:`partita.RelationalBlocks`); all cells of one kind.

    Parameters
    ----------
    path, out, seed, quiet, **reading
        As in :func:`cluster`.

    Returns
    -------
    Outcome
    """
    from partita import RelationalBlocks

    table = open_table(path, **reading)
    matrix = table.matrix()
    model = RelationalBlocks(random_state=seed)
    with Watch(quiet=quiet) as watch:
        if "callback" in model.get_params():
            model.set_params(callback=watch)
        _fit(model, matrix)
    rows, columns = np.asarray(model.row_labels_), np.asarray(model.column_labels_)
    K, L = len(np.unique(rows)), len(np.unique(columns))
    words = f"{count(K, 'group')} of {len(rows)} rows and {count(L, 'group')} of {len(columns)} columns."
    figures = {"method": "RelationalBlocks", "n_row_clusters": K, "n_column_clusters": L}
    folder = _folder(out, table)
    files = {
        str(folder / "rows.csv"): "the group of each row",
        str(folder / "columns.csv"): "and of each column",
    }
    write_columns(folder / "rows.csv", {"row": _names(table), "group": rows})
    write_columns(folder / "columns.csv", {"column": np.array(list(table.columns)), "group": columns})
    files |= _save(model, folder, table, "blocks")
    files |= write_page(model, folder / REPORT, matrix, table)
    return Outcome(words, figures, files, _notes(model, table), watch.stopped)


# ---- what they share ---------------------------------------------------------------------------------------------


def _fit(model: Any, X: Any) -> Any:
    """Fit without Python's warnings: what they say is in the fit report, and is shown from there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def as_labels(values: np.ndarray) -> np.ndarray:
    """Labels of one member: whole numbers are integers again, so that -1 keeps its meaning; holes are None."""
    if values.dtype.kind != "f":
        return values
    seen = ~np.isnan(values)
    if (values[seen] != np.rint(values[seen])).any():
        raise ValueError(
            "a label is a name or a whole number, and there are fractions: leave columns that are no clusterings out "
            "with --ignore, or use `partita cluster` for a table of measurements"
        )
    labels = np.full(len(values), None, dtype=object)
    labels[seen] = values[seen].astype(np.int64).tolist()
    return labels if not seen.all() else values.astype(np.int64)


def _finish(
    command: str, model: Any, table: InputTable, out: Any, watch: Watch, *, noun: str = "row", X: Any = None
) -> Outcome:
    figures = describe(model, X)
    words = in_words(model, table.n_rows, noun, X)
    if table.truth is not None:
        from partita.metrics import adjusted_rand

        figures["adjusted_rand"] = adjusted_rand(table.truth, model.labels_, missing="drop")
        words += f" Against the known classes the adjusted Rand index is {figures['adjusted_rand']:.2f}."
    folder = _folder(out, table)
    labels = {noun: _names(table), "cluster": model.labels_}
    if hasattr(model, "confidence_"):
        labels["confidence"] = np.asarray(model.confidence_)
    write_columns(folder / LABELS, labels)
    files = {str(folder / LABELS): f"the cluster of each {noun} and how sure it is"}
    files |= _save(model, folder, table, command)
    files |= write_page(model, folder / REPORT, X, table)
    kinds = shown_kinds(model.schema_) if command != "consensus" else ""
    return Outcome(
        words, figures | ({"kinds": kinds} if kinds else {}), files, _notes(model, table), watch.stopped
    )


def _finish_views(model: Any, table: InputTable, out: Any, watch: Watch) -> Outcome:
    labels, members = np.asarray(model.view_labels_), np.asarray(model.feature_views_)
    names = np.array(list(table.columns), dtype=object)
    lines, alone = [], []
    views: list[dict[str, Any]] = []
    for v in range(labels.shape[1]):
        own = [str(name) for name, share in zip(names, members[:, v], strict=True) if share > 0.5]
        K = len(np.unique(labels[:, v]))
        views.append({"n_clusters": K, "columns": own})
        if K > 1:
            lines.append(f"  view {v + 1}: {K} groups by {some_names(own)}")
        else:
            alone += own
    if alone:
        lines.append(f"  on their own, telling no rows apart: {some_names(alone)}")
    n_views = sum(view["n_clusters"] > 1 for view in views)
    words = "\n".join([f"{count(n_views, 'view')} of {table.n_rows} rows and {len(names)} columns.", *lines])
    folder = _folder(out, table)
    of_rows = {"row": _names(table)} | {f"view_{v + 1}": labels[:, v] for v in range(labels.shape[1])}
    of_columns = {"column": names} | {f"view_{v + 1}": members[:, v] for v in range(labels.shape[1])}
    write_columns(folder / LABELS, of_rows)
    write_columns(folder / "columns.csv", of_columns)
    files = {
        str(folder / LABELS): "the cluster of each row in each view",
        str(folder / "columns.csv"): "how surely each column belongs to each view",
    }
    files |= _save(model, folder, table, "views")
    files |= write_page(model, folder / REPORT, table.columns, table)
    figures: dict[str, Any] = {"method": type(model).__name__, "n_views": n_views, "views": views}
    if hasattr(model, "schema_"):
        figures["kinds"] = shown_kinds(model.schema_)
    return Outcome(words, figures, files, _notes(model, table), watch.stopped)


def write_page(
    model: Any, path: Path, X: Any, table: InputTable | None, title: str | None = None
) -> dict[str, str]:
    """The report, and what it is."""
    from partita.report import write_report

    if table is None:
        write_report(model, path, X=X, title=title)
    else:
        write_report(model, path, X=X, title=title or table.path.name, truth=table.truth, names=table.names)
    return {str(path): "the whole story: open it in a browser"}


def _folder(out: Any, table: InputTable) -> Path:
    folder = Path(out) if out else table.path.with_name(f"{table.path.name.split('.')[0]}-partita")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _names(table: InputTable) -> np.ndarray:
    return np.arange(table.n_rows) if table.names is None else table.names


def _save(model: Any, folder: Path, table: InputTable, command: str) -> dict[str, str]:
    if "callback" in model.get_params():
        model.set_params(callback=None)
    model.save(folder / MODEL)
    source: dict[str, Any] = {
        "command": command,
        "file": str(table.path.resolve()),
        "columns": list(table.columns),
    }
    source |= {"id": table.id_column, "truth": table.truth_column}
    (folder / SOURCE).write_text(json.dumps(source, indent=1) + "\n", encoding="utf-8")
    return {str(folder / MODEL): "the model; partita.load() reads it"}


def _notes(model: Any, table: InputTable) -> list[str]:
    warned = [note.message for note in model.fit_report_ if note.level == "warning"]
    return [table.note, *warned] if table.note else warned
