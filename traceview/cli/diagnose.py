"""``traceview diagnose``: run a script, measure, read, explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from traceview.cli.options import (
    PASS_ON,
    TargetCommand,
    collecting,
    reporting,
    split_target,
    targeting,
)

if TYPE_CHECKING:
    from traceview.run import Run


def collect(
    module: str | None,
    target: tuple[str, ...],
    *,
    to_stderr: bool,
    **options: Any,  # noqa: ANN401 (click hands over its options)
) -> Run:
    """Run the target as the options say; the finished run folder."""
    from traceview import collectors
    from traceview.cli.console import Console

    kind, name, arguments = split_target(module, target)
    return collectors.collect(
        collectors.CollectOptions(
            kind=kind,
            target=name,
            args=arguments,
            python=options["python"],
            nproc=options["nproc"],
            steps=options["steps"],
            blocks=options["blocks"],
            run_to_end=options["run_to_end"],
            timeout_s=options["timeout"],
            no_baseline=options["no_baseline"],
            warm=options["warm"],
            compare_outputs=options["compare_outputs"],
            keep_cache=options["keep_cache"],
            out=options["out"],
            force=options["force"],
            quiet_stdout_to_stderr=to_stderr,
        ),
        Console(),
    )


def diagnose(
    module: str | None,
    target: tuple[str, ...],
    *,
    as_json: bool,
    as_markdown: bool,
    open_report: bool,
    job_steps: int | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    **options: Any,  # noqa: ANN401 (the collecting options, handed on)
) -> int:
    """Collect, explain, print; the exit code that says how it went."""
    from traceview.cli.config import choice_of
    from traceview.cli.console import Console
    from traceview.cli.pipeline import Wanted, explain

    wanted = Wanted.of(as_json, as_markdown, open_report)
    choice = choice_of(select, ignore)  # a wrong word is said before anything runs
    run = collect(module, target, to_stderr=wanted.on_stdout, **options)
    Console().say("reading the logs")
    return explain(run, job_steps, wanted, choice, refresh=True)


@click.command("diagnose", cls=TargetCommand, context_settings=PASS_ON)
@collecting
@reporting
@targeting
def command(**options: Any) -> None:  # noqa: ANN401 (click's options)
    """Run SCRIPT, measure eager against compiled, and explain the result.

    The script runs unmodified, as `python SCRIPT ARGS...` would run it; everything after its name
    belongs to it. Ends with 0 (diagnosed), 2 (usage), 3 (the script failed; the report is written
    all the same) or 4 (nothing to analyse).
    """
    click.get_current_context().exit(diagnose(**options))
