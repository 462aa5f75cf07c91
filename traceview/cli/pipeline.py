"""From a run folder to a report: parse, derive, diagnose, render, write, print."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from traceview.cli.console import stdout_color, stdout_width
from traceview.errors import NothingToAnalyse, RunFolderError, UsageError
from traceview.json_errors import NOT_JSON

if TYPE_CHECKING:
    from traceview.diagnosis.model import Diagnosis
    from traceview.rules.choice import Choice
    from traceview.run import Run
    from traceview.tables import Tables

# Endings that were requested, or are not known, are no failure of the script.
_NO_FAILURE = ("interrupted", "unknown")


class Wanted(msgspec.Struct, frozen=True):
    """The values of ``options.reporting``: the requested form of the diagnosis, and its rules."""

    as_json: bool
    as_markdown: bool
    open_report: bool
    job_steps: int | None
    select: tuple[str, ...]
    ignore: tuple[str, ...]

    def __post_init__(self) -> None:
        """UsageError if two documents would share stdout."""
        if self.as_json and self.as_markdown:
            fact = "--json and --markdown can't be combined."
            remedy = "Use one of them; `traceview report RUN` prints the other."
            raise UsageError(fact, remedy, slug="two-forms")

    def choice(self) -> Choice:
        """The rules in effect here."""
        from traceview.cli.config import choice_of

        return choice_of(self.select, self.ignore)

    def choice_before(self) -> Choice:
        """The same before a script runs: a wrong name is an error before anything does.

        The threads of polars, which reads what the script leaves, then start here: those that start
        later would take signals that are the script's.
        """
        from traceview.collectors.launch import threads_without_signals

        with threads_without_signals():
            import polars as pl

            pl.DataFrame({"rows": [0]}).lazy().select(pl.col("rows") + 1).collect()
            return self.choice()

    @property
    def on_stdout(self) -> bool:
        """Whether a document is printed on stdout, which then carries nothing else."""
        return self.as_json or self.as_markdown


def tables_of(run: Run, job_steps: int | None = None, *, refresh: bool = False) -> Tables:
    """The run's tables with the derived ones, saved as Parquet if its folder is writable.

    NothingToAnalyse if the run has no raw data at all.
    """
    from traceview.derive import derive
    from traceview.diagnosis.excerpts import source_reader
    from traceview.tables import Tables

    if run.manifest.target_kind == "logs":  # a post-mortem's, which are elsewhere
        from traceview.reading import open_tables

        parsed = open_tables(run)
    else:
        from traceview.parse import load_or_parse

        passes = run.manifest.passes  # of a run that failed, they say how it ended
        failed = any(not p.ending.is_well and p.ending.kind not in _NO_FAILURE for p in passes)
        raw = (path for record in passes for path in run.raw(record).rglob("*"))
        files = (path for path in raw if path.name != "child.json")
        if not failed and not any(path.is_file() and path.stat().st_size for path in files):
            raise NothingToAnalyse(
                f"{run.folder} has no log, trace or event to read: its raw files are missing or "
                "empty.",
                "Run `traceview diagnose` again, or restore the folder's raw/ next to its "
                "run.json.",
                slug="nothing-recorded",
            )
        parsed = load_or_parse(run, refresh=refresh)
    settings = {} if job_steps is None else {"job_steps": float(job_steps)}
    tables = derive(parsed, settings, source_reader(run, parsed))
    derived = Tables({name: tables[name] for name in tables if not parsed.has(name)})
    with contextlib.suppress(OSError):  # they can be derived again
        derived.save(run.tables_folder)
    return tables


def explain(run: Run, wanted: Wanted, choice: Choice, *, refresh: bool) -> int:
    """Diagnose ``run`` by the rules of ``choice``, write its reports, print it; the exit code.

    The diagnosis is printed even if the folder can't be written. That is then a RunFolderError, or
    only a message on stderr if a document on stdout was requested.
    """
    from traceview.contracts import text_of
    from traceview.diagnosis import to_json
    from traceview.diagnosis.excerpts import source_reader
    from traceview.parse import load_or_parse
    from traceview.reports import markdown, terminal
    from traceview.trials import offered

    page, manifest = run.folder / "report.html", run.manifest
    diagnosis, unwritten = diagnosed(run, wanted, choice, refresh=refresh)
    if wanted.as_json:
        click.echo(text_of(to_json(diagnosis)))
    elif wanted.as_markdown:
        click.echo(markdown.render(diagnosis))
    else:
        color = stdout_color()
        click.echo(terminal.render(diagnosis, width=stdout_width(), color=color), color=color)

    if unwritten is not None and not wanted.on_stdout:
        raise unwritten
    if unwritten is not None:
        click.echo(f"traceview: {unwritten.fact}", err=True)
    else:
        alone = manifest.target_kind != "logs" and manifest.nproc == 1
        failed = diagnosis.verdict.outcome == "failed"
        if alone and any(
            not failed or remedy.fixes == "failure"
            for read in (lambda _: None, source_reader(run, load_or_parse(run)))
            for remedy in offered(diagnosis.findings, manifest.cwd, read=read)[0]
        ):
            command = shlex.join(["traceview", "try", str(run.folder)])
            click.echo(f"try what the findings advise: {command}", err=wanted.on_stdout)
        click.echo(f"report: {page}", err=wanted.on_stdout)
        if wanted.open_report and click.launch(page.resolve().as_uri()) != 0:
            click.echo("traceview: No browser can be started here; open it by hand.", err=True)
    return 3 if diagnosis.verdict.outcome == "failed" else 0


def diagnosed(
    run: Run, wanted: Wanted, choice: Choice, *, refresh: bool
) -> tuple[Diagnosis, RunFolderError | None]:
    """The diagnosis of ``run``, written with its page; the error if that could not be done."""
    from traceview.contracts import text_of
    from traceview.diagnosis import diagnose, to_json
    from traceview.reports import html

    diagnosis = diagnose(run, tables_of(run, wanted.job_steps, refresh=refresh), choice)
    pages = {
        run.folder / "diagnosis.json": text_of(to_json(diagnosis)) + "\n",
        run.folder / "report.html": html.render(diagnosis, tried_in(run)),
    }
    return diagnosis, written(pages)


def tried_in(run: Run) -> dict[str, list[str]]:
    """Rule → what came of its remedies, as ``trials.json`` of the run has it; empty without one."""
    from traceview.reports.trials.words import by_rule
    from traceview.trials import from_json
    from traceview.trials.model import RESULTS

    try:
        return by_rule(from_json(json.loads((run.folder / RESULTS).read_bytes())))
    except (OSError, NothingToAnalyse, *NOT_JSON):
        return {}


def written(pages: Mapping[Path, str]) -> RunFolderError | None:
    """Write files with their texts; returns the error if one of them can't be written."""
    from traceview.run import write_whole

    for path, text in pages.items():
        try:
            write_whole(path, text)
        except OSError as error:
            fact = f"{path} could not be written ({error.strerror or error})."
            remedy = "Free some disk space or fix its permissions, then run `traceview report`."
            return RunFolderError(fact, remedy, slug="report-unwritable")
    return None
