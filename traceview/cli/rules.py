"""The catalogue of rules: ``traceview rules`` and ``explain``."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.group("rules", invoke_without_command=True, subcommand_metavar="[COMMAND]")
@click.option("--json", "as_json", is_flag=True, help="Print everything about each rule as JSON.")
@click.pass_context
def rules_command(ctx: click.Context, as_json: bool) -> None:
    """List the rules, including those of other packages: code, name and what they find."""
    if ctx.invoked_subcommand is not None:
        return
    from traceview.rules.plugins import installed
    from traceview.rules.registry import OWN

    found = installed()
    if as_json:
        rows = [
            {
                "code": rule.code,
                "rule": rule.name,
                "finds": rule.summary,
                "severities": list(rule.severities),
                "needs": sorted(rule.needs),
                "gpu_only": rule.gpu_only,
                "follows": sorted(rule.follows),
                "settings": dict(rule.settings),
                "origin": rule.origin,
            }
            for rule in found.rules
        ]
        click.echo(json.dumps(rows, indent=2))
    else:
        width = max(len(rule.name) for rule in found.rules)
        for rule in found.rules:
            origin = "" if rule.origin == OWN else f" ({rule.origin})"
            click.echo(f"{rule.code}  {rule.name:<{width}}  {rule.summary}{origin}")
    for refused in found.refused:
        click.echo(f"traceview: {refused.sentence}", err=True)


@rules_command.command("new")
@click.argument("name")
def new_command(name: str) -> None:
    """Start a rule called NAME (gb-item): its module, two scripts and its code.

    In a checkout of traceview. The files are skeletons; nothing is overwritten.
    """
    from traceview.cli.new_rule import checkout, write

    root = checkout(Path.cwd())
    written = write(root, name)
    for path in written:
        click.echo(f"wrote {path.relative_to(root)}")
    stem = written[0].stem
    click.echo(
        "\nFill in the rule and the scripts, then\n"
        f"  python fixtures/record.py bad/{stem} good/{stem}\n"
        "  make docs-rules\n"
        "  python -m pytest tests/rules"
    )


def _names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion by the names of rules."""
    from traceview.rules.plugins import installed

    return [rule.name for rule in installed().rules if rule.name.startswith(incomplete)]


@click.command("explain")
@click.argument("rule", shell_complete=_names)
def explain_command(rule: str) -> None:
    """Explain RULE (gb-item or TV101): what it finds, why it costs, its evidence and what to do.

    Settings are those in effect in the current folder.
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
        remedy = "Fix that package." if refused else did_you_mean(rules, rule)
        raise UsageError(fact, remedy, slug="no-such-rule")
    try:
        choice = choice_of()
    except UsageError:
        click.echo(page(found[0]))  # it helps to fix the error
        raise
    click.echo(page(found[0], choice), nl=False)
