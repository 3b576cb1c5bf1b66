"""The commands and their options; each command calls one function and prints its outcome as text or JSON."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from partita._version import __version__
from partita.cli import clustering, tools, warming
from partita.cli.output import Outcome, visible, write_json
from partita.cli.progress import INTERRUPTED, INTERRUPTED_NOTE

app = typer.Typer(
    help="Probabilistic clustering: consensus of many clusterings, and clusters, views and trees of one table.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Folder to write to.", show_default="NAME-partita")
]
Formulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="Begin text that a spreadsheet would run as a formula (=, +, -, @) with an apostrophe.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON instead of text.")]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--quiet",
        " /-q",
        help="Show the progress.",
        show_default="a bar, if standard error is a terminal",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.")]
Kinds = Annotated[
    list[str],
    typer.Option(
        "--kind",
        "-k",
        help="column=kind or 'pattern*=kind'; kind alone is for all columns. Kinds: real, count, binary, categorical, "
        "ordinal, date, ignore; or the levels from low to high: 'answer=no < maybe < yes'.",
    ),
]
Clusters = Annotated[
    int | None, typer.Option("--clusters", "-K", min=1, help="Number of clusters, if it is known.")
]
Grain = Annotated[
    str | None,
    typer.Option(
        "--grain",
        help="Level of the answer to write: coarse, medium, fine, or a number of groups (default: the answer).",
    ),
]
Id = Annotated[str | None, typer.Option("--id", help="Column with the names of the rows.")]
Truth = Annotated[
    str | None, typer.Option(help="Column with known classes; they are compared with the result.")
]
Ignore = Annotated[list[str], typer.Option(help="Column to leave out.")]
Columns = Annotated[list[str], typer.Option("--column", "-c", help="Column to use (default: all).")]
Separator = Annotated[str | None, typer.Option(help="Separator of a text file (default: detected).")]
Key = Annotated[
    str | None,
    typer.Option(help="In an AnnData file: obs, or an entry of obsm or layers; in an Excel file: the sheet."),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file, such as cp1252 (default: UTF-8, or guessed).")
]
Na = Annotated[
    list[str],
    typer.Option("--na", help="Values that mean missing: --na 999 - for all columns, --na age=999 for one."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print how each column was read.")]
Table = Annotated[Path, typer.Argument(help="CSV, TSV, Excel, Parquet, Arrow, npy or AnnData.")]


@app.callback(invoke_without_command=True)
def _show_version(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@app.command()
def consensus(
    labels: Annotated[
        Path, typer.Argument(help="File with one column of labels per clustering and one line per object.")
    ],
    method: Annotated[
        str, typer.Option(help=f"One of {', '.join(clustering.CONSENSUS_METHODS)}.")
    ] = "consensus",
    clusters: Clusters = None,
    noise: Annotated[
        str, typer.Option(help="Meaning of the label -1: missing, cluster or singletons.")
    ] = "missing",
    grain: Grain = None,
    out: Out = None,
    id: Id = None,
    truth: Truth = None,
    ignore: Ignore = [],  # noqa: B006 - typer reads the default
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    na: Na = [],  # noqa: B006
    escape_formulas: Formulas = False,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
) -> Outcome:
    """Combine many clusterings of the same objects into one."""
    reading = _reading_options(id, truth, ignore, column, separator, key, encoding, na, escape_formulas)
    return _print_outcome(
        clustering.consensus(
            labels,
            method=method,
            n_clusters=clusters,
            noise=noise,
            grain=grain,
            out=out,
            seed=seed,
            verbose=progress,
            **reading,
        ),
        json,
    )


@app.command()
def cluster(
    table: Table,
    kind: Kinds = [],  # noqa: B006
    clusters: Clusters = None,
    inference: Annotated[str, typer.Option(help=f"One of {', '.join(clustering.INFERENCES)}.")] = "auto",
    chains: Annotated[int, typer.Option(min=1)] = 4,
    draws: Annotated[
        int | None,
        typer.Option(min=1, help="Draws per chain (default: chains run until they agree)."),
    ] = None,
    burn_in: Annotated[
        int | None,
        typer.Option(
            min=0, help="Iterations before the first draw (default: half of those until the chains agree)."
        ),
    ] = None,
    outliers: Annotated[bool, typer.Option("--outliers", help="Allow rows that belong to no group.")] = False,
    time_limit: Annotated[float | None, typer.Option(help="Stop after this many seconds.")] = None,
    grain: Grain = None,
    out: Out = None,
    id: Id = None,
    truth: Truth = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    na: Na = [],  # noqa: B006
    escape_formulas: Formulas = False,
    jobs: Annotated[int | None, typer.Option(help="Number of threads.")] = None,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
    verbose: Verbose = False,
) -> Outcome:
    """Cluster the rows of a table with columns of any kind, with probabilities."""
    return _print_outcome(
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
            grain=grain,
            out=out,
            seed=seed,
            jobs=jobs,
            verbose=progress,
            **_reading_options(id, truth, ignore, column, separator, key, encoding, na, escape_formulas),
        ),
        json,
        verbose,
    )


@app.command()
def views(
    table: Table,
    kind: Kinds = [],  # noqa: B006
    overlapping: Annotated[
        bool, typer.Option("--overlapping", help="Allow columns that belong to several views.")
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
    encoding: Encoding = None,
    na: Na = [],  # noqa: B006
    escape_formulas: Formulas = False,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
    verbose: Verbose = False,
) -> Outcome:
    """Find several groupings of the rows of one table, each with its own columns."""
    return _print_outcome(
        clustering.views(
            table,
            kinds=kind,
            overlapping=overlapping,
            inference=inference,
            n_chains=chains,
            n_draws=draws,
            out=out,
            seed=seed,
            verbose=progress,
            **_reading_options(id, None, ignore, column, separator, key, encoding, na, escape_formulas),
        ),
        json,
        verbose,
    )


@app.command()
def tree(
    table: Table,
    kind: Kinds = [],  # noqa: B006
    grain: Grain = None,
    out: Out = None,
    id: Id = None,
    truth: Truth = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    na: Na = [],  # noqa: B006
    escape_formulas: Formulas = False,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
    verbose: Verbose = False,
) -> Outcome:
    """Build a Bayesian tree of the rows, cut where merging no longer improves the evidence."""
    reading = _reading_options(id, truth, ignore, column, separator, key, encoding, na, escape_formulas)
    return _print_outcome(
        clustering.tree(table, kinds=kind, grain=grain, out=out, seed=seed, verbose=progress, **reading),
        json,
        verbose,
    )


@app.command()
def blocks(
    table: Table,
    out: Out = None,
    id: Id = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    na: Na = [],  # noqa: B006
    escape_formulas: Formulas = False,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
) -> Outcome:
    """Group the rows and the columns of a matrix at the same time."""
    reading = _reading_options(id, None, ignore, column, separator, key, encoding, na, escape_formulas)
    return _print_outcome(clustering.blocks(table, out=out, seed=seed, verbose=progress, **reading), json)


@app.command()
def ensemble(
    table: Table,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Label matrix to write: .csv, .tsv, .parquet, .arrow or .npy."),
    ],
    kind: Annotated[str, typer.Option(help="kmeans, subspaces, bootstrap, projections or mixed.")] = "kmeans",
    members: Annotated[int, typer.Option("--members", "-m", min=1)] = 20,
    clusters: Clusters = None,
    id: Id = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    na: Na = [],  # noqa: B006
    escape_formulas: Formulas = False,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
) -> Outcome:
    """Cluster one table many times and write the label matrix."""
    reading = _reading_options(id, None, ignore, column, separator, key, encoding, na, escape_formulas)
    return _print_outcome(
        tools.ensemble(
            table,
            out,
            kind=kind,
            n_members=members,
            n_clusters=clusters,
            seed=seed,
            verbose=progress,
            **reading,
        ),
        json,
    )


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(help="A file with labels.")],
    second: Annotated[
        Path, typer.Argument(help="Another file with labels of the same objects in the same order.")
    ],
    column: Annotated[
        str | None, typer.Option(help="Column of the labels (default: cluster, or the last column).")
    ] = None,
    second_column: Annotated[
        str | None, typer.Option(help="Column of the labels in the second file, if it differs.")
    ] = None,
    json: Json = False,
) -> Outcome:
    """Compare two clusterings."""
    return _print_outcome(tools.compare(first, second, column=column, second_column=second_column), json)


@app.command()
def report(
    model: Annotated[Path, typer.Argument(help="A folder that partita wrote, or a file written by save().")],
    table: Annotated[Path | None, typer.Option(help="Table that was fitted.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write the report to.")] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    grain: Grain = None,
    json: Json = False,
) -> Outcome:
    """Write the report of a saved model."""
    return _print_outcome(tools.report(model, table=table, out=out, title=title, grain=grain), json)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to.")] = Path("partita-demo"),
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
) -> Outcome:
    """Cluster an example table, 600 visitors of a museum, and write the report."""
    return _print_outcome(tools.demo(out, seed=seed, verbose=progress), json)


@app.command()
def warm(
    kind: Annotated[
        list[str], typer.Option(help="Only for columns of this kind: real, binary, categorical or count.")
    ] = [],  # noqa: B006
    check: Annotated[bool, typer.Option("--check", help="Only list what is not compiled yet.")] = False,
    json: Json = False,
    progress: Progress = None,
) -> Outcome:
    """Compile everything that a table needs, so that the first fit is fast."""
    return _print_outcome(warming.warm(kind, check=check, verbose=progress), json)


# ---- running a command ---------------------------------------------------------------------------------------------


def run(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit code. Errors in the arguments are printed by click, with exit code 2."""
    try:
        result = app(
            args=spread_codes(sys.argv[1:] if arguments is None else arguments), standalone_mode=False
        )
    except Exception as error:  # click's own exceptions, which typer may have vendored under another name
        if type(error).__name__ == "Abort":
            raise KeyboardInterrupt from None
        if not (hasattr(error, "show") and hasattr(error, "exit_code")):
            raise
        error.show()
        return error.exit_code
    if isinstance(result, Outcome):
        return INTERRUPTED if result.interrupted else 0
    if result == INTERRUPTED:  # some versions of typer turn the interrupt into this exit code
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _reading_options(
    id: str | None,
    truth: str | None,
    ignore: list[str],
    column: list[str],
    separator: str | None,
    key: str | None,
    encoding: str | None,
    na: list[str],
    escape_formulas: bool,
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
        "encoding": encoding,
        "na": na,
        "escape_formulas": escape_formulas,
    }


