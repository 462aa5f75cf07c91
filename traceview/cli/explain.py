"""``traceview explain``: one rule's documentation."""

from __future__ import annotations

import click


@click.command("explain")
@click.argument("rule")
def command(rule: str) -> None:
    """Say what RULE (gb-item or TV101) finds, why it costs, its evidence, and what to do.

    The settings are shown as they are in force in the current folder.
    """
    from traceview.cli.config import choice_of
    from traceview.errors import UsageError
    from traceview.rules.choice import did_you_mean
    from traceview.rules.docs import page
    from traceview.rules.plugins import installed

    wanted = rule.strip().lower()
    rules = installed().rules
    found = [item for item in rules if wanted in (item.name, item.code.lower())]
    if not found:
        refused = [item for item in installed().refused if wanted == item.name]
        fact = refused[0].sentence if refused else f"There is no rule called {rule}."
        remedy = "Mend that package." if refused else did_you_mean(rules, rule)
        raise UsageError(fact, remedy, slug="no-such-rule")
    try:
        choice = choice_of()
    except UsageError:
        click.echo(page(found[0]))  # it helps to mend what is wrong
        raise
    click.echo(page(found[0], choice), nl=False)
