"""The line from a run folder to a report: parse, derive, diagnose, render."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceview.cli.console import stdout_color, stdout_width

if TYPE_CHECKING:
    from traceview.diagnosis.model import Diagnosis
    from traceview.run import Run
    from traceview.tables import Tables


def tables_of(run: Run, job_steps: int | None = None, *, refresh: bool = False) -> Tables:
    """The run's tables with the derived ones; read from its Parquet files where they are there."""
    from traceview.derive import derive
    from traceview.diagnosis.excerpts import source_reader
    from traceview.parse import load_or_parse

    parsed = load_or_parse(run, refresh=refresh)
    settings = {} if job_steps is None else {"job_steps": float(job_steps)}
    tables = derive(parsed, settings, source_reader(run, parsed))
    tables.save(run.tables_folder)
    return tables


def write_report(run: Run, job_steps: int | None = None, *, refresh: bool = False) -> Diagnosis:
    """Diagnose ``run`` and write its ``diagnosis.json`` and ``report.html``."""
    from traceview.diagnosis import diagnose
    from traceview.reports import html, json

    diagnosis = diagnose(run, tables_of(run, job_steps, refresh=refresh))
    (run.folder / "diagnosis.json").write_text(json.render(diagnosis) + "\n", encoding="utf-8")
    report_path(run).write_text(html.render(diagnosis), encoding="utf-8")
    return diagnosis


def report_path(run: Run) -> Path:
    """Where the report of ``run`` stands."""
    return run.folder / "report.html"


def present(
    run: Run, diagnosis: Diagnosis, *, as_json: bool, as_markdown: bool, open_report: bool
) -> None:
    """Print the diagnosis in the form that was asked for; open the page if that was."""
    from traceview.reports import json, markdown, terminal

    if as_json:
        click.echo(json.render(diagnosis))
    elif as_markdown:
        click.echo(markdown.render(diagnosis))
    else:
        click.echo(terminal.render(diagnosis, width=stdout_width(), color=stdout_color()))
    click.echo(f"report: {report_path(run)}", err=as_json or as_markdown)
    if open_report:
        click.launch(report_path(run).resolve().as_uri())


def exit_code(diagnosis: Diagnosis) -> int:
    """0 diagnosed, 3 the target failed, 4 nothing to analyse."""
    return 3 if diagnosis.verdict.outcome == "failed" else 0