_CODE = re.compile(r"-?\d+(\.\d+)?|[-.?*]+")


def spread_codes(arguments: list[str]) -> list[str]:
    """Write ``--na 999 -`` as ``--na 999 --na -``, because an option takes one value: numbers and marks may follow.

    Examples
    --------
    >>> spread_codes(["cluster", "--na", "999", "-", "table.csv"])
    ['cluster', '--na', '999', '--na', '-', 'table.csv']
    """
    spread: list[str] = []
    for argument in arguments:
        after_code = len(spread) > 1 and spread[-2] == "--na"
        if after_code and _CODE.fullmatch(argument):
            spread.append("--na")
        spread.append(argument)
    return spread


def _print_outcome(outcome: Outcome, json: bool, verbose: bool = False) -> Outcome:
    if json:
        print(write_json(outcome))
    else:
        if verbose and outcome.account:
            print(visible(outcome.account), end="\n\n")
        if outcome.interrupted:
            print(INTERRUPTED_NOTE)
        print(visible(outcome.words))
        if outcome.table:
            print(visible(outcome.table))
        if "kinds" in outcome.figures:
            print(
                f"Columns are read as {visible(outcome.figures['kinds'])} (change this with --kind column=kind)."
            )
        for path, content in outcome.files.items():
            print(f"  {visible(path):40} {content}")
    for note in outcome.notes:
        if note not in outcome.words and note != INTERRUPTED_NOTE:
            print(f"note: {visible(note)}", file=sys.stderr)
    return outcome
