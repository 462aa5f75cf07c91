"""Commands on a run folder: ``report``, ``ticket``, ``tables``, ``query`` and ``timeline``."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from traceview.cli.options import in_seconds, limited, reporting


@click.command("report")
@reporting
@click.option("--refresh", is_flag=True, help="Parse the raw logs again.")
@click.argument("run", type=click.Path(path_type=Path))
@click.pass_context
@limited
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


@click.command("ticket")
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of ticket.md and ticket.zip (default: the run folder).",
)
@click.option(
    "--for",
    "form",
    type=click.Choice(["pytorch", "vllm", "transformers", "generic"]),
    default="pytorch",
    show_default=True,
    help="Whose form to fill in.",
)
@click.option(
    "--redact",
    "level",
    type=click.Choice(["standard", "strict", "none"]),
    default="standard",
    show_default=True,
    help="standard: no secrets, paths, names, addresses, strings of yours; strict: nor your source"
    " and its names.",
)
@click.option(
    "--run-env/--no-run-env",
    default=None,
    help="Run torch.utils.collect_env with the run's interpreter (default: if it is this one).",
)
@click.option(
    "--reproduce/--no-reproduce",
    default=None,
    help="Look for a short program that shows the fault, and run it three times (default: if this"
    " machine recorded the run, with this interpreter).",
)
@click.option(
    "--budget",
    default="3m",
    show_default=True,
    callback=in_seconds,
    metavar="TIME",
    help="Time that looking for a reproducer may take, such as 90s or 10m.",
)
@click.argument("run", type=click.Path(path_type=Path))
def ticket_command(
    run: Path,
    out: Path | None,
    form: str,
    level: str,
    run_env: bool | None,
    reproduce: bool | None,
    budget: float,
) -> None:
    """Write ticket.md and ticket.zip of the run folder RUN, for a bug report.

    What is private is taken out of every text, and both files are searched for it again. Nothing is
    uploaded: read ticket.md, write your own words at its top, paste it, attach ticket.zip.

    \b
    traceview ticket traceview-train
    traceview ticket --for vllm --redact strict -o /tmp/ticket traceview-train
    """
    from typing import get_args

    from traceview.cli.console import Console
    from traceview.cli.pipeline import Wanted, tables_of
    from traceview.diagnosis import diagnose
    from traceview.reports import html
    from traceview.reports.trials.words import by_rule
    from traceview.run import Run
    from traceview.ticket.bundle import collected_versions, write_ticket
    from traceview.ticket.form import Form
    from traceview.ticket.redaction import Level
    from traceview.ticket.reproducer import recorded_here
    from traceview.words.numbers import plural, size

    opened = Run.open(run)
    tables = tables_of(opened)
    is_own = opened.manifest.python == sys.executable
    if run_env is None:  # no program is started because a folder names it
        run_env = is_own
    if reproduce is None:  # and none because a folder has it
        reproduce = is_own and recorded_here(opened)
    if reproduce:
        Console().say("looking for a reproducer (--no-reproduce: none is run)")
    form_ = next(each for each in get_args(Form) if each == form)
    written = write_ticket(
        opened,
        tables,
        diagnose(opened, tables, Wanted(False, False, False, None, (), ()).choice()),
        out or run,
        level=next(each for each in get_args(Level) if each == level),
        form=form_,
        versions=collected_versions(opened, form_) if run_env else None,
        reproduce_s=budget if reproduce else 0.0,
        page_of=lambda found, results: html.render(found, by_rule(results) if results else {}),
    )
    replaced = sum(times for _, times, _ in written.replaced)
    click.echo(f"Wrote {written.page} and {written.archive} ({size(written.bytes)}).")
    kinds = plural(len(written.replaced), "kind")
    click.echo(f"Taken out: {plural(replaced, 'private value')} of {kinds}.")
    click.echo("Read ticket.md and write your own words at its top before you send it.")


@click.command("tables")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
@click.argument("run", type=click.Path(path_type=Path))
def tables_command(run: Path, as_json: bool) -> None:
    """List the tables of the run folder RUN: their rows, their columns and what they mean."""
    from traceview.cli.pipeline import tables_of
    from traceview.contracts import text_of
    from traceview.query import described, format_tables
    from traceview.run import Run

    tables = tables_of(Run.open(run))
    click.echo(text_of(described(tables)) if as_json else format_tables(tables))


@click.command("query")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Output format.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Print N rows at most.")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("sql")
def query_command(run: Path, sql: str, form: str, limit: int | None) -> None:
    """Run SQL on the tables of the run folder RUN.

    \b
    traceview query RUN "select name, category, ms from kernel_groups order by ms desc limit 10"
    """
    from traceview.cli.pipeline import tables_of
    from traceview.query import format_csv, format_json, format_table, run_sql
    from traceview.run import Run

    render = {"table": format_table, "csv": format_csv, "json": format_json}[form]
    found = run_sql(tables_of(Run.open(run)), sql)
    click.echo(render(found.head(limit) if limit else found), nl=form == "table")


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
    from traceview.run import USERS, Run, write_whole

    trace = chrome_trace(tables_of(Run.open(run)))
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    if not spans:
        fact = f"Nothing in {run} has a timestamp, so there is no timeline to write."
        remedy = "Record a run with `traceview diagnose SCRIPT`."
        raise NothingToAnalyse(fact, remedy, slug="no-times")

    if os.path.lexists(out) and not force:
        fact = f"{out} already exists and was not changed."
        raise RunFolderError(fact, "Choose another file, or use --force.", slug="exists")
    data = json.dumps(trace, sort_keys=True, allow_nan=False).encode()
    try:
        write_whole(out, gzip.compress(data, mtime=0) if out.name.endswith(".gz") else data, USERS)
    except OSError as error:
        fact = f"{out} can't be written ({error.strerror})."
        raise RunFolderError(fact, "Choose another file with -o.", slug="unwritable") from error

    processes = len({event["pid"] for event in spans})
    click.echo(
        f"Wrote {len(spans):,} spans of {processes} process{'es' * (processes > 1)} to {out}; "
        "open it in https://ui.perfetto.dev."
    )
