"""Commands that run a script: ``traceview diagnose``, ``collect``, ``demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview.cli.options import (
    PASS_ON,
    TargetCommand,
    collecting,
    reporting,
    targeting,
)

if TYPE_CHECKING:
    from traceview.collectors import CollectOptions
    from traceview.run import Run


INTERRUPTED = 130
_LIVE = click.option(
    "--live",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Add JSON lines to FILE while it runs: phases, compiles, recompiles, blocks, time left.",
)


@click.command("diagnose", cls=TargetCommand, context_settings=PASS_ON)
@collecting
@_LIVE
@reporting
@targeting
def diagnose_command(**options: Any) -> None:  # noqa: ANN401 (click's options)
    """Run SCRIPT, compare eager with compiled, and explain the result.

    The script runs unmodified, as `python SCRIPT ARGS...` would run it; everything after its name
    is passed to it. Exit codes: 0 (diagnosed), 2 (usage error), 3 (the script failed; the report is
    still written), 4 (nothing to analyse), 130 (interrupted; the report says what was measured).
    """
    click.get_current_context().exit(_diagnose(**options))


@click.command("collect", cls=TargetCommand, context_settings=PASS_ON)
@collecting
@_LIVE
@targeting
def collect_command(**options: Any) -> None:  # noqa: ANN401 (click's options)
    """Run SCRIPT and record it, without analysing it.

    `traceview report` explains the run later, on any machine.
    """
    run = collected(to_stderr=False, **options)
    click.echo(f"run folder: {run.folder}")
    code = INTERRUPTED if interrupted(run) else 3
    click.get_current_context().exit(0 if run.manifest.passes[0].ending.is_well else code)


@click.command("demo", context_settings=PASS_ON)
@collecting
@reporting
@click.option("--list", "list_demos", is_flag=True, help="List the bundled scripts.")
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
def demo_command(
    name: str | None,
    arguments: tuple[str, ...],
    list_demos: bool,
    **options: Any,  # noqa: ANN401 (the shared options, handed on)
) -> None:
    """Diagnose the bundled script NAME (default: pointwise) with its own arguments ARGS."""
    from traceview.demos import DEFAULT, demos, script_of

    if list_demos:
        width = max(map(len, demos()))
        for demo, summary in demos().items():
            click.echo(f"{demo:<{width}}  {summary}")
        return
    script = str(script_of(name or DEFAULT))
    click.get_current_context().exit(_diagnose(None, (script, *arguments), **options))


def _diagnose(
    module: str | None,
    target: tuple[str, ...],
    **options: Any,  # noqa: ANN401 (click's options)
) -> int:
    """Collect, explain, print; returns the exit code."""
    from traceview.cli.console import Console
    from traceview.cli.pipeline import Wanted, explain

    wanted = Wanted(**{name: options.pop(name) for name in Wanted.__struct_fields__})
    choice = wanted.choice_before()
    run = collected(module, target, to_stderr=wanted.on_stdout, **options)
    Console().say("reading the logs")
    code = explain(run, wanted, choice, refresh=True)
    return code or (INTERRUPTED if interrupted(run) else 0)


def interrupted(run: Run) -> bool:
    """Whether Ctrl-C or a signal to traceview ended the script."""
    return any(record.ending.kind == "interrupted" for record in run.manifest.passes)


def collected(
    module: str | None,
    target: tuple[str, ...],
    *,
    to_stderr: bool,
    **options: Any,  # noqa: ANN401 (click's options)
) -> Run:
    """The finished run folder of the target, run with the options of ``collecting``."""
    from traceview import collectors
    from traceview.cli.console import Console

    return collectors.collect(
        collect_options(module, target, to_stderr=to_stderr, **options), Console(lines=False)
    )


def collect_options(
    module: str | None,
    target: tuple[str, ...],
    *,
    to_stderr: bool,
    **options: Any,  # noqa: ANN401 (click's options)
) -> CollectOptions:
    """The options of ``collecting`` and ``targeting``, checked."""
    from traceview.collectors import CollectOptions
    from traceview.errors import UsageError

    if module is None and not target:
        fact = "No script was given."
        remedy = "Use `traceview diagnose train.py` or `-m MODULE`; put options before it."
        raise UsageError(fact, remedy, slug="no-script")
    if options["compile_options"] and not options["compile_target"]:
        fact = "--compile-options has nothing to compile."
        remedy = "Add --compile TARGET; `--compile auto` finds the module that takes most time."
        raise UsageError(fact, remedy, slug="no-target")
    return CollectOptions(
        kind="script" if module is None else "module",
        target=target[0] if module is None else module,
        args=target[1:] if module is None else target,
        quiet_stdout_to_stderr=to_stderr,
        **options,
    )
