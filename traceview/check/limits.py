"""Limits as a user sets them, on the command line or in ``[tool.traceview.check]``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec.structs import replace

from traceview.compare.figures import kinds
from traceview.errors import UsageError
from traceview.rules.finding import SEVERITIES

#: Limits with their own name: the figure, and whether the limit is a maximum or a minimum.
NAMED = {
    "max-breaks": ("graph_breaks", "max"),
    "max-recompiles": ("recompiles", "max"),
    "max-compile-seconds": ("compile_seconds", "max"),
    "max-step-ms": ("compiled_ms", "max"),
    "min-speedup": ("speedup", "min"),
}
#: What ``no`` excludes.
NO = {
    "errors": "findings of severity error",
    "warnings": "findings of severity error or warning",
    "findings": "findings of any severity",
    "new-findings": "errors and warnings that the baseline does not have",
    "damage": "unreadable pieces of a log or trace",
    "slowdowns": "a compiled step or a cold compile slower than the baseline's, beyond noise",
}
NEED_BASELINE = ("new-findings", "slowdowns")
ALL = "all"
_PLAIN = ("missing", "whole-interval", "allow-failure")


class Limits(msgspec.Struct, frozen=True):
    """``highest``, ``lowest`` and ``growth`` (a fraction of the baseline's) by a figure's key.

    ``findings``: by severity, or "all".
    """

    highest: Mapping[str, float] = {}
    lowest: Mapping[str, float] = {}
    growth: Mapping[str, float] = {}
    findings: Mapping[str, float] = {}
    no: tuple[str, ...] = ()
    missing: str = "fail"
    whole_interval: bool = False
    allow_failure: bool = False

    @property
    def empty(self) -> bool:
        """Whether no limit is set."""
        return not (self.highest or self.lowest or self.growth or self.findings or self.no)

    @property
    def need_baseline(self) -> bool:
        """Whether any of the limits needs a baseline."""
        return bool(self.growth) or any(word in NEED_BASELINE for word in self.no)


def limits_of(asked: Mapping[str, Any], where: str) -> Limits:
    """Limits from the keys of the TOML table; UsageError for a wrong key or value.

    ``max``, ``min`` and ``max-growth`` map figures to numbers; an empty value sets no limit.
    """
    asked = {
        key: value
        for key, value in asked.items()
        if value is not None and value is not False and value not in ((), [], {})
    }
    known = (*NAMED, "max", "min", "max-growth", "max-findings", "no", *_PLAIN)
    _known(asked, known, "check has no limit called", where)
    figures: dict[str, dict[str, float]] = {}
    for way in ("max", "min", "max-growth"):
        rows = asked.get(way, {})
        if not isinstance(rows, Mapping):
            remedy = f"Write {way} = {{ kernels_per_step = 120 }}."
            raise _wrong(f"{way} must be a table of figures", remedy, where)
        _known(rows, [kind.key for kind in kinds()], f"{way} has no figure called", where)
        figures[way] = {key: number(value, f"{way} {key}", where) for key, value in rows.items()}
    for name, (key, way) in NAMED.items():
        if name in asked:
            figures[way][key] = number(asked[name], name, where)
    findings = asked.get("max-findings", {})
    findings = findings if isinstance(findings, Mapping) else {ALL: findings}
    _known(findings, (*SEVERITIES, ALL), "max-findings has no severity called", where)
    many = {key: number(value, "max-findings", where) for key, value in findings.items()}
    given = asked.get("no", ())
    given = [given] if isinstance(given, str) else given
    if not isinstance(given, list | tuple) or not all(isinstance(word, str) for word in given):
        raise _wrong("no must be a list of words", 'Write no = ["new-findings"].', where)
    words = tuple(part.strip() for word in given for part in word.split(",") if part.strip())
    _known(words, NO, "no does not take", where)
    missing = asked.get("missing", "fail")
    if missing not in ("fail", "skip"):
        fact = f"missing must be fail or skip, not {missing!r}"
        raise _wrong(fact, "Write missing = 'fail'.", where)
    for name in ("whole-interval", "allow-failure"):
        if not isinstance(value := asked.get(name, False), bool):
            fact = f"{name} must be true or false, not {value!r}"
            raise _wrong(fact, f"Write {name} = true.", where)
    return Limits(
        highest=figures["max"],
        lowest=figures["min"],
        growth=figures["max-growth"],
        findings=many,
        no=words,
        missing=missing,
        whole_interval="whole-interval" in asked,
        allow_failure="allow-failure" in asked,
    )


def merged(first: Limits, later: Limits, given: Iterable[str]) -> Limits:
    """``first`` overridden by ``later``: figure by figure, and the fields ``given`` as a whole."""
    rest: dict[str, Any] = {name: getattr(later, name) for name in given}
    return replace(
        first,
        highest={**first.highest, **later.highest},
        lowest={**first.lowest, **later.lowest},
        growth={**first.growth, **later.growth},
        findings={**first.findings, **later.findings},
        **rest,
    )


def number(value: Any, name: str, where: str) -> float:  # noqa: ANN401 - any TOML value
    """A limit as a number; ``10%`` is 0.1."""
    try:
        if isinstance(value, bool):
            raise ValueError
        percent = isinstance(value, str) and value.strip().endswith("%")
        found = float(value.strip().rstrip("%")) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found) or found < 0:
        fact = f"{name} needs a number of at least 0, not {value!r} ({where})."
        raise UsageError(fact, "Use a plain number, such as 2 or 1.5.", slug="no-number")
    return found / 100 if percent else found


def pairs_of(words: Iterable[str], option: str) -> dict[str, str]:
    """``FIGURE=N`` arguments of ``option`` as a dict."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            fact = f"--{option} needs NAME=N, not {word!r}."
            raise UsageError(
                fact, f"For example, --{option} kernels_per_step=120.", slug="no-number"
            )
        found[name.strip()] = value
    return found


def _known(names: Iterable[str], known: Iterable[str], fact: str, where: str) -> None:
    """UsageError for the first name that is not known."""
    words = list(known)
    for name in names:
        if name not in words:
            near = get_close_matches(str(name), words, 1)
            remedy = f"Did you mean {near[0]}?" if near else f"Choose from {', '.join(words)}."
            raise UsageError(f"{fact} {name} ({where}).", remedy, slug="no-such-key")


def _wrong(fact: str, remedy: str, where: str) -> UsageError:
    return UsageError(f"{fact} ({where}).", remedy, slug="wrong-key")
