"""Rules of other packages: entry points of the group ``traceview.rules``, each naming a module.

Such a module has the same front door as one of ours (docs/adding-a-rule.md), and its entry point's
name is the rule's. One that can't be used is left out with a sentence that says why: whatever it
does, the diagnosis goes on without it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from functools import cache
from importlib.metadata import EntryPoint, entry_points

import msgspec

from traceview.rules import needs
from traceview.rules.finding import SEVERITIES
from traceview.rules.registry import OWN, SECTIONS, Rule, catalogue, following, in_one_line, rule_of

GROUP = "traceview.rules"

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_CODE = re.compile(r"[A-Z]{2,8}[0-9]{3,4}")
_OUR_CODES = "TV"


class Refused(msgspec.Struct, frozen=True):
    """A rule of another package that can't be used, and why in one sentence."""

    name: str
    origin: str
    why: str

    @property
    def sentence(self) -> str:
        return f"The rule {self.name} of {self.origin} is not used: {self.why}."


class Installed(msgspec.Struct, frozen=True):
    """Every rule that can be run, ours first, and those that can't."""

    rules: tuple[Rule, ...]
    refused: tuple[Refused, ...] = ()


@cache
def installed() -> Installed:
    """traceview's own rules and those of other packages in this environment."""
    return with_entry_points(catalogue(), entry_points(group=GROUP))


def with_entry_points(own: tuple[Rule, ...], found: Iterable[EntryPoint]) -> Installed:
    """``own`` and the rules that ``found`` name; who comes first by package and name keeps it."""
    rules, refused = list(own), []
    for point in sorted(set(found), key=lambda point: (_origin(point), point.name)):
        try:
            with redirect_stdout(sys.stderr):  # ours may be a JSON document
                rule = following(rule_of(point.load(), point.name, _origin(point)), own)
            why = _fault(rule, rules)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - not our code
            why = f"its module {point.value} can't be loaded ({in_one_line(error)})"
        if why is None:
            rules.append(rule)
        else:
            refused.append(Refused(point.name, _origin(point), why))
    return Installed(tuple(rules), tuple(refused))


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"


def _fault(rule: Rule, before: Iterable[Rule]) -> str | None:
    """Why ``rule`` can't be used with those ``before`` it, or None."""
    if not _NAME.fullmatch(rule.name):
        return "a name is made of words in small letters with dashes between them"
    if not isinstance(rule.code, str) or not _CODE.fullmatch(rule.code):
        return f"its code {rule.code!r} is not two or more capital letters and three digits"
    if rule.code.startswith(_OUR_CODES):
        return f"codes that begin with {_OUR_CODES} are {OWN}'s own, and it has {rule.code}"
    for other in before:
        if other.name == rule.name:
            return f"{other.origin} has a rule of that name"
        if other.code == rule.code:
            return f"its code {rule.code} is that of {other.name} of {other.origin}"
    if missing := [section for section in SECTIONS if not rule.sections.get(section)]:
        return f"its docstring has no section {missing[0]!r}"
    if not rule.severities or not set(rule.severities) <= set(SEVERITIES):
        return f"its SEVERITIES {rule.severities!r} are not some of {', '.join(SEVERITIES)}"
    for name, default in rule.settings.items():
        if not isinstance(default, bool | int | float):
            return f"its setting {name!r} has no number, true or false for a default"
    if strange := needs.unknown(rule.needs):
        return f"it needs {strange[0]!r}, which this {OWN} does not record"
    return None
