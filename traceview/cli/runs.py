"""Commands on a run folder: ``traceview report``, ``tables``, ``query`` and ``timeline``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import click

from traceview.cli.options import reporting


@click.command("report")
@reporting
@click.option("--refresh", is_flag=True, help="Parse the raw logs again.")
@click.argument("run", type=click.Path(path_type=Path))
@click.pass_context
def report_command(
    ctx: click.Context,
    /,
    run: Path,
    refresh: bool,
    **reporting: Any,  # noqa: ANN401 (click's options)
) -> None:
    """Write the report of the run folder RUN again.

    The rules are chosen by these options and the pyproject.toml of the current folder, not by the
    choice made when RUN was recorded.
    """
    from traceview.cli.pipeline import Wanted, explain
    from traceview.run import Run

    wanted = Wanted(**reporting)
    choice = wanted.choice()
    ctx.exit(explain(Run.open(run), wanted, choice, refresh=refresh))


@click.command("tables")
@click.argument("run", type=click.Path(path_type=Path))
def tables_command(run: Path) -> None:
    """List the tables of the run folder RUN: their rows, their columns and what they mean."""
    from traceview.cli.pipeline import tables_of
    from traceview.query import format_tables
    from traceview.run import Run

    click.echo(format_tables(tables_of(Run.open(run))))


@click.command("query")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Output format.",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("sql")
def query_command(run: Path, sql: str, form: str) -> None:
    """Run SQL on the tables of the run folder RUN.

    \b
    traceview query RUN "select name, category, ms from kernel_groups order by ms desc limit 10"
    """
    from traceview.cli.pipeline import tables_of
    from traceview.query import format_csv, format_json, format_table, run_sql
    from traceview.run import Run

    render = {"table": format_table, "csv": format_csv, "json": format_json}[form]
    click.echo(render(run_sql(tables_of(Run.open(run)), sql)), nl=form == "table")


@click.command("timeline")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="File to write; compressed if its name ends in .gz.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.argument("run", type=click.Path(path_type=Path))
def timeline_command(run: Path, out: Path, force: bool) -> None:
    """Write the compile timeline of the run folder RUN for ui.perfetto.dev or chrome://tracing.

    It has every phase of every compile, in all processes and ranks, together with the run's steps,
    timed blocks, calls and profiler windows.
    """
    from traceview.cli.pipeline import tables_of
    from traceview.derive.compiler.trace import chrome_trace
    from traceview.errors import NothingToAnalyse, RunFolderError
    from traceview.run import Run

    trace = chrome_trace(tables_of(Run.open(run)))
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    if not spans:
        fact = f"Nothing in {run} has a timestamp, so there is no timeline to write."
        remedy = "Record a run with `traceview diagnose SCRIPT`."
        raise NothingToAnalyse(fact, remedy, slug="no-times")

    data = json.dumps(trace, sort_keys=True, allow_nan=False).encode()
    try:
        with out.open("wb" if force else "xb") as file:
            file.write(gzip.compress(data, mtime=0) if out.name.endswith(".gz") else data)
    except FileExistsError as error:
        fact = f"{out} already exists and was not changed."
        raise RunFolderError(fact, "Choose another file, or use --force.", slug="exists") from error
    except OSError as error:
        fact = f"{out} can't be written ({error.strerror})."
        raise RunFolderError(fact, "Choose another file with -o.", slug="unwritable") from error

    processes = len({event["pid"] for event in spans})
    click.echo(
        f"Wrote {len(spans):,} spans of {processes} process{'es' * (processes > 1)} to {out}; "
        "open it in https://ui.perfetto.dev."
    )
