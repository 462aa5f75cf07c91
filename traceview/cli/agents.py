"""Commands for coding agents: ``traceview mcp`` and ``traceview skill``."""

from __future__ import annotations

import click

from traceview.errors import UsageError


@click.command("mcp")
def mcp_command() -> None:
    """Serve traceview's commands as tools for coding agents (Model Context Protocol, on stdio).

    \b
    pip install "traceview[mcp]"
    {"mcpServers": {"traceview": {"command": "traceview", "args": ["mcp"]}}}
    """
    try:
        from traceview.agents.server import made
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "traceview":
            raise
        fact = f"The server needs the package mcp, and {error.name} is missing."
        raise UsageError(fact, 'Run: pip install "traceview[mcp]"', slug="no-mcp") from error
    made().run("stdio")


@click.command("skill")
def skill_command() -> None:
    """Print a skill file for coding agents: how to go from a slow script to a measured gain.

    \b
    traceview skill > SKILL.md
    """
    from importlib.resources import files

    click.echo(files("traceview.agents").joinpath("skill.md").read_text(encoding="utf-8"), nl=False)
