"""``traceview check``: a gate for CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from traceview.check import Checked, Limits

FORMATS = ("text", "json", "sarif", "junit", "github")
VIOLATED = 1


@click.command("check")
@click.option("--max-breaks", metavar="N", help="Places of graph breaks, at most.")
@click.option("--max-recompiles", metavar="N", help="Recompiles, at most.")
@click.option("--max-compile-seconds", metavar="S", help="Seconds of cold compiling, at most.")
@click.option("--max-step-ms", metavar="MS", help="Milliseconds of a compiled step, at most.")
@click.option("--min-speedup", metavar="X", help="Speedup, at least.")
@click.option(
    "--max",
    "highest",
    multiple=True,
    metavar="FIGURE=N",
    help="Any figure that `traceview compare --json` has, at most N.",
)
@click.option("--min", "lowest", multiple=True, metavar="FIGURE=N", help="At least N.")
@click.option(
    "--max-growth",
    "growth",
    multiple=True,
    metavar="FIGURE=P%",
    help="A figure may be P % above the baseline's, at most.",
)
@click.option(
    "--max-findings",
    multiple=True,
    metavar="[SEVERITY=]N",
    help="Findings (of error, warning or info), at most.",
)
@click.option(
    "--no",
    "no",
    multiple=True,
    metavar="WHAT",
    help="None of: new-findings, slowdowns, errors, warnings, findings, damage.",
)
@click.option("--baseline", metavar="OLD", help="An earlier run, in any form that compare reads.")
@click.option(
    "--missing",
    type=click.Choice(["fail", "skip"]),
    help="A limit that can't be checked: a failure (default), or only said.",
)
@click.option(
    "--whole-interval",
    is_flag=True,
    help="A speedup breaks its limit only if its whole interval is beyond it.",
)
@click.option("--allow-failure", is_flag=True, help="A script that failed is no violation.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the document to FILE, and lines of text to stdout.",
)
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder that files are named from (default: the current one).",
)
@click.option("--select", multiple=True, metavar="RULES", help="Check these rules only.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Do not check these.")
@click.option("--refresh", is_flag=True, help="Read the raw logs, not the tables made of them.")
@click.argument("run")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    run: str,
    form: str,
    out: Path | None,
    root: Path | None,
    baseline: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    refresh: bool,
    **asked: Any,  # noqa: ANN401 - the limits, each of its own type
) -> None:
    """Hold RUN to limits: exit code 1 with a line for each that is broken, else 0 and "passed".

    Limits stand in [tool.traceview.check] of the pyproject.toml too; those named here win.
    """
    from traceview.check import check
    from traceview.cli.config import choice_of
    from traceview.cli.sides import open_side

    limits, old = _limits(asked, baseline)
    choice = choice_of(select, ignore)
    other = open_side(old, choice, refresh=refresh) if old else None
    checked = check(open_side(run, choice, refresh=refresh), limits, other)
    _print(checked, form, out, str((root or Path.cwd()).absolute()))
    ctx.exit(0 if checked.passed else VIOLATED)


def _limits(asked: dict[str, Any], baseline: str | None) -> tuple[Limits, str | None]:
    """The file's limits under those of the command line; UsageError where there is none."""
    from traceview.check.limits import NEED_BASELINE, limits_of, merged
    from traceview.cli.config import check_of_file
    from traceview.errors import UsageError

    table, where, folder = check_of_file(Path.cwd())
    old = table.pop("baseline", None)
    if old is not None and not isinstance(old, str):
        fact = f"baseline must be a path ({where})."
        raise UsageError(fact, 'Write baseline = "traceview-main".', slug="wrong-key")
    first = limits_of(table, where)
    given = {_FIELDS[name] for name in _FIELDS if asked.get(name)}
    limits = merged(first, limits_of(_words(asked), "the command line"), given)
    if limits.empty:
        fact = "Nothing to check: no limit was named."
        remedy = "Name one, such as --max-breaks 0, or write [tool.traceview.check]."
        raise UsageError(fact, remedy, slug="no-limit")
    found = baseline or (os.path.join(folder, old) if old else None)  # noqa: PTH118 - may be a URL
    if limits.need_baseline and not found:
        fact = f"--max-growth and --no {' or '.join(NEED_BASELINE)} need a baseline."
        raise UsageError(fact, "Name one with --baseline OLD.", slug="no-baseline")
    return limits, found if limits.need_baseline else None


#: Options that, once given, replace what the file says; figures are merged one by one.
_FIELDS = {
    "no": "no", "missing": "missing", "whole_interval": "whole_interval",
    "allow_failure": "allow_failure",
}  # fmt: skip


def _words(asked: dict[str, Any]) -> dict[str, Any]:
    """The options as the keys of the TOML table."""
    from traceview.check.limits import ALL, pairs_of

    words = {name.replace("_", "-"): value for name, value in asked.items()}
    for option, name in (("highest", "max"), ("lowest", "min"), ("growth", "max-growth")):
        words[name] = pairs_of(words.pop(option), name)
    counts = [word if "=" in word else f"{ALL}={word}" for word in words.pop("max-findings")]
    words["max-findings"] = pairs_of(counts, "max-findings") or None
    return words


def _print(checked: Checked, form: str, out: Path | None, root: str) -> None:
    from traceview.cli.compare import emit
    from traceview.reports.check import github, json, junit, sarif, text

    document = {
        "text": lambda: text.render(checked),
        "json": lambda: json.render(checked),
        "sarif": lambda: sarif.render(checked, root),
        "junit": lambda: junit.render(checked, root),
        "github": lambda: github.render(checked, root),
    }[form]()
    emit(document, out)
    if out is not None:
        click.echo(text.render(checked))
