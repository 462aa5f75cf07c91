"""``traceview tables``: what tables a run has."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("tables")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> None:
    """List the tables of the run folder RUN, their rows, columns and what they mean."""
    from traceview.cli.pipeline import tables_of
    from traceview.query import describe, format_tables
    from traceview.run import Run

    click.echo(format_tables(describe(tables_of(Run.open(run)))))
