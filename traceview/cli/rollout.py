"""``traceview rollout``: is a compiled service safe to roll out?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview.cli.again import run_folder, run_of
from traceview.cli.options import PASS_ON, TargetCommand, collecting, in_bytes, targeting
from traceview.cli.scripts import INTERRUPTED

if TYPE_CHECKING:
    from traceview.cli.console import Console
    from traceview.collectors.trials import Trials
    from traceview.rollout.model import ProcessName, Rollout
    from traceview.rollout.reading import Recorded
    from traceview.run import Run

#: A check of --require did not pass.
NOT_PASSED = 1
FAILED = 3
CHECKS = ("outputs", "recompiles", "caches", "memory", "fallback", "shapes")
_SERVING: dict[ProcessName, str] = {
    "cold": "It serves compiled, with empty caches.",
    "warm": "It serves compiled again, with the caches of that process.",
    "eager": "It serves in eager.",
}
_MOST_START_S = 1800.0  # of a process until its first call, and for its compiles


def _required(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Names of checks; ``all`` for each of them."""
    words = [word.strip() for word in (value or "").split(",") if word.strip()]
    for word in words:
        if word not in (*CHECKS, "all"):
            known = ", ".join((*CHECKS, "all"))
            raise click.BadParameter(f"{word!r} is no check: {known}.", ctx, param)
    return CHECKS if "all" in words else tuple(words)


@click.command("rollout", cls=TargetCommand, context_settings=PASS_ON)
@click.option(
    "--calls",
    type=click.IntRange(1, 100_000),
    default=5000,
    show_default=True,
    metavar="N",
    help="Calls that each process serves at most; then it is stopped.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="S",
    help="Seconds that it serves at most, calls that compile not counted.",
)
@click.option(
    "--warmup",
    type=click.IntRange(1),
    metavar="N",
    help="The first N calls of a callable are warm-up (default: those that the script makes from"
    " other lines than most, at least the first).",
)
@click.option(
    "--shapes",
    "shapes_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Shapes of the real traffic, JSON Lines: which part of it is covered, and buckets for it.",
)
@click.option(
    "--memory-limit",
    callback=in_bytes,
    metavar="SIZE",
    help="Memory that a process has, such as 8GiB (default: compare with eager).",
)
@click.option(
    "--require",
    "required",
    callback=_required,
    metavar="CHECKS",
    help="Exit with 1 unless these pass, what is not recorded included: outputs, recompiles,"
    " caches, memory, fallback, shapes, or all.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the record as JSON; a script's own stdout goes to stderr.",
)
@click.option("--open", "open_page", is_flag=True, help="Open rollout.html in the browser.")
@collecting
@targeting
def rollout_command(**options: Any) -> None:  # noqa: ANN401 (click's options)
    """Diagnose SCRIPT, let it serve in three processes, and check whether it is safe to roll out.

    The processes run compiled with empty caches, compiled with the caches of the first, and in
    eager; every call is timed. In place of SCRIPT, the run folder of `traceview diagnose` continues
    from there (with --compare-outputs, or outputs are not checked).

    \b
    traceview rollout serve.py
    traceview rollout --shapes shapes.jsonl --require all serve.py

    Exit codes: 0, 1 (a check of --require did not pass), 2 (usage error), 3 (the script failed), 4
    (nothing to analyse), 130 (interrupted).
    """
    click.get_current_context().exit(_carry_out(**options))


def _carry_out(
    *,
    module: str | None,
    target: tuple[str, ...],
    calls: int,
    seconds: float,
    warmup: int | None,
    shapes_file: Path | None,
    memory_limit: int | None,
    required: tuple[str, ...],
    as_json: bool,
    open_page: bool,
    **collecting: Any,  # noqa: ANN401 (click's options)
) -> int:
    """Diagnose, serve, check, write, print; returns the exit code."""
    from traceview import __version__
    from traceview.cli.console import Console, stdout_color, stdout_width
    from traceview.cli.pipeline import Wanted, diagnosed
    from traceview.collectors.trials import Trials
    from traceview.contracts import text_of
    from traceview.reports.rollout import terminal
    from traceview.rollout import assess, read_shapes, to_json
    from traceview.words.text import one_line

    shapes = (shapes_file, read_shapes(shapes_file)) if shapes_file is not None else None
    wanted, console = Wanted(as_json, False, False, None, (), ()), Console()
    choice = wanted.choice_before()
    new = run_folder(module, target) is None
    if new:
        collecting["compare_outputs"] = True
    run, options = run_of(module, target, as_json=as_json, console=console, **collecting)
    with Trials(options, run, console) as trials:
        console.say("reading the logs")
        found, unwritten = diagnosed(run, wanted, choice, refresh=new)
        if unwritten is not None:
            raise unwritten
        console.say(one_line(found.verdict.sentence))
        click.echo(f"report: {run.folder / 'report.html'}", err=True)
        failed = found.verdict.outcome == "failed"
        stopped = any(each.ending.kind == "interrupted" for each in run.manifest.passes)
        recorded: dict[ProcessName, Recorded] = {}
        if not (failed or stopped):
            limit = options.timeout_s or seconds + _MOST_START_S
            # Ranks have to stop at the same call, so that only calls are counted.
            most_s = seconds if options.nproc == 1 else limit
            recorded, stopped = _serve(trials, calls, most_s, limit, console)
    console.progress(None)
    made = assess(
        found,
        recorded,
        made_by=__version__,
        shapes=shapes,
        warmup=warmup,
        memory_limit=memory_limit,
        own_cache="TORCHINDUCTOR_CACHE_DIR" in os.environ,
    )
    if as_json:
        click.echo(text_of(to_json(made)))
    else:
        color = stdout_color()
        click.echo(terminal(made, width=stdout_width(), color=color), color=color)
    page = _write(run, made)
    click.echo(f"rollout: {page}", err=as_json)
    if open_page and click.launch(page.resolve().as_uri()) != 0:
        click.echo("traceview: No browser can be started here; open it by hand.", err=True)
    if failed or stopped:
        return FAILED if failed else INTERRUPTED
    short = any(each.name in required and not each.passed for each in made.checks)
    return NOT_PASSED if short else 0


def _serve(
    trials: Trials, calls: int, seconds: float, timeout_s: float, console: Console
) -> tuple[dict[ProcessName, Recorded], bool]:
    """The processes one after the other; whether Ctrl-C ended one of them."""
    from traceview.rollout import read_served

    recorded: dict[ProcessName, Recorded] = {}
    for name, said in _SERVING.items():
        console.say(said)
        raw, ending = trials.serve(
            f"serving-{name}",
            mode="eager" if name == "eager" else "compiled",
            calls=calls,
            seconds=seconds,
            timeout_s=timeout_s,
        )
        recorded[name] = read_served(raw, name, ending.kind)
        if ending.kind == "interrupted":
            return recorded, True
    return recorded, False


def _write(run: Run, made: Rollout) -> Path:
    """Write ``rollout.json``, its page and its Markdown; the page's path."""
    from traceview.cli.pipeline import written
    from traceview.contracts import text_of
    from traceview.reports import rollout as forms
    from traceview.rollout import to_json
    from traceview.rollout.model import RECORD

    html = run.folder / "rollout.html"
    files = {
        run.folder / RECORD: text_of(to_json(made)) + "\n",
        html: forms.html(made),
        run.folder / "rollout.md": forms.markdown(made),
    }
    if (error := written(files)) is not None:
        raise error
    return html
