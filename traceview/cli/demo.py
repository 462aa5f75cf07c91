"""``traceview demo``: diagnose a bundled script."""

from __future__ import annotations

from typing import Any

import click

from traceview.cli.options import PASS_ON, collecting, reporting


@click.command("demo", context_settings=PASS_ON)
@collecting
@reporting
@click.option("--list", "list_demos", is_flag=True, help="List the bundled scripts.")
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
def command(
    name: str | None,
    arguments: tuple[str, ...],
    list_demos: bool,
    **options: Any,  # noqa: ANN401 (the shared options, handed on)
) -> None:
    """Diagnose the bundled script NAME (default: pointwise); ARGS are its own arguments."""
    from traceview.cli.diagnose import diagnose
    from traceview.demos import DEFAULT, demos, script_of

    if list_demos:
        width = max(map(len, demos()))
        for demo, summary in demos().items():
            click.echo(f"{demo:<{width}}  {summary}")
        return
    script = str(script_of(name or DEFAULT))
    click.get_current_context().exit(diagnose(None, (script, *arguments), **options))
