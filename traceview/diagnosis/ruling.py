"""The rules at work on one run: what they found, could not check, and what the user silenced."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from traceview.diagnosis.excerpts import source_reader
from traceview.diagnosis.model import NotChecked
from traceview.reading import of_chosen
from traceview.rules import run_rules
from traceview.rules.choice import Choice, choose
from traceview.rules.finding import Finding
from traceview.rules.ignores import silence
from traceview.rules.used import RulesUsed, rules_used
from traceview.run import Manifest, Run
from traceview.tables import Tables


@dataclass(frozen=True, slots=True)
class Ruling:
    """``follows``: rule → the rules whose findings are its cause."""

    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]
    used: RulesUsed
    follows: Mapping[str, frozenset[str]]


def ruling(run: Run, tables: Tables, choice: Choice | None = None) -> Ruling:
    """What the rules of ``choice`` (default: all of our own) say of ``run``."""
    choice = choice or choose()
    found, missing = run_rules(of_chosen(tables), choice.rules)
    unchecked = {item.rule for item in missing}
    kept, silenced, unused = silence(
        found,
        tables["sources"]["file"].drop_nulls().unique().sort(),
        source_reader(run, tables),
        choice.installed.rules,
        {rule.name for rule in choice.rules} - unchecked,
    )
    return Ruling(
        kept,
        tuple(
            NotChecked(item.rule, item.code, item.needs, _command(item.command, run.manifest))
            for item in missing
        ),
        rules_used(choice, silenced, unused),
        {rule.name: rule.follows for rule in choice.rules},
    )


def _command(command: str | None, manifest: Manifest) -> str | None:
    """``command`` with the run's own target in place of SCRIPT, where the run names it."""
    if command is None or not manifest.target:
        return command
    module = ["-m"] if manifest.target_kind == "module" else []
    return command.replace("SCRIPT", shlex.join([*module, *manifest.target]))
