"""``traceview tables``: what tables a run has."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("tables")
@click.option("--columns/--no-columns", default=True, help="List every column with its meaning.")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path, columns: bool) -> None:
    """List the tables of the run folder RUN, their rows, columns and what they mean."""
    from traceview.cli.pipeline import tables_of
    from traceview.query import describe
    from traceview.run import Run

    for line in describe(tables_of(Run.open(run)), columns=columns):
        click.echo(line)
