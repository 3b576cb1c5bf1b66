"""The commands and their options; each command calls one function and prints its outcome as text or JSON."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from partita._version import __version__
from partita.cli import clustering, predicting, tools, warming
from partita.cli.advice import begin_command, in_options
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
        help="Level of the answer to write: coarse, medium, fine, agreed (best with an ensemble of k-means "
        "clusterings), or a number of groups (default: the answer).",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        help="Also write the input table with group, confidence and grain columns appended: 'table' (beside the other "
        "results), a file (.csv, .tsv, .parquet, ...), or - for standard output.",
    ),
]
Family = Annotated[
    list[str],
    typer.Option(help="Family of all columns, as gaussian or poisson, or kind=family (default: chosen)."),
]
Chains = Annotated[int | None, typer.Option(min=1, help="Number of chains.")]
Draws = Annotated[int | None, typer.Option(min=1, help="Draws per chain.")]
BurnIn = Annotated[int | None, typer.Option(min=0, help="Iterations before the first draw.")]
TimeLimit = Annotated[float | None, typer.Option(help="Stop after this many seconds.")]
Jobs = Annotated[int | None, typer.Option(help="Number of threads.")]
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
Format = Annotated[
    str | None,
    typer.Option(
        help="Format of standard input, or of a file whose name does not tell it: csv, tsv, xlsx, parquet, ... "
        "(default: recognized by its content)."
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file, such as cp1252 (default: UTF-8, or guessed).")
]
Na = Annotated[
    list[str],
    typer.Option("--na", help="Values that mean missing: --na 999 - for all columns, --na age=999 for one."),
]
Skip = Annotated[
    str | None,
    typer.Option(
        help="Lines of a text file (rows of a sheet) that are no part of the table, counted from 1: 1-3, or 2,3,205. "
        "Titles, units and totals are recognized; 0 keeps all lines."
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print how each column was read.")]
Table = Annotated[
    Path, typer.Argument(help="CSV, TSV, Excel, Parquet, Arrow, npy or AnnData; - is standard input.")
]


@app.callback(invoke_without_command=True)
def _begin(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand:
        begin_command(options_of(context.invoked_subcommand))


@app.command()
def consensus(
    labels: Annotated[
        Path,
        typer.Argument(
            help="File with one column of labels per clustering and one line per object; - is standard input."
        ),
    ],
    method: Annotated[
        str, typer.Option(help=f"One of {', '.join(clustering.CONSENSUS_METHODS)}.")
    ] = "consensus",
    clusters: Clusters = None,
    noise: Annotated[
        str, typer.Option(help="Meaning of the label -1: missing, cluster or singletons.")
    ] = "missing",
    time_limit: TimeLimit = None,
    grain: Grain = None,
    out: Out = None,
    output: Output = None,
    id: Id = None,
    truth: Truth = None,
    ignore: Ignore = [],  # noqa: B006 - typer reads the default
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    format: Format = None,
    na: Na = [],  # noqa: B006
    skip: Skip = None,
    escape_formulas: Formulas = False,
    jobs: Jobs = None,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
    verbose: Verbose = False,
) -> Outcome:
    """Combine many clusterings of the same objects into one."""
    reading = _reading_options(
        id, truth, ignore, column, separator, key, encoding, na, escape_formulas, format, skip
    )
    return _print_outcome(
        clustering.consensus(
            labels,
            method=method,
            n_clusters=clusters,
            noise=noise,
            time_limit=time_limit,
            grain=grain,
            out=out,
            output=output,
            jobs=jobs,
            seed=seed,
            verbose=progress,
            **reading,
        ),
        json,
        verbose,
    )


@app.command()
def cluster(
    table: Table,
    kind: Kinds = [],  # noqa: B006
    family: Family = [],  # noqa: B006
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
    time_limit: TimeLimit = None,
    grain: Grain = None,
    out: Out = None,
    output: Output = None,
    id: Id = None,
    truth: Truth = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    format: Format = None,
    na: Na = [],  # noqa: B006
    skip: Skip = None,
    escape_formulas: Formulas = False,
    jobs: Jobs = None,
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
            family=family,
            n_clusters=clusters,
            inference=inference,
            n_chains=chains,
            n_draws=draws,
            burn_in=burn_in,
            outliers=outliers,
            time_limit=time_limit,
            grain=grain,
            out=out,
            output=output,
            seed=seed,
            jobs=jobs,
            verbose=progress,
            **_reading_options(
                id, truth, ignore, column, separator, key, encoding, na, escape_formulas, format, skip
            ),
        ),
        json,
        verbose,
    )


@app.command()
def views(
    table: Table,
    kind: Kinds = [],  # noqa: B006
    family: Family = [],  # noqa: B006
    overlapping: Annotated[
        bool, typer.Option("--overlapping", help="Allow columns that belong to several views.")
    ] = False,
    inference: Annotated[
        str | None, typer.Option(help=f"{', '.join(clustering.VIEW_INFERENCES)} (not with --overlapping).")
    ] = None,
    chains: Chains = None,
    draws: Draws = None,
    burn_in: BurnIn = None,
    time_limit: TimeLimit = None,
    out: Out = None,
    output: Output = None,
    id: Id = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    format: Format = None,
    na: Na = [],  # noqa: B006
    skip: Skip = None,
    escape_formulas: Formulas = False,
    jobs: Jobs = None,
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
            family=family,
            overlapping=overlapping,
            inference=inference,
            n_chains=chains,
            n_draws=draws,
            burn_in=burn_in,
            time_limit=time_limit,
            jobs=jobs,
            out=out,
            output=output,
            seed=seed,
            verbose=progress,
            **_reading_options(
                id, None, ignore, column, separator, key, encoding, na, escape_formulas, format, skip
            ),
        ),
        json,
        verbose,
    )


@app.command()
def tree(
    table: Table,
    kind: Kinds = [],  # noqa: B006
    family: Family = [],  # noqa: B006
    clusters: Clusters = None,
    time_limit: TimeLimit = None,
    grain: Grain = None,
    out: Out = None,
    output: Output = None,
    id: Id = None,
    truth: Truth = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    format: Format = None,
    na: Na = [],  # noqa: B006
    skip: Skip = None,
    escape_formulas: Formulas = False,
    jobs: Jobs = None,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
    verbose: Verbose = False,
) -> Outcome:
    """Build a Bayesian tree of the rows, cut where merging no longer improves the evidence."""
    reading = _reading_options(
        id, truth, ignore, column, separator, key, encoding, na, escape_formulas, format, skip
    )
    return _print_outcome(
        clustering.tree(
            table,
            kinds=kind,
            family=family,
            n_clusters=clusters,
            time_limit=time_limit,
            grain=grain,
            out=out,
            output=output,
            jobs=jobs,
            seed=seed,
            verbose=progress,
            **reading,
        ),
        json,
        verbose,
    )


@app.command()
def blocks(
    table: Table,
    family: Annotated[str | None, typer.Option(help="Family of the cells (default: chosen).")] = None,
    chains: Chains = None,
    draws: Draws = None,
    burn_in: BurnIn = None,
    time_limit: TimeLimit = None,
    out: Out = None,
    output: Output = None,
    id: Id = None,
    ignore: Ignore = [],  # noqa: B006
    column: Columns = [],  # noqa: B006
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    format: Format = None,
    na: Na = [],  # noqa: B006
    skip: Skip = None,
    escape_formulas: Formulas = False,
    jobs: Jobs = None,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
    verbose: Verbose = False,
) -> Outcome:
    """Group the rows and the columns of a matrix at the same time."""
    reading = _reading_options(
        id, None, ignore, column, separator, key, encoding, na, escape_formulas, format, skip
    )
    return _print_outcome(
        clustering.blocks(
            table,
            family=family,
            n_chains=chains,
            n_draws=draws,
            burn_in=burn_in,
            time_limit=time_limit,
            out=out,
            output=output,
            jobs=jobs,
            seed=seed,
            verbose=progress,
            **reading,
        ),
        json,
        verbose,
    )


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
    format: Format = None,
    na: Na = [],  # noqa: B006
    skip: Skip = None,
    escape_formulas: Formulas = False,
    jobs: Jobs = None,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
) -> Outcome:
    """Cluster one table many times and write the label matrix."""
    reading = _reading_options(
        id, None, ignore, column, separator, key, encoding, na, escape_formulas, format, skip
    )
    return _print_outcome(
        tools.ensemble(
            table,
            out,
            kind=kind,
            n_members=members,
            n_clusters=clusters,
            jobs=jobs,
            time_limit=time_limit,
            seed=seed,
            verbose=progress,
            **reading,
        ),
        json,
    )


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A folder that partita wrote, or a file written by save().")],
    table: Annotated[
        Path, typer.Argument(help="New rows, with the columns of the fit; - is standard input.")
    ],
    grain: Grain = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="File to write.", show_default="NAME-groups.csv, beside the new rows"
        ),
    ] = None,
    output: Output = None,
    id: Id = None,
    separator: Separator = None,
    key: Key = None,
    encoding: Encoding = None,
    format: Format = None,
    na: Na = [],  # noqa: B006
    skip: Skip = None,
    escape_formulas: Formulas = False,
    jobs: Jobs = None,
    json: Json = False,
    progress: Progress = None,
) -> Outcome:
    """Find the groups of new rows by a saved model."""
    reading = _reading_options(id, None, [], [], separator, key, encoding, na, escape_formulas, format, skip)
    return _print_outcome(
        predicting.predict(
            model, table, grain=grain, out=out, output=output, jobs=jobs, verbose=progress, **reading
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
    time_limit: TimeLimit = None,
    jobs: Jobs = None,
    seed: Seed = 0,
    json: Json = False,
    progress: Progress = None,
) -> Outcome:
    """Cluster an example table, 600 visitors of a museum, and write the report."""
    return _print_outcome(
        tools.demo(out, time_limit=time_limit, jobs=jobs, seed=seed, verbose=progress), json
    )


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
    format: str | None,
    skip: str | None,
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
        "format": format,
        "skip": numbers_of_lines(skip),
    }


def numbers_of_lines(text: str | None) -> list[int]:
    """The lines that an option names.

    Examples
    --------
    >>> numbers_of_lines("1-3,205")
    [1, 2, 3, 205]
    """
    if text is None:
        return []
    parts = [re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part) for part in text.split(",")]
    if not all(parts):
        raise ValueError(f"--skip {text}: give lines counted from 1, as in --skip 1-3 or --skip 2,3,205")
    ends = [(int(part[1]), int(part[2] or part[1])) for part in parts if part]
    return [line for first, last in ends for line in range(first, last + 1)]


_CODE = re.compile(r"([^=/]+=)?(-?\d+(\.\d+)?|[-.?*]+)")


def spread_codes(arguments: list[str]) -> list[str]:
    """Write ``--na 999 -`` as ``--na 999 --na -``, because an option takes one value: numbers and marks may follow.

    Examples
    --------
    >>> spread_codes(["cluster", "--na", "999", "-", "table.csv"])
    ['cluster', '--na', '999', '--na', '-', 'table.csv']
    >>> spread_codes(["--na", "age=-9", "q*=99", "table.csv"])
    ['--na', 'age=-9', '--na', 'q*=99', 'table.csv']
    """
    spread: list[str] = []
    for argument in arguments:
        after_code = len(spread) > 1 and spread[-2] == "--na"
        if after_code and _CODE.fullmatch(argument):
            spread.append("--na")
        spread.append(argument)
    return spread


def options_of(command: str) -> set[str]:
    """The long options of a command."""
    found: Any = typer.main.get_command(app)
    options = [*found.params, *found.commands[command].params]
    return {name for option in options for name in option.opts if name.startswith("--")}


def _print_outcome(outcome: Outcome, json: bool, verbose: bool = False) -> Outcome:
    """Print the answer on standard output (unless a table goes there), and the notes on standard error."""
    place = sys.stderr if outcome.words_aside else sys.stdout
    if json:
        print(write_json(outcome), file=place)
    else:
        if outcome.stopped is not None:
            print(visible(in_options(f"Stopped early: {outcome.stopped.message}.")), file=place)
        elif outcome.interrupted:
            print(INTERRUPTED_NOTE, file=place)
        if verbose and outcome.account:
            print(visible(outcome.account), end="\n\n", file=place)
        print(visible(in_options(outcome.words)), file=place)
        if outcome.table:
            print(visible(outcome.table), file=place)
        if "kinds" in outcome.figures:
            kinds = visible(outcome.figures["kinds"])
            print(f"Columns are read as {kinds} (change this with --kind column=kind).", file=place)
        for path, content in outcome.files.items():
            print(f"  {visible(path):40} {content}", file=place)
    for note in outcome.notes:
        if note not in outcome.words and (outcome.stopped is None or note != outcome.stopped.message):
            print(f"note: {visible(in_options(note))}", file=sys.stderr)
    return outcome
