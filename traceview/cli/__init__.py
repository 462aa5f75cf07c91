"""The command line. Each command is a module that is imported only when it is used."""

from __future__ import annotations

from importlib import import_module

import click

from traceview import __version__

_COMMANDS = {
    "diagnose": "Run a script, measure eager against compiled, and explain the result.",
    "demo": "Diagnose a bundled script.",
    "collect": "Run a script and keep what was measured, without analysing it.",
    "postmortem": "Read what logs are left of a job, and explain them.",
    "report": "Render the report of a run again.",
    "compare": "Say what got slower or faster from one run to another, and why.",
    "check": "Hold a run to limits, for CI: exit code 1 where one is broken.",
    "tables": "List the tables of a run and what their columns mean.",
    "query": "Run SQL on the tables of a run.",
    "timeline": "Write a run's compile timeline for Perfetto.",
    "rules": "List the rules.",
    "explain": "Say what a rule finds, why it costs and what to do.",
    "doctor": "Say what of torch, compiler, GPU and profiler is usable here.",
}


class _LazyGroup(click.Group):
    """A group that knows its commands' names and summaries without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"traceview.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="traceview")
def traceview() -> None:
    """Did torch.compile help, why, and what should be done next?

    \b
    traceview diagnose train.py --lr 1e-3     one report about your own script
    traceview demo graph-break                the same about a bundled one
    traceview explain gb-item                 what a rule means
    """
