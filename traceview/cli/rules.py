"""``traceview rules``: the catalogue."""

from __future__ import annotations

import json

import click


@click.command("rules")
@click.option("--json", "as_json", is_flag=True, help="Print the catalogue as JSON.")
def command(as_json: bool) -> None:
    """List the rules: code, name and what they find."""
    from traceview.rules import catalogue

    rules = catalogue()
    if as_json:
        rows = [
            {
                "code": rule.code,
                "rule": rule.name,
                "finds": rule.summary,
                "needs": sorted(rule.needs),
            }
            for rule in rules
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    width = max(len(rule.name) for rule in rules)
    for rule in rules:
        click.echo(f"{rule.code}  {rule.name:<{width}}  {rule.summary}")
