"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


def files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion by the names of files, for arguments that are not only paths."""
    return [CompletionItem(incomplete, type="file")]


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def in_seconds(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """``90s``, ``10m``, ``1h`` or plain seconds; a usage error for anything else."""
    found = _DURATION.fullmatch(value.strip())
    if found is None or not float(found[1]):
        raise click.BadParameter(f"{value!r} is no time such as 90s, 10m or 1h.", ctx, param)
    return float(found[1]) * _SECONDS[found[2]]


def in_bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """``8GiB``, ``512M``; binary units; a usage error for anything else."""
    from traceview import limits

    number = None if value is None else limits.number(value)
    if value is not None and number is None:
        raise click.BadParameter(f"{value!r} is no size such as 512M or 8GiB.", ctx, param)
    return number


#: Arguments of torch.compile that --compile-options takes.
_WORDS = ("mode", "backend")
_SWITCHES = ("dynamic", "fullgraph")
_VALUES = {"true": True, "false": False}


def _compile_options(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> dict[str, str | bool]:
    """``mode=reduce-overhead,dynamic=True`` as arguments; a usage error for others."""
    found: dict[str, str | bool] = {}
    for part in value.split(",") if value else ():
        name, _, given = (text.strip() for text in part.partition("="))
        switch = _VALUES.get(given.lower()) if name in _SWITCHES else None
        if not given or not (name in _WORDS or switch is not None):
            known = "mode=WORD, backend=NAME, dynamic=True or False, fullgraph=True or False"
            raise click.BadParameter(f"{part.strip()!r} is none of {known}.", ctx, param)
        found[name] = given if switch is None else switch
    return found


_COLLECTING = {
    "python": click.option(
        "--python", metavar="PATH", help="Python interpreter that runs the script."
    ),
    "nproc": click.option(
        "--nproc-per-node",
        "nproc",
        type=click.IntRange(1),
        default=1,
        metavar="N",
        help="Run N ranks with torchrun.",
    ),
    "steps": click.option(
        "--steps", type=click.IntRange(1), metavar="N", help="Timed steps per block."
    ),
    "blocks": click.option(
        "--blocks",
        type=click.IntRange(1),
        metavar="N",
        help="Pairs of full blocks (default: until the speedup is known to 3 %, or 20 s).",
    ),
    "run_to_end": click.option("--run-to-end", is_flag=True, help="Let the script run to its end."),
    "after_steps": click.option(
        "--after-steps",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Begin to measure after N steps; then let the script run to its end.",
    ),
    "for_steps": click.option(
        "--for-steps",
        type=click.IntRange(1),
        metavar="M",
        help="Measure for M steps at most; then let the script run to its end.",
    ),
    "compile_target": click.option(
        "--compile",
        "compile_target",
        metavar="TARGET",
        help="Compile TARGET in a script that doesn't: `__main__:model`, `mymodel.Net`,"
        " `train.step`, or `auto`, the module whose calls take most time.",
    ),
    "compile_options": click.option(
        "--compile-options",
        callback=_compile_options,
        metavar="OPTIONS",
        help="Arguments of torch.compile for it: `mode=reduce-overhead,dynamic=True`.",
    ),
    "timeout_s": click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(0, min_open=True),
        metavar="S",
        help="Stop after S seconds.",
    ),
    "no_baseline": click.option(
        "--no-baseline", is_flag=True, help="Don't run eager: measure the compiled script only."
    ),
    "warm": click.option(
        "--warm", is_flag=True, help="Run again with a warm cache, to measure a warm start."
    ),
    "compare_outputs": click.option(
        "--compare-outputs",
        is_flag=True,
        help="At the end, repeat one call on copies, and compare compiled results and gradients.",
    ),
    "keep_cache": click.option(
        "--keep-cache", is_flag=True, help="Keep the run's private compile cache in its folder."
    ),
    "out": click.option(
        "-o",
        "--output",
        "out",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Run folder (default: traceview-NAME, or the next free name).",
    ),
    "force": click.option("--force", is_flag=True, help="Replace an existing run folder."),
}
#: Those that matter where nothing is timed.
_COMPARING = (
    "python", "nproc", "compile_target", "compile_options", "timeout_s", "keep_cache",
    "out", "force",
)  # fmt: skip

_REPORTING = (
    click.option(
        "--json",
        "as_json",
        is_flag=True,
        help="Print the diagnosis as JSON; a script's own stdout goes to stderr.",
    ),
    click.option(
        "--markdown",
        "as_markdown",
        is_flag=True,
        help="Print it as Markdown for an issue; a script's own stdout goes to stderr.",
    ),
    click.option("--open", "open_report", is_flag=True, help="Open report.html in the browser."),
    click.option(
        "--job-steps",
        type=click.IntRange(1),
        metavar="N",
        help="Steps of the real job, to decide whether compiling pays off.",
    ),
    click.option(
        "--select",
        multiple=True,
        metavar="RULES",
        help="Check only these rules: names, codes or families (gb, TV1), comma-separated.",
    ),
    click.option("--ignore", multiple=True, metavar="RULES", help="Don't check these rules."),
)

_LIMIT = click.option(
    "--limit",
    "given_limits",
    multiple=True,
    metavar="NAME=VALUE",
    help="Raise a limit of what is read: memory=8G, seconds=600 (docs/inputs.md lists them).",
)

_TARGET = (
    click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does."),
    click.argument(
        "target",
        nargs=-1,
        type=click.UNPROCESSED,
        metavar="[SCRIPT] [ARGS]...",
        shell_complete=files,
    ),
)

#: Everything after the script's name belongs to the script.
PASS_ON = {"ignore_unknown_options": False, "allow_interspersed_args": False}


class TargetCommand(click.Command):
    """A command that runs a script: what follows ``-m MODULE`` is the module's, as with python."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse ``args`` with ``--`` inserted after a ``-m MODULE`` among our own options."""
        with_value = {
            name
            for parameter in self.params
            if isinstance(parameter, click.Option) and not parameter.is_flag
            for name in parameter.opts
        }
        index = 0
        while index < len(args) and args[index].startswith("-") and args[index] != "--":
            if args[index] == "-m":
                args = [*args[: index + 2], "--", *args[index + 2 :]]
                break
            index += 2 if args[index] in with_value else 1
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 (click's)
        """Carry it out, with polars' first thread started: it takes no signal of the script's."""
        from traceview.collectors.launch import threads_without_signals

        with threads_without_signals():
            import_module("polars")
        return super().invoke(ctx)


def collecting(function: F) -> F:
    """Options of every command that runs a script."""
    return _decorated(function, tuple(_COLLECTING.values()))


def comparing(function: F) -> F:
    """Options of a command that runs a script and times nothing."""
    return _decorated(function, tuple(_COLLECTING[name] for name in _COMPARING))


def reporting(function: F) -> F:
    """Options of every command that writes a report."""
    return _decorated(function, _REPORTING)


def limited(function: F) -> F:
    """The limits of what is read, in effect while the command runs."""

    @wraps(function)
    def run(*words: Any, given_limits: tuple[str, ...], **options: Any) -> Any:  # noqa: ANN401
        from traceview import limits

        with limits.used(limits.with_given(given_limits)):
            return function(*words, **options)

    return _decorated(cast(F, run), (_LIMIT,))


def targeting(function: F) -> F:
    """The script, or ``-m MODULE``, with its own arguments."""
    return _decorated(function, _TARGET)


def _decorated(function: F, decorators: tuple[Callable[[F], F], ...]) -> F:
    for decorator in reversed(decorators):
        function = decorator(function)
    return function
