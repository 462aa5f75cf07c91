"""``traceview check``: check a run against limits, in CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview.cli.options import files, limited
from traceview.memory import freed_at_once

if TYPE_CHECKING:
    from traceview.check import Limits

#: Options that replace the file's setting as a whole; figures are merged each by its name.
_FIELDS = ("no", "missing", "whole_interval", "allow_failure")
FORMATS = ("text", "json", "sarif", "junit", "github")
VIOLATED = 1


@click.command("check")
@click.option("--max-breaks", metavar="N", help="At most N graph breaks (places in the source).")
@click.option("--max-recompiles", metavar="N", help="At most N recompiles.")
@click.option("--max-compile-seconds", metavar="S", help="At most S seconds of cold compiling.")
@click.option("--max-step-ms", metavar="MS", help="At most MS milliseconds per compiled step.")
@click.option("--min-speedup", metavar="X", help="A speedup of at least X.")
@click.option(
    "--max",
    "highest",
    multiple=True,
    metavar="FIGURE=N",
    help="An upper limit on any figure of `traceview compare --json`.",
)
@click.option(
    "--min", "lowest", multiple=True, metavar="FIGURE=N", help="A lower limit on such a figure."
)
@click.option(
    "--max-growth",
    "growth",
    multiple=True,
    metavar="FIGURE=P%",
    help="A figure at most P % above the baseline's.",
)
@click.option(
    "--max-findings",
    multiple=True,
    metavar="[SEVERITY=]N",
    help="At most N findings (of severity error, warning or info).",
)
@click.option(
    "--no",
    "no",
    multiple=True,
    metavar="WHAT",
    help="None of: new-findings, slowdowns, errors, warnings, findings, damage.",
)
@click.option(
    "--baseline", metavar="OLD", help="An earlier run to compare with, as in `traceview compare`."
)
@click.option(
    "--missing",
    type=click.Choice(["fail", "skip"]),
    help="What to do if a limit can't be checked: fail (default), or skip it with a note.",
)
@click.option(
    "--allow-missing", is_flag=True, help="The same as --missing skip; also for what is too noisy."
)
@click.option(
    "--whole-interval",
    is_flag=True,
    help="Violated only if the speedup's whole 95 % interval is beyond the limit.",
)
@click.option("--allow-failure", is_flag=True, help="Pass even if the script failed.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the output to FILE, and plain text to stdout.",
)
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="File names are relative to DIR (default: the current folder).",
)
@click.option("--select", multiple=True, metavar="RULES", help="Check only these rules.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Don't check these rules.")
@click.option("--refresh", is_flag=True, help="Parse the raw logs again.")
@click.argument("run", shell_complete=files)
@click.pass_context
@limited
def check_command(
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
    """Check RUN against limits.

    Prints a line for each violation and exits with 1, or prints "passed" and exits with 0. Limits
    may also be set in [tool.traceview.check] of pyproject.toml; options override them.
    """
    freed_at_once()
    from traceview.check import check
    from traceview.check.model import to_json
    from traceview.cli.compare import emit, open_side
    from traceview.cli.config import choice_of
    from traceview.contracts import text_of
    from traceview.reports.check import ci, text

    limits, old = _limits(asked, baseline)
    choice = choice_of(select, ignore)
    other = open_side(old, choice, refresh=refresh) if old else None
    checked = check(open_side(run, choice, refresh=refresh), limits, other)
    start = str((root or Path.cwd()).absolute())
    document = {
        "text": lambda: text.render(checked),
        "json": lambda: text_of(to_json(checked)),
        "sarif": lambda: ci.sarif(checked, start),
        "junit": lambda: ci.junit(checked, start),
        "github": lambda: ci.github(checked, start),
    }[form]()
    emit(document, out)
    if out is not None:
        click.echo(text.render(checked))
    ctx.exit(0 if checked.passed else VIOLATED)


def _limits(asked: dict[str, Any], baseline: str | None) -> tuple[Limits, str | None]:
    """The limits of pyproject.toml overridden by the options, and the baseline.

    UsageError if there is no limit, or no baseline for a limit that needs one.
    """
    from traceview.check.limits import ALL, NEED_BASELINE, limits_of, merged, pairs_of
    from traceview.cli.config import check_of_file
    from traceview.errors import UsageError

    if asked.pop("allow_missing"):
        asked["missing"] = "skip"
    table, where, folder = check_of_file(Path.cwd())
    old = table.pop("baseline", None)
    if old is not None and not isinstance(old, str):
        fact = f"baseline must be a path ({where})."
        raise UsageError(fact, 'Write baseline = "traceview-main".', slug="wrong-key")
    first = limits_of(table, where)
    given = {name for name in _FIELDS if asked.get(name)}

    words = {name.replace("_", "-"): value for name, value in asked.items()}
    for option, name in (("highest", "max"), ("lowest", "min"), ("growth", "max-growth")):
        words[name] = pairs_of(words.pop(option), name)
    counts = [word if "=" in word else f"{ALL}={word}" for word in words["max-findings"]]
    words["max-findings"] = pairs_of(counts, "max-findings") or None

    limits = merged(first, limits_of(words, "the command line"), given)
    if limits.empty:
        fact = "Nothing to check: no limit was given."
        remedy = "Give one, such as --max-breaks 0, or set it in [tool.traceview.check]."
        raise UsageError(fact, remedy, slug="no-limit")
    found = baseline or (os.path.join(folder, old) if old else None)  # noqa: PTH118 - may be a URL
    if limits.need_baseline and not found:
        fact = f"--max-growth and --no {' or '.join(NEED_BASELINE)} need a baseline."
        raise UsageError(fact, "Give one with --baseline OLD.", slug="no-baseline")
    return limits, found if limits.need_baseline else None
