"""Which rules are checked, and with which settings: what was asked for, made of words into rules.

A word is a rule's name (``gb-item``), its code (``TV101``), a family (``gb``), the beginning of a
code (``TV1``), or ``all``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec.structs import replace

from traceview.errors import UsageError
from traceview.rules.plugins import Installed
from traceview.rules.registry import Rule, Setting, catalogue

ALL = "all"
_CODE_START = re.compile(r"([A-Z]+)\d*")
_SEE_ALL = "`traceview rules` lists them all."
#: Offered at most; how alike words must be (difflib's ratio): in a code one character may be wrong.
_NEAR, _ALIKE, _ALIKE_CODE = 3, 0.6, 0.79


class Asked(msgspec.Struct, frozen=True):
    """Words as the user wrote them; ``where`` is the option or file that they stand in."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = {}
    where: str = "the command line"


class Changed(msgspec.Struct, frozen=True):
    """A setting that is not its default."""

    rule: str
    setting: str
    value: Setting
    default: Setting


class Choice(msgspec.Struct, frozen=True):
    """``rules`` to be checked, with the settings in force; what was ``left_out`` and ``changed``.

    ``asked`` are the places that said so; ``installed`` is all that there was to choose from.
    """

    rules: tuple[Rule, ...]
    installed: Installed
    left_out: tuple[Rule, ...] = ()
    changed: tuple[Changed, ...] = ()
    asked: tuple[Asked, ...] = ()


def choose(installed: Installed | None = None, *asked: Asked) -> Choice:
    """The rules that ``asked`` leave of ``installed`` (default: of our own), the last one winning.

    ``select`` starts over, whatever was ignored before; ``ignore`` removes. UsageError for a
    word that stands for nothing, an unknown setting, and a value of the wrong type.
    """
    installed = installed or Installed(catalogue())
    rules = {rule.name: rule for rule in installed.rules}
    chosen = set(rules)
    changed: dict[tuple[str, str], Changed] = {}
    for one in asked:
        if one.select:
            chosen = _named(installed, one.select, one.where)
        chosen -= _named(installed, one.ignore, one.where)
        for found in _changes(installed, one):
            changed[found.rule, found.setting] = found
    for one_change in changed.values():
        rule = rules[one_change.rule]
        settings = {**rule.settings, one_change.setting: one_change.value}
        rules[rule.name] = replace(rule, settings=settings)
    return Choice(
        tuple(rule for rule in rules.values() if rule.name in chosen),
        installed,
        tuple(rule for rule in rules.values() if rule.name not in chosen),
        tuple(change for change in changed.values() if change.value != change.default),
        tuple(asked),
    )


def shown(value: Setting) -> str:
    """A setting as people write it: ``3`` for 3.0."""
    return str(value).removesuffix(".0")


def matching(rules: Iterable[Rule], word: str) -> list[Rule]:
    """The rules that ``word`` stands for, in any case; none if it stands for nothing."""
    name, code = word.strip().lower().rstrip("-"), word.strip().upper()
    start = _CODE_START.fullmatch(code)
    return [
        rule
        for rule in rules
        if name in (ALL, rule.name)
        or rule.name.startswith(f"{name}-")
        or (start and rule.code.startswith(code) and rule.code.rstrip("0123456789") == start[1])
    ]


def did_you_mean(rules: Iterable[Rule], word: str) -> str:
    """A remedy for a word that is no rule's name: the rules of that family, else the like."""
    family = [rule.name for rule in matching(rules, word)]
    names = [rule.name for rule in rules]
    codes = {rule.code: f"{rule.code} ({rule.name})" for rule in rules}
    near = get_close_matches(word.strip().lower(), names, _NEAR, _ALIKE)
    near += [codes[code] for code in get_close_matches(word.strip().upper(), codes, 1, _ALIKE_CODE)]
    found = family[:_NEAR] or near
    return f"{_or(found)} {_SEE_ALL}" if found else _SEE_ALL


def _named(installed: Installed, words: Iterable[str], where: str) -> set[str]:
    """Names of the rules that ``words`` stand for."""
    refused = {rule.name for rule in installed.refused}
    names: set[str] = set()
    for word in words:
        found = matching(installed.rules, word)
        if not found and word.strip().lower() not in refused:
            fact = f"There is no rule called {word} ({where})."
            raise UsageError(fact, did_you_mean(installed.rules, word), slug="no-such-rule")
        names |= {rule.name for rule in found}
    return names


def _changes(installed: Installed, asked: Asked) -> Iterator[Changed]:
    for word, settings in asked.settings.items():
        rule = next((r for r in installed.rules if word.lower() in (r.name, r.code.lower())), None)
        if rule is None and any(word == other.name for other in installed.refused):
            continue
        if rule is None:
            fact = f"There is no rule called {word} to give settings to ({asked.where})."
            raise UsageError(fact, did_you_mean(installed.rules, word), slug="no-such-rule")
        for name, value in settings.items():
            if name not in rule.settings:
                near = get_close_matches(name, rule.settings, 1, 0.5)
                has = f"It has {', '.join(rule.settings) or 'no settings'}."
                raise UsageError(
                    f"{rule.name} has no setting called {name} ({asked.where}).",
                    f"{_or(near)} {has}" if near else has,
                    slug="no-such-setting",
                )
            default = rule.settings[name]
            yield Changed(rule.name, name, _typed(rule, name, value, asked.where), default)


def _typed(rule: Rule, name: str, value: object, where: str) -> Setting:
    """``value`` as a setting of the default's type; a whole number is a number too."""
    default = rule.settings[name]
    wanted = {bool: "true or false", int: "a whole number"}.get(type(default), "a number")
    if isinstance(default, bool) == isinstance(value, bool) and isinstance(value, int | float):
        if isinstance(default, float) and math.isfinite(value):
            return float(value)
        if isinstance(default, int) and isinstance(value, int):
            return value
    raise UsageError(
        f"{rule.name}.{name} must be {wanted}, not {value!r} ({where}).",
        f"Its default is {shown(default)}; `traceview explain {rule.name}` says what it is.",
        slug="wrong-setting",
    )


def _or(words: Iterable[str]) -> str:
    return f"Did you mean {' or '.join(words)}?"
