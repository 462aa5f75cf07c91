"""``traceview collect``: the collecting part of diagnose alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from traceview.cli.options import PASS_ON, TargetCommand, collecting, targeting

if TYPE_CHECKING:
    from traceview.run import Ending


@click.command("collect", cls=TargetCommand, context_settings=PASS_ON)
@collecting
@targeting
def command(**options: Any) -> None:  # noqa: ANN401 (click's options)
    """Run SCRIPT and keep what was measured; `traceview report` explains it later, anywhere."""
    from traceview.cli.diagnose import collect

    run = collect(to_stderr=False, **options)
    click.echo(f"run folder: {run.folder}")
    failed = _target_failed(run.manifest.passes[0].ending)
    click.get_current_context().exit(3 if failed else 0)


def _target_failed(ending: Ending) -> bool:
    return not (ending.kind == "stopped" or (ending.kind == "exit" and ending.code == 0))
