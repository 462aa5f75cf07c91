"""``traceview rules``: the catalogue."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from traceview.rules import Rule


@click.command("rules")
@click.option("--json", "as_json", is_flag=True, help="Print all that is known of each as JSON.")
def command(as_json: bool) -> None:
    """List the rules: code, name and what they find; those of other packages too."""
    from traceview.rules.plugins import installed
    from traceview.rules.registry import OWN

    found = installed()
    if as_json:
        click.echo(json.dumps([_row(rule) for rule in found.rules], indent=2))
    else:
        width = max(len(rule.name) for rule in found.rules)
        for rule in found.rules:
            origin = "" if rule.origin == OWN else f" ({rule.origin})"
            click.echo(f"{rule.code}  {rule.name:<{width}}  {rule.summary}{origin}")
    for refused in found.refused:
        click.echo(f"traceview: {refused.sentence}", err=True)


def _row(rule: Rule) -> dict[str, Any]:
    from traceview.rules.registry import severities

    return {
        "code": rule.code,
        "rule": rule.name,
        "finds": rule.summary,
        "severities": list(severities(rule)),
        "needs": sorted(rule.needs),
        "gpu_only": rule.gpu_only,
        "follows": sorted(rule.follows),
        "settings": dict(rule.settings),
        "origin": rule.origin,
    }
