"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_COLLECTING = (
    click.option("--python", metavar="PATH", help="Interpreter that runs the script."),
    click.option(
        "--nproc-per-node", "nproc", type=click.IntRange(1), default=1, metavar="N",
        help="Run N ranks through torchrun.",
    ),
    click.option("--steps", type=click.IntRange(1), metavar="N", help="Timed steps in each block."),
    click.option(
        "--blocks", type=click.IntRange(1), default=12, show_default=True, metavar="N",
        help="Pairs of eager and compiled blocks; a verdict takes three.",
    ),
    click.option("--run-to-end", is_flag=True, help="Let the script run to its own end."),
    click.option(
        "--timeout", type=click.FloatRange(0, min_open=True), metavar="S",
        help="Stop after S seconds.",
    ),
    click.option(
        "--no-baseline", is_flag=True, help="Never run eager; measure the compiled side alone."
    ),
    click.option(
        "--warm", is_flag=True, help="Run once more on the warm cache, to measure a warm start."
    ),
    click.option(
        "--compare-outputs", is_flag=True,
        help="At the end, run one call again on copies, eager and compiled: do the outputs agree?",
    ),
    click.option(
        "--keep-cache", is_flag=True, help="Keep the private compile cache in the run folder."
    ),
    click.option(
        "-o", "--output", "out", type=click.Path(path_type=Path), metavar="DIR",
        help="Run folder (default: traceview-NAME, or the next free name).",
    ),
    click.option("--force", is_flag=True, help="Replace an older run folder of that name."),
)  # fmt: skip

_REPORTING = (
    click.option(
        "--json", "as_json", is_flag=True,
        help="Print the diagnosis as JSON; the script's own stdout then goes to stderr.",
    ),
    click.option(
        "--markdown", "as_markdown", is_flag=True,
        help="Print it as Markdown for a ticket; the script's own stdout then goes to stderr.",
    ),
    click.option("--open", "open_report", is_flag=True, help="Open report.html in the browser."),
    click.option(
        "--job-steps", type=click.IntRange(1), metavar="N",
        help="Steps of the real job: decides whether compiling pays for itself.",
    ),
    click.option(
        "--select", multiple=True, metavar="RULES",
        help="Check these rules only: names, codes, gb or TV1 for a family, commas between.",
    ),
    click.option(
        "--ignore", multiple=True, metavar="RULES", help="Do not check these; named likewise.",
    ),
)  # fmt: skip

_TARGET = (
    click.option("-m", "module", metavar="MODULE", help="Run a module, as python -m does."),
    click.argument("target", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGS]..."),
)

#: Everything after the script's name belongs to the script.
PASS_ON = {"ignore_unknown_options": False, "allow_interspersed_args": False}


class TargetCommand(click.Command):
    """A command that runs a script: what follows ``-m MODULE`` is the module's, as with python."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with_value = {
            name
            for parameter in self.params
            if isinstance(parameter, click.Option) and not parameter.is_flag
            for name in parameter.opts
        }
        return super().parse_args(ctx, _end_options_after_module(args, with_value))


def _end_options_after_module(args: list[str], with_value: set[str]) -> list[str]:
    """``args`` with ``--`` after the ``-m MODULE`` among our own options, if there is one."""
    index = 0
    while index < len(args) and args[index].startswith("-") and args[index] != "--":
        if args[index] == "-m":
            return [*args[: index + 2], "--", *args[index + 2 :]]
        index += 2 if args[index] in with_value else 1
    return args


def _apply(decorators: tuple[Callable[[F], F], ...]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def collecting(function: F) -> F:
    """Options of everything that runs a script."""
    return _apply(_COLLECTING)(function)


def reporting(function: F) -> F:
    """Options of everything that ends in a report."""
    return _apply(_REPORTING)(function)


def targeting(function: F) -> F:
    """The script, or ``-m MODULE``, with its own arguments."""
    return _apply(_TARGET)(function)


def split_target(
    module: str | None, target: tuple[str, ...]
) -> tuple[Literal["script", "module"], str, tuple[str, ...]]:
    """(kind, name, arguments) of what to run; UsageError where nothing is named."""
    from traceview.errors import UsageError

    if module is not None:
        return "module", module, target
    if not target:
        fact = "No script was named."
        remedy = "Say `traceview diagnose train.py` or `-m MODULE`; our options come before it."
        raise UsageError(fact, remedy, slug="no-script")
    return "script", target[0], target[1:]
