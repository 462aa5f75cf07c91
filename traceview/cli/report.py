"""``traceview report``: render a run again, without running anything."""

from __future__ import annotations

from pathlib import Path

import click

from traceview.cli.options import reporting


@click.command("report")
@reporting
@click.option("--refresh", is_flag=True, help="Read the raw logs, not the tables made of them.")
@click.argument("run", type=click.Path(path_type=Path))
@click.pass_context
def command(
    ctx: click.Context,
    run: Path,
    refresh: bool,
    as_json: bool,
    as_markdown: bool,
    open_report: bool,
    job_steps: int | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
) -> None:
    """Render the report of the run folder RUN again.

    Rules are chosen here and now, by these options and the pyproject.toml of the current folder:
    what was chosen when RUN was made does not count.
    """
    from traceview.cli.config import choice_of
    from traceview.cli.pipeline import Wanted, explain
    from traceview.run import Run

    wanted = Wanted.of(as_json, as_markdown, open_report)
    choice = choice_of(select, ignore)
    ctx.exit(explain(Run.open(run), job_steps, wanted, choice, refresh=refresh))
