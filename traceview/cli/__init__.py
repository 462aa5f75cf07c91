"""The command line. A command's module is imported only when it is used."""

from __future__ import annotations

import os
from importlib import import_module

import click

from traceview import __version__
from traceview.errors import DEBUG

#: Command → (its module, its summary). The module has it as ``COMMAND_command``.
_COMMANDS = {
    "diagnose": ("scripts", "Run a script, compare eager with compiled, and explain the result."),
    "demo": ("scripts", "Diagnose a bundled script."),
    "collect": ("scripts", "Run a script and record it, without analysing it."),
    "accuracy": ("accuracy", "Check whether compiled results and gradients are eager's."),
    "try": ("trials", "Try what the findings advise, and measure what it gains."),
    "sweep": ("trials", "Measure modes, dynamic shapes or backends against eager."),
    "rollout": ("rollout", "Check whether a compiled service is safe to roll out."),
    "postmortem": ("postmortem", "Read the logs of a finished job and explain them."),
    "report": ("runs", "Write the report of a run again."),
    "ticket": ("runs", "Write a bug report of a run, without what is private."),
    "compare": ("compare", "Compare two runs: what got slower or faster, and why."),
    "check": ("check", "Check a run against limits in CI (exit code 1 if one is violated)."),
    "tables": ("runs", "List a run's tables and what their columns mean."),
    "query": ("runs", "Run SQL on a run's tables."),
    "timeline": ("runs", "Write a run's compile timeline for Perfetto."),
    "rules": ("rules", "List the rules."),
    "explain": ("rules", "Explain a rule: what it finds, why it costs, what to do."),
    "mcp": ("agents", "Serve these commands as tools for coding agents."),
    "skill": ("agents", "Print a skill file for coding agents."),
    "doctor": ("doctor", "Check what torch, the compiler, the GPU and the profiler can do here."),
}


class _LazyGroup(click.Group):
    """A group that lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"traceview.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


def _show_tracebacks(_ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        os.environ[DEBUG] = "1"


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="traceview")
@click.option(
    "--debug", is_flag=True, hidden=True, expose_value=False, callback=_show_tracebacks,
    help="Show the traceback of a defect.",
)  # fmt: skip
def traceview() -> None:
    """Did torch.compile help, why, and what should you do next?

    \b
    traceview diagnose train.py --lr 1e-3     a report on your own script
    traceview demo graph-break                a report on a bundled script
    traceview explain gb-item                 what a rule means
    """
