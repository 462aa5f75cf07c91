"""``traceview collect``: the collecting part of diagnose alone."""

from __future__ import annotations

from typing import Any

import click

from traceview.cli.options import PASS_ON, collecting, targeting


@click.command("collect", context_settings=PASS_ON)
@collecting
@targeting
@click.pass_context
def command(ctx: click.Context, **options: Any) -> None:  # noqa: ANN401 (click's options)
    """Run SCRIPT and keep what was measured; `traceview report` explains it later, anywhere."""
    from traceview.cli.diagnose import collect

    run = collect(to_stderr=False, **options)
    click.echo(f"run folder: {run.folder}")
    ctx.exit(3 if _target_failed(run.manifest.passes[0].ending) else 0)


def _target_failed(ending: Any) -> bool:  # noqa: ANN401 (traceview.run.Ending, imported lazily)
    return not (ending.kind == "stopped" or (ending.kind == "exit" and ending.code == 0))
