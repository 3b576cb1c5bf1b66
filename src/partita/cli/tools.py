"""The commands that fit no model of their own: ensembles, comparisons, reports, the demo, compilation."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from partita.cli.clustering import check_grain, cluster
from partita.cli.labels import as_labels
from partita.cli.output import Outcome, numbered, write_columns
from partita.cli.progress import FitMonitor, shows_progress
from partita.cli.results import REPORT_FILE, SOURCE_FILE, find_model, write_page
from partita.cli.sources import InputTable, open_table, open_typed
from partita.cli.standard_input import local_file
from partita.table import FileError, read_file
from partita.wording import count

USUAL_LABELS = ("group", "cluster", "label", "labels", "class")  # names of columns of labels


@shows_progress
def ensemble(
    path: str | Path,
    out: str | Path,
    *,
    kind: str = "kmeans",
    n_members: int = 20,
    n_clusters: int | None = None,
    jobs: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    verbose: bool | None = None,
    **reading: Any,
) -> Outcome:
    """Cluster one table many times and write the label matrix.

    Parameters
    ----------
    path : str or path
        The table.
    out : path
        The label matrix to write: .csv, .tsv, .parquet, .arrow or .npy.
    kind : {"kmeans", "subspaces", "bootstrap", "projections", "mixed"}, default="kmeans"
        How the clusterings differ; "mixed" uses several algorithms in turn.
    n_members : int, default=20
        Number of clusterings.
    n_clusters : int, default=None
        Number of clusters of each clustering; None means that it varies.
    jobs, time_limit, seed, verbose, **reading
        As in :func:`partita.cli.clustering.consensus`.

    Returns
    -------
    Outcome
    """
    makers = {
        "kmeans": "generate",
        "subspaces": "subspace_ensemble",
        "bootstrap": "bootstrap_ensemble",
        "projections": "projection_ensemble",
        "mixed": "mixed_ensemble",
    }
    if kind not in makers:
        raise ValueError(f"no ensemble {kind!r}; there are {', '.join(makers)}")
    table, _, X = open_typed(path, **reading)
    from partita import ensembles

    options: dict[str, Any] = {} if n_clusters is None else {"n_clusters": n_clusters}
    with FitMonitor(time_limit=time_limit) as monitor, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = getattr(ensembles, makers[kind])(
            X,
            n_members=n_members,
            random_state=seed,
            n_jobs=jobs,
            callback=monitor,
            verbose=verbose,
            **options,
        )
    columns = {} if table.names is None else {table.id_column or "id": table.names}
    columns |= {f"member_{m + 1}": numbered(labels[:, m]) for m in range(labels.shape[1])}
    write_columns(Path(out), columns, escape_formulas=table.escape_formulas)
    sizes = [len(np.unique(member[member >= 0])) for member in labels.T]
    words = f"{labels.shape[1]} clusterings of {table.n_rows} rows, with {min(sizes)} to {max(sizes)} clusters each."
    figures = {"n_objects": table.n_rows, "n_members": labels.shape[1], "n_clusters": sizes}
    notes = [note.message for note in table.notes]
    outcome = Outcome(words, figures, {str(out): "the label matrix"}, notes, monitor.interrupted)
    if not monitor.stopped:
        return outcome
    from partita.estimator import EarlyEnd

    how = "by Ctrl-C" if monitor.interrupted else "by the time limit"
    message = f"{labels.shape[1]} of {n_members} clusterings were made before the command was stopped {how}"
    return outcome._replace(stopped=EarlyEnd("interrupted" if monitor.interrupted else "time_limit", message))


def compare(
    first: str | Path, second: str | Path, *, column: str | None = None, second_column: str | None = None
) -> Outcome:
    """Compare two clusterings of the same objects.

    Parameters
    ----------
    first, second : str or path
        Files with one line per object, in the same order.
    column, second_column : str, default=None
        The column of labels; None means the one called cluster, label, labels or class, otherwise the last.

    Returns
    -------
    Outcome
    """
    from partita import metrics

    (one, a), (two, b) = _labels_of(first, column), _labels_of(second, second_column or column)
    if len(a) != len(b):
        raise FileError(f"{first} has {len(a)} rows and {second} {len(b)}: both must hold the same objects")
    known = np.array([x is not None and y is not None for x, y in zip(a.tolist(), b.tolist(), strict=True)])
    a, b = a[known], b[known]
    if not len(a):
        raise FileError(f"{first} and {second}: no object has a label in both")
    scores = {
        "adjusted_rand": metrics.adjusted_rand(a, b),
        "normalized_mutual_info": metrics.normalized_mutual_info(a, b),
        "adjusted_mutual_info": metrics.adjusted_mutual_info(a, b),
        "variation_of_information": metrics.variation_of_information(a, b),
        "pairwise_f": metrics.pairwise_f(a, b),
        "error_rate": metrics.error_rate(a, b),
    }
    lines = [f"  {name.replace('_', ' '):26} {value:.4f}" for name, value in scores.items()]
    K, L = len(set(a.tolist())), len(set(b.tolist()))
    words = (
        f"{len(a)} objects: {count(K, 'cluster')} in column {one!r}, {count(L, 'cluster')} in column {two!r}."
    )
    figures = {
        "n_objects": len(a),
        "n_clusters": [K, L],
        "columns": [one, two],
        **{k: float(v) for k, v in scores.items()},
    }
    return Outcome("\n".join([words, *lines]), figures)


def _labels_of(path: str | Path, column: str | None) -> tuple[str, np.ndarray]:
    with local_file(path) as (local, format, _):
        table = read_file(local, exact=True, format=format)
    if column is None:
        usual = [name for name in table.columns if name.lower() in USUAL_LABELS]
        column = usual[0] if usual else list(table.columns)[-1]
    values = as_labels(table.take([column], path).columns[column], column, Path(path))
    labels = np.empty(len(values), dtype=object)
    labels[:] = [None if value is None else str(value) for value in values.tolist()]
    return column, labels


def report(
    model: str | Path,
    *,
    table: str | Path | None = None,
    out: str | Path | None = None,
    title: str | None = None,
    grain: str | None = None,
) -> Outcome:
    """Write the report of a saved model.

    Parameters
    ----------
    model : str or path
        A folder that a command wrote, or a file that ``save`` wrote.
    table : str or path, default=None
        The table that was fitted; None means the file that the command read, if it still exists.
    out : path, default=None
        The page to write; None means ``report.html`` in the folder of the model.
    title : str, default=None
        Heading of the page.
    grain : str, default=None
        The level of the grain at which the page begins: "coarse", "medium", "fine", "agreed" or a number. None means
        that of the command.

    Returns
    -------
    Outcome
    """
    check_grain(grain)
    path = find_model(model)
    from partita import load
    from partita.summaries.context import build_context

    fitted = load(path)
    source = path.with_name(SOURCE_FILE)
    recorded_grain = json.loads(source.read_text(encoding="utf-8")).get("grain") if source.exists() else None
    X, fitted_table = _fitted_table(fitted, source, table)
    if fitted_table is not None:
        context = build_context(
            fitted, X, truth=fitted_table.truth, names=fitted_table.names, at=grain or recorded_grain
        )
        title = title or fitted_table.path.name
    else:
        context = build_context(fitted, X, at=grain or recorded_grain)
    files = write_page(context, Path(out) if out else path.with_name(REPORT_FILE), title)
    return Outcome("The report is written.", {"method": type(fitted).__name__}, files)


def _fitted_table(fitted: Any, source_file: Path, table: str | Path | None) -> tuple[Any, InputTable | None]:
    """What the model was fitted to, and its file with names and classes where the command recorded it."""
    X: Any = None
    source = None
    holds_labels = type(fitted).__module__.startswith("partita.consensus") and hasattr(
        fitted, "member_weights_"
    )
    if table is not None:
        names = list(fitted.schema_.names) if hasattr(fitted.schema_, "names") else ()
        X = open_table(table, columns=names, labels=holds_labels).columns
    elif source_file.exists():
        recorded = json.loads(source_file.read_text(encoding="utf-8"))
        file = source_file.parent / (recorded["file"] or "")  # relative to the folder
        if file.is_file():
            source = open_table(
                file,
                columns=recorded["columns"],
                id_column=recorded.get("id"),
                truth=recorded.get("truth"),
                encoding=recorded.get("encoding"),
                skip=recorded.get("skip", ()),
                separator=recorded.get("separator"),
                key=recorded.get("key"),
                format=recorded.get("format"),
                na=recorded.get("na", ()),
                labels=holds_labels,
                mark_codes=recorded.get("command") == "blocks",
            )
            X = source.matrix() if recorded.get("command") == "blocks" else source.columns
    return X, source


def demo(
    out: str | Path = "partita-demo",
    *,
    time_limit: float | None = None,
    jobs: int | None = None,
    seed: int = 0,
    verbose: bool | None = None,
) -> Outcome:
    """Cluster the table that comes with the package (600 visitors of a museum) and write the report.

    Parameters
    ----------
    out : path, default="partita-demo"
        Folder to write to.
    time_limit : float, default=None
        Seconds.
    jobs : int, default=None
        Number of threads.
    seed : int, default=0
        Seed of the random numbers.
    verbose : bool, default=None
        Whether to show the progress; None means: in a terminal.

    Returns
    -------
    Outcome
    """
    from partita.datasets import load_visitors

    visitors = load_visitors()
    folder = Path(out)
    groups = np.array(visitors.target_names, dtype=object)[visitors.target]
    write_columns(folder / "visitors.csv", {**_texts(visitors.frame), "planted": groups})
    found = cluster(
        folder / "visitors.csv",
        kinds=["rooms_visited=count", "photos_taken=count"],
        truth="planted",
        out=folder,
        time_limit=time_limit,
        jobs=jobs,
        seed=seed,
        verbose=verbose,
    )
    return found._replace(files={str(folder / "visitors.csv"): "the table", **found.files})


def _texts(columns: dict[str, Any]) -> dict[str, Any]:
    return {
        name: np.array(["" if value is None else value for value in values.tolist()], dtype=object)
        if values.dtype.kind == "O"
        else values
        for name, values in columns.items()
    }
