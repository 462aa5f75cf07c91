"""``traceview query``: SQL on the tables of a run."""

from __future__ import annotations

from pathlib import Path

import click

_FORMATS = ["table", "csv", "json"]


@click.command("query")
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="table", show_default=True,
    help="How the result is printed.",
)  # fmt: skip
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("sql")
def command(run: Path, sql: str, form: str) -> None:
    """Run SQL on the tables of the run folder RUN.

    \b
    traceview query RUN "select name, category, ms from kernel_groups order by ms desc limit 10"
    """
    from traceview.cli.pipeline import tables_of
    from traceview.query import format_csv, format_json, format_table, run_sql
    from traceview.run import Run

    render = {"table": format_table, "csv": format_csv, "json": format_json}[form]
    click.echo(render(run_sql(tables_of(Run.open(run)), sql)), nl=form == "table")
