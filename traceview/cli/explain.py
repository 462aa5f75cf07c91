"""``traceview explain``: one rule's documentation."""

from __future__ import annotations

import click


@click.command("explain")
@click.argument("rule")
def command(rule: str) -> None:
    """Say what RULE (gb-item or TV101) finds, why it costs, its evidence, and what to do."""
    from traceview.errors import UsageError
    from traceview.rules import catalogue
    from traceview.rules.docs import page

    wanted = rule.strip().lower()
    found = [item for item in catalogue() if wanted in (item.name, item.code.lower())]
    if not found:
        fact = f"There is no rule called {rule}."
        raise UsageError(fact, "`traceview rules` lists them all.", slug="no-such-rule")
    click.echo(page(found[0]))
