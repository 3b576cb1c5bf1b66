"""The commands as typer sees them: arguments in, one public function each, words or JSON out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from partita._version import __version__
from partita.cli import clustering, tools
from partita.cli.output import Outcome, write_json

__all__ = ["run"]

INTERRUPTED = 130

app = typer.Typer(
    help="Probabilistic clustering: many clusterings into one, one table into many.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder to write to.", show_default="NAME-partita")
]
Json = Annotated[bool, typer.Option("--json", help="One line of JSON instead of words.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
Seed = Annotated[int, typer.Option(help="Seed of all randomness.")]
Kinds = Annotated[
    list[str], typer.Option("--kind", "-k", help="column=kind: real, count, binary, categorical or ignore.")
]
Clusters = Annotated[
    int | None, typer.Option("--clusters", "-K", min=1, help="Their number, where it is known.")
]
Id = Annotated[str | None, typer.Option("--id", help="Column with the names of the rows.")]
Truth = Annotated[str | None, typer.Option(help="Column with known classes, to compare with.")]
Ignore = Annotated[list[str], typer.Option(help="Column to leave out.")]
Columns = Annotated[list[str], typer.Option("--column", "-c", help="Column to use (default: all).")]
Separator = Annotated[str | None, typer.Option(help="Between cells of a text file (default: found out).")]
Key = Annotated[str | None, typer.Option(help="Of an AnnData file: obs, or an entry of obsm or layers.")]
Table = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, Arrow, npy or AnnData.")]


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def consensus(
    labels: Annotated[
        Path, typer.Argument(help="A column of labels for each clustering, a line for each object.")
    ],
    method: Annotated[
        str, typer.Option(help=f"One of {', '.join(clustering.CONSENSUS_METHODS)}.")
    ] = "consensus",
    clusters: Clusters = None,
    noise: Annotated[str, typer.Option(help="What -1 means: missing, cluster or singletons.")] = "missing",
    out: Out = None,
    id: Id = None,
    truth: Truth = None,
    ignore: Ignore = [],  # noqa: B006 - typer reads the default
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """One clustering from many, with its own number of clusters."""
    reading = _reading(id, truth, ignore, column, separator, key)
    return _say(
        clustering.consensus(
            labels,
            method=method,
            n_clusters=clusters,
            noise=noise,
            out=out,
            seed=seed,
            quiet=quiet,
            **reading,
        ),
        json,
    )


@app.command()
def cluster(
    table: Table,
    kind: Kinds = [],  # noqa: B006
    clusters: Clusters = None,
    inference: Annotated[str, typer.Option(help="gibbs, subclusters, vb, cvb, em or beam.")] = "gibbs",
    chains: Annotated[int, typer.Option(min=1)] = 4,
    draws: Annotated[int, typer.Option(min=1)] = 200,
    burn_in: Annotated[int, typer.Option(min=0)] = 100,
    outliers: Annotated[bool, typer.Option("--outliers", help="Rows may belong to no group.")] = False,
    time_limit: Annotated[float | None, typer.Option(help="Seconds.")] = None,
    out: Out = None,
    id: Id = None,
    truth: Truth = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    jobs: Annotated[int | None, typer.Option(help="Threads.")] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Groups in a table with columns of any kind, and how sure they are."""
    return _say(
        clustering.cluster(
            table,
            kinds=kind,
            n_clusters=clusters,
            inference=inference,
            n_chains=chains,
            n_draws=draws,
            burn_in=burn_in,
            outliers=outliers,
            time_limit=time_limit,
            out=out,
            seed=seed,
            jobs=jobs,
            quiet=quiet,
            **_reading(id, truth, ignore, column, separator, key),
        ),
        json,
    )


