"""``traceview compare``: what changed from one run to another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from traceview.compare import Comparison


@click.command("compare")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print it as Markdown.")
@click.option("--html", "as_html", is_flag=True, help="Print it as one self-contained page.")
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write to FILE, whose ending may name the form (.html, .md, .json).",
)
@click.option("--select", multiple=True, metavar="RULES", help="Compare findings of these rules.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Leave these rules out.")
@click.option("--refresh", is_flag=True, help="Read the raw logs, not the tables made of them.")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
def command(
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
    """Say what got slower or faster from run A to run B, and which causes came or went.

    A and B are run folders, JSON diagnoses, or folders and files of logs, which are read as
    `traceview postmortem` would. The exit code tells nothing of the result: `traceview check` is
    the gate.
    """
    from traceview.cli.config import choice_of
    from traceview.cli.sides import open_side
    from traceview.compare import compare

    form = form_of({"json": as_json, "markdown": as_markdown, "html": as_html}, out)
    choice = choice_of(select, ignore)
    sides = [open_side(name, choice, refresh=refresh) for name in (before, after)]
    emit(_rendered(compare(*sides), form, out), out)


def form_of(asked: dict[str, bool], out: Path | None) -> str:
    """The one form that was asked for, else the one that the file's ending names, else text."""
    from traceview.errors import UsageError

    wanted = [form for form, flag in asked.items() if flag]
    if len(wanted) > 1:
        fact = f"--{wanted[0]} and --{wanted[1]} can't both be printed."
        raise UsageError(fact, "Name one of them.", slug="two-forms")
    endings = {".html": "html", ".md": "markdown", ".json": "json"}
    return wanted[0] if wanted else endings.get(out.suffix if out else "", "text")


def _rendered(comparison: Comparison, form: str, out: Path | None) -> str:
    from traceview.cli.console import stdout_color, stdout_width
    from traceview.reports.compare import html, json, markdown, terminal

    if form == "text":
        color = out is None and stdout_color()
        return terminal.render(comparison, width=stdout_width(), color=color)
    if form == "html":
        return html.render(comparison)
    return markdown.render(comparison) if form == "markdown" else json.render(comparison)


def emit(text: str, out: Path | None) -> None:
    """``text`` to the file, or to stdout."""
    from traceview.cli.console import stdout_color
    from traceview.errors import RunFolderError

    if out is None:
        click.echo(text, color=stdout_color())
        return
    try:
        out.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        fact = f"{out} can't be written ({error.strerror or error})."
        raise RunFolderError(fact, "Name another file with -o.", slug="unwritable") from error
    click.echo(f"traceview: written to {out}", err=True)
