"""The commands around the models: make an ensemble, compare clusterings, write a report, show a demo, compile."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from partita.cli.clustering import MODEL, REPORT, SOURCE, as_labels, cluster, write_page
from partita.cli.output import Outcome, write_columns
from partita.cli.progress import Watch
from partita.cli.sources import open_table
from partita.summaries.words import count
from partita.table import FileError, read_file

__all__ = ["compare", "demo", "ensemble", "report", "warm"]


def ensemble(
    path: str | Path,
    out: str | Path,
    *,
    kind: str = "kmeans",
    n_members: int = 20,
    n_clusters: int | None = None,
    seed: int = 0,
    quiet: bool = False,
    **reading: Any,
) -> Outcome:
    """Many clusterings of one table, written as a label matrix.

    Parameters
    ----------
    path : str or path
        The table.
    out : path
        The label matrix to write: .csv, .tsv, .parquet, .arrow or .npy.
    kind : str
        "kmeans", "subspaces", "bootstrap", "projections", or "mixed" for several algorithms in turn.
    n_members : int
    n_clusters : int, optional
        Of each member; by default they differ.
    seed, quiet, **reading
        As in :func:`partita.cli.clustering.consensus`.

    Returns
    -------
    Outcome
    """
    from partita import ensembles

    makers: dict[str, Any] = {
        "kmeans": ensembles.generate,
        "subspaces": ensembles.subspace_ensemble,
        "bootstrap": ensembles.bootstrap_ensemble,
        "projections": ensembles.projection_ensemble,
        "mixed": ensembles.mixed_ensemble,
    }
    if kind not in makers:
        raise ValueError(f"no ensemble {kind!r}; there are {', '.join(makers)}")
    table = open_table(path, **reading)
    options: dict[str, Any] = {} if n_clusters is None else {"n_clusters": n_clusters}
    with Watch("member", quiet=quiet) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = makers[kind](
            table.columns, n_members=n_members, random_state=seed, callback=watch, **options
        )
    columns = {} if table.names is None else {"id": table.names}
    columns |= {f"member_{m + 1}": labels[:, m] for m in range(labels.shape[1])}
    write_columns(Path(out), columns)
    sizes = [len(np.unique(member[member >= 0])) for member in labels.T]
    words = f"{labels.shape[1]} clusterings of {table.n_rows} rows, with {min(sizes)} to {max(sizes)} clusters each."
    figures = {"n_objects": table.n_rows, "n_members": labels.shape[1], "n_clusters": sizes}
    return Outcome(
        words, figures, {str(out): "the label matrix"}, [table.note] if table.note else [], watch.stopped
    )


def compare(
    first: str | Path, second: str | Path, *, column: str | None = None, second_column: str | None = None
) -> Outcome:
    """How far two clusterings of the same objects agree.

    Parameters
    ----------
    first, second : str or path
        Files with a line for each object, in the same order (or with equal ids in their first column).
    column, second_column : str, optional
        The column of labels; by default the one called cluster, label or labels, else the last.

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
    table = read_file(path)
    if column is None:
        usual = [name for name in table.columns if name.lower() in ("cluster", "label", "labels", "class")]
        column = usual[0] if usual else list(table.columns)[-1]
    values = as_labels(table.take([column], path).columns[column])
    labels = np.empty(len(values), dtype=object)
    labels[:] = [None if value is None else str(value) for value in values.tolist()]
    return column, labels


def report(
    model: str | Path,
    *,
    table: str | Path | None = None,
    out: str | Path | None = None,
    title: str | None = None,
) -> Outcome:
    """Write the report of a saved model again.

    Parameters
    ----------
    model : str or path
        A folder that a command wrote, or a file that ``save`` wrote.
    table : str or path, optional
        The table that was fitted; by default the one that the folder remembers, if it is still there.
    out : path, optional
        The page to write; by default ``report.html`` beside the model.
    title : str, optional

    Returns
    -------
    Outcome
    """
    from partita import load

    path = Path(model)
    if path.is_dir():
        path = path / MODEL
    if not path.exists():
        raise FileError(
            f"{model}: there is no model; give a folder that partita wrote, or a file written by save()"
        )
    fitted = load(path)
    X: Any = None
    source = None
    remembered = path.with_name(SOURCE)
    if table is None and remembered.exists():
        told = json.loads(remembered.read_text(encoding="utf-8"))
        if Path(told["file"]).exists():
            source = open_table(
                told["file"], columns=told["columns"], id_column=told.get("id"), truth=told.get("truth")
            )
            X = source.matrix() if told.get("command") == "blocks" else source.columns
    elif table is not None:
        X = open_table(
            table, columns=list(fitted.schema_.names) if hasattr(fitted.schema_, "names") else ()
        ).columns
    page = Path(out) if out else path.with_name(REPORT)
    if type(fitted).__module__.startswith("partita.consensus") and X is not None:
        X = {name: as_labels(values) for name, values in X.items()}
    files = write_page(fitted, page, X, source, title)
    return Outcome("The report is written.", {"method": type(fitted).__name__}, files)


def demo(out: str | Path = "partita-demo", *, seed: int = 0, quiet: bool = False) -> Outcome:
    """The bundled table (600 visitors of a museum) from file to report.

    Parameters
    ----------
    out : path
        Folder to write to.
    seed : int
    quiet : bool

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
        seed=seed,
        quiet=quiet,
    )
    return found._replace(files={str(folder / "visitors.csv"): "the table", **found.files})


def _texts(columns: dict[str, Any]) -> dict[str, Any]:
    return {
        name: np.array(["" if value is None else value for value in values.tolist()], dtype=object)
        if values.dtype.kind == "O"
        else values
        for name, values in columns.items()
    }


def warm(kinds: Sequence[str] = ()) -> Outcome:
    """Compile what the usual models need, once for this machine; later runs load it from disk.

    Parameters
    ----------
    kinds : sequence of {"real", "categorical", "count"}, optional
        Kinds of tables; by default all three.

    Returns
    -------
    Outcome
    """
    import time

    from partita import Consensus, Mixture

    start = time.process_time()
    rng = np.random.default_rng(0)
    tables = {
        "real": rng.normal(size=(30, 2)),
        "categorical": rng.integers(3, size=(30, 2)).astype(str),
        "count": rng.poisson(3.0, size=(30, 2)),
    }
    unknown = [kind for kind in kinds if kind not in tables]
    if unknown:
        raise ValueError(f"no kind {unknown[0]!r} to compile for; there are {', '.join(tables)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, X in tables.items():
            if kinds and kind not in kinds:
                continue
            for inference in ("gibbs", "vb"):
                short = {"n_chains": 1, "n_draws": 2, "burn_in": 1} if inference == "gibbs" else {}
                Mixture(kinds=kind, inference=inference, random_state=0, **short).fit(X)
        Consensus(random_state=0).fit(rng.integers(3, size=(30, 4)))
    seconds = time.process_time() - start
    words = f"Compiled and kept on disk, in {seconds:.0f} s of CPU. A table of several kinds compiles its own mix once."
    return Outcome(words, {"cpu_s": round(seconds, 1)})