@app.command()
def views(
    table: Table,
    kind: Kinds = [],  # noqa: B006
    overlapping: Annotated[
        bool, typer.Option("--overlapping", help="A column may serve several views.")
    ] = False,
    inference: Annotated[str | None, typer.Option(help="gibbs, vb or search.")] = None,
    chains: Annotated[int | None, typer.Option(min=1)] = None,
    draws: Annotated[int | None, typer.Option(min=1)] = None,
    out: Out = None,
    id: Id = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Several groupings of one table, each with its own columns."""
    return _say(
        clustering.views(
            table,
            kinds=kind,
            overlapping=overlapping,
            inference=inference,
            n_chains=chains,
            n_draws=draws,
            out=out,
            seed=seed,
            quiet=quiet,
            **_reading(id, None, ignore, column, separator, key),
        ),
        json,
    )


@app.command()
def tree(
    table: Table,
    kind: Kinds = [],  # noqa: B006
    out: Out = None,
    id: Id = None,
    truth: Truth = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """A Bayesian tree of the rows, cut where its merges stop to pay."""
    reading = _reading(id, truth, ignore, column, separator, key)
    return _say(clustering.tree(table, kinds=kind, out=out, seed=seed, quiet=quiet, **reading), json)


@app.command()
def blocks(
    table: Table,
    out: Out = None,
    id: Id = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Rows and columns of a matrix grouped together."""
    reading = _reading(id, None, ignore, column, separator, key)
    return _say(clustering.blocks(table, out=out, seed=seed, quiet=quiet, **reading), json)


@app.command()
def ensemble(
    table: Table,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The label matrix: .csv, .tsv, .parquet, .arrow or .npy.")
    ],
    kind: Annotated[str, typer.Option(help="kmeans, subspaces, bootstrap, projections or mixed.")] = "kmeans",
    members: Annotated[int, typer.Option("--members", "-m", min=1)] = 20,
    clusters: Clusters = None,
    id: Id = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Many clusterings of one table, as a label matrix."""
    reading = _reading(id, None, ignore, column, separator, key)
    return _say(
        tools.ensemble(
            table, out, kind=kind, n_members=members, n_clusters=clusters, seed=seed, quiet=quiet, **reading
        ),
        json,
    )


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="A file with labels.")],
    second: Annotated[Path, typer.Argument(help="Another, of the same objects in the same order.")],
    column: Annotated[
        str | None, typer.Option(help="Column of the labels (default: cluster, or the last).")
    ] = None,
    second_column: Annotated[str | None, typer.Option(help="In the second file, where it differs.")] = None,
    json: Json = False,
) -> int:
    """How far two clusterings agree."""
    return _say(tools.compare(first, second, column=column, second_column=second_column), json)


@app.command()
def report(
    model: Annotated[Path, typer.Argument(help="A folder that partita wrote, or a file written by save().")],
    table: Annotated[Path | None, typer.Option(help="The table that was fitted.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page to write.")] = None,
    title: Annotated[str | None, typer.Option()] = None,
    json: Json = False,
) -> int:
    """Write the report of a saved model."""
    return _say(tools.report(model, table=table, out=out, title=title), json)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")] = Path("partita-demo"),
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """A tour: 600 visitors of a museum, from a table to a report."""
    return _say(tools.demo(out, seed=seed, quiet=quiet), json)


@app.command()
def warm(
    kind: Annotated[
        list[str], typer.Option(help="Only for tables of this kind: real, categorical or count.")
    ] = [],  # noqa: B006
    json: Json = False,
) -> int:
    """Compile the usual models once, so that first fits are quick."""
    return _say(tools.warm(kind), json)


# ---- around them -------------------------------------------------------------------------------------------------


def run(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit code. Faults of the command line itself are told by click, with exit code 2."""
    try:
        code = app(args=arguments, standalone_mode=False)
    except Exception as error:  # click's own, which typer may bring along under another name
        if type(error).__name__ == "Abort":
            raise KeyboardInterrupt from None
        if not (hasattr(error, "show") and hasattr(error, "exit_code")):
            raise
        error.show()
        return error.exit_code
    return code if isinstance(code, int) else 0


def _reading(
    id: str | None,
    truth: str | None,
    ignore: list[str],
    column: list[str],
    separator: str | None,
    key: str | None,
) -> dict[str, Any]:
    if separator is not None and separator.lower() in ("tab", "\\t"):
        separator = "\t"
    return {
        "id_column": id,
        "truth": truth,
        "ignore": ignore,
        "columns": column,
        "separator": separator,
        "key": key,
    }


def _say(outcome: Outcome, json: bool) -> int:
    if json:
        print(write_json(outcome))
    else:
        print(outcome.words)
        if "kinds" in outcome.figures:
            print(f"Columns read as {outcome.figures['kinds']} (--kind column=kind changes it).")
        for path, what in outcome.files.items():
            print(f"  {path:40} {what}")
    for note in outcome.notes:
        if note in outcome.words:
            continue
        print(f"note: {note}", file=sys.stderr)
    return INTERRUPTED if outcome.interrupted else 0
