"""The rules at work on one run: what they found, could not check, and what the user silenced."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from traceview.diagnosis.commands import of_target, with_target
from traceview.diagnosis.excerpts import source_reader
from traceview.diagnosis.functions import with_functions
from traceview.diagnosis.model import NotChecked
from traceview.diagnosis.patches import placed
from traceview.reading import of_chosen
from traceview.rules import run_rules
from traceview.rules.choice import Choice, choose
from traceview.rules.finding import Finding
from traceview.rules.ignores import silence
from traceview.rules.used import RulesUsed, rules_used
from traceview.run import Manifest, Run
from traceview.tables import Tables

#: Tables of figures per step, whose ``ms`` is null where no step is marked.
_PER_STEP = ("accounting", "account_details", "kernel_groups", "matched_kernels", "kernel_limits")


class Ruling(msgspec.Struct, frozen=True):
    """``follows``: rule → the rules whose findings are its cause; ``explains``: → effects."""

    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]
    used: RulesUsed
    follows: Mapping[str, frozenset[str]]
    explains: Mapping[str, frozenset[str]]


def ruling(run: Run, tables: Tables, choice: Choice | None = None) -> Ruling:
    """What the rules of ``choice`` (default: all of our own) say of ``run``."""
    choice = choice or choose()
    read = source_reader(run, tables)
    found, missing = run_rules(_measured(of_chosen(tables)), choice.rules)
    unchecked = {item.rule for item in missing}
    kept, silenced, unused = silence(
        found,
        tables["sources"]["file"].drop_nulls().unique().sort(),
        read,
        choice.installed.rules,
        {rule.name for rule in choice.rules} - unchecked,
    )
    named = with_functions(read)
    return Ruling(
        tuple(
            placed(with_target(named(finding), run.manifest), read, run.manifest.cwd)
            for finding in kept
        ),
        tuple(
            NotChecked(item.rule, item.code, item.needs, _command(item.command, run.manifest))
            for item in missing
        ),
        rules_used(choice, silenced, unused),
        {rule.name: rule.follows for rule in choice.rules},
        {rule.name: rule.explains for rule in choice.rules},
    )


def _measured(tables: Tables) -> Tables:
    """``tables`` without rows per step whose time is not known, as no step is marked."""
    kept = tables
    for name in _PER_STEP:
        if tables.has(name) and tables[name]["ms"].has_nulls():
            kept = tables.copy() if kept is tables else kept
            kept.put(name, tables[name].drop_nulls("ms"))
    return kept


def _command(command: str | None, manifest: Manifest) -> str | None:
    return None if command is None else of_target(command, manifest)
