"""``traceview compare``, and the runs that it and ``check`` accept."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from traceview import limits
from traceview.cli.options import files, limited
from traceview.errors import NothingToAnalyse, RunFolderError, UsageError
from traceview.json_errors import NOT_JSON
from traceview.memory import freed_at_once, kept_below

if TYPE_CHECKING:
    from traceview.compare import Side
    from traceview.rules.choice import Choice
    from traceview.run import Run

DIAGNOSIS = "diagnosis.json"
#: No diagnosis comes near this size.
MOST_BYTES = 256 << 20


@click.command("compare")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print it as Markdown.")
@click.option("--html", "as_html", is_flag=True, help="Print it as one self-contained HTML page.")
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write to FILE; its extension (.html, .md, .json) sets the format.",
)
@click.option("--select", multiple=True, metavar="RULES", help="Compare only these rules.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Don't compare these rules.")
@click.option("--refresh", is_flag=True, help="Parse the raw logs again.")
@click.argument("before", metavar="A", shell_complete=files)
@click.argument("after", metavar="B", shell_complete=files)
@limited
def compare_command(
    before: str,
    after: str,
    as_json: bool,
    as_markdown: bool,
    as_html: bool,
    out: Path | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    refresh: bool,
) -> None:
    """Compare run B with run A: what got slower or faster, which causes are new or gone.

    A and B are run folders, diagnoses in JSON, or folders and files of logs, which are read as
    `traceview postmortem` reads them. The exit code does not depend on the result: use `traceview
    check` for that.
    """
    freed_at_once()
    from traceview.cli.config import choice_of
    from traceview.cli.console import stdout_color, stdout_width
    from traceview.compare import compare
    from traceview.compare.model import to_json
    from traceview.contracts import text_of
    from traceview.reports.compare import html, markdown, terminal

    asked = {"json": as_json, "markdown": as_markdown, "html": as_html}
    wanted = [form for form, flag in asked.items() if flag]
    if len(wanted) > 1:
        fact = f"--{wanted[0]} and --{wanted[1]} can't be combined."
        raise UsageError(fact, "Use one of them.", slug="two-forms")
    endings = {".html": "html", ".md": "markdown", ".json": "json"}
    form = wanted[0] if wanted else endings.get(out.suffix if out else "", "text")

    choice = choice_of(select, ignore)
    sides = [open_side(name, choice, refresh=refresh) for name in (before, after)]
    comparison = compare(*sides)
    if form == "text":
        color = out is None and stdout_color()
        emit(terminal(comparison, width=stdout_width(), color=color), out)
    elif form == "json":
        emit(text_of(to_json(comparison)), out)
    else:
        write = markdown if form == "markdown" else html
        emit(write(comparison), out)


def emit(text: str, out: Path | None) -> None:
    """Write ``text`` to the file, or to stdout."""
    from traceview.cli.console import stdout_color
    from traceview.run import USERS, write_whole

    if out is None:
        click.echo(text, color=stdout_color())
        return
    try:
        write_whole(out, text + "\n", USERS)
    except OSError as error:
        fact = f"{out} can't be written ({error.strerror or error})."
        raise RunFolderError(fact, "Choose another file with -o.", slug="unwritable") from error
    click.echo(f"traceview: written to {out}", err=True)


def open_side(name: str, choice: Choice, *, refresh: bool = False) -> Side:
    """The run ``name``, diagnosed by the rules of ``choice``.

    A diagnosis in JSON is used as it is: the run that it was made from may be gone.
    """
    from traceview.collectors.child.secrets import masked
    from traceview.compare import Side
    from traceview.diagnosis import from_json
    from traceview.run import MANIFEST, Run

    path, shown = Path(name), masked(name)
    folder = path.parent if path.name == "report.html" else path
    if (folder / MANIFEST).is_file():
        return _diagnosed(shown, Run.open(folder), choice, refresh=refresh)
    if (path / DIAGNOSIS).is_file():
        data = _read_json(path / DIAGNOSIS)
        if data is None:
            fact = f"{path / DIAGNOSIS} is not a diagnosis of traceview."
            remedy = "Write it again with `traceview report RUN`."
            raise NothingToAnalyse(fact, remedy, slug="no-json")
        return Side(shown, "diagnosis", from_json(data))
    if path.is_file() and path.suffix == ".json" and (data := _read_json(path)) is not None:
        return Side(shown, "diagnosis", from_json(data))
    # Logs are read as a post-mortem, into a temporary folder.
    from traceview.cli.postmortem import read_paths
    from traceview.reading.executors import Processes

    if not Path(name).exists() and "://" not in name and not any(c in name for c in "*?["):
        fact = f"{name} does not exist."
        remedy = "Give a run folder, its diagnosis.json, or a folder or file of logs."
        raise UsageError(fact, remedy, slug="no-such-run")
    scratch = click.get_current_context().with_resource(TemporaryDirectory(prefix="traceview-"))
    into = Path(scratch) / "run"
    into.mkdir()
    with kept_below(limits.now.memory, Path(scratch)):
        run, _ = read_paths(into, [name], Processes(None), resume=False)
        return _diagnosed(shown, run, choice)


def _diagnosed(name: str, run: Run, choice: Choice, *, refresh: bool = False) -> Side:
    from traceview.cli.pipeline import tables_of
    from traceview.compare import Side, cache_counts
    from traceview.diagnosis import diagnose, source_reader

    tables = tables_of(run, refresh=refresh)
    kind = "postmortem" if run.manifest.target_kind == "logs" else "run"
    read = source_reader(run, tables)
    return Side(name, kind, diagnose(run, tables, choice), read, cache_counts(tables))


def _read_json(path: Path) -> dict[str, object] | None:
    """A JSON object with a verdict; None for anything else (a profiler trace, say)."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        data = json.loads(path.read_bytes())
    except (OSError, *NOT_JSON):
        return None
    return data if isinstance(data, dict) and "verdict" in data else None
