"""Limits as a user sets them, on the command line or in ``[tool.traceview.check]``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from traceview.compare.figures import kinds
from traceview.errors import UsageError
from traceview.rules.finding import SEVERITIES

#: Limits with their own name: the figure, and whether the limit is a maximum or a minimum.
NAMED: dict[str, tuple[str, Literal["max", "min"]]] = {
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
MISSING = ("fail", "skip")
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
    for key in asked:
        if key not in known:
            raise _unknown(f"check has no limit called {key}", key, known, where)
    named = {(way, key): asked[name] for name, (key, way) in NAMED.items() if name in asked}
    return Limits(
        highest={
            **_figures(asked.get("max"), "max", where),
            **{k: number(v, k, where) for (way, k), v in named.items() if way == "max"},
        },
        lowest={
            **_figures(asked.get("min"), "min", where),
            **{k: number(v, k, where) for (way, k), v in named.items() if way == "min"},
        },
        growth=_figures(asked.get("max-growth"), "max-growth", where),
        findings=_findings(asked.get("max-findings"), where),
        no=_words(asked.get("no", ()), where),
        missing=_one_of(asked.get("missing", "fail"), "missing", MISSING, where),
        whole_interval=_flag(asked.get("whole-interval", False), "whole-interval", where),
        allow_failure=_flag(asked.get("allow-failure", False), "allow-failure", where),
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


def _figures(given: Any, option: str, where: str) -> dict[str, float]:  # noqa: ANN401
    rows = {} if given is None else given
    if not isinstance(rows, Mapping):
        fact = f"{option} must be a table of figures ({where})."
        raise UsageError(fact, f"Write {option} = {{ kernels_per_step = 120 }}.", slug="wrong-key")
    known = [kind.key for kind in kinds()]
    for key in rows:
        if key not in known:
            raise _unknown(f"{option} has no figure called {key}", key, known, where)
    return {key: number(value, f"{option} {key}", where) for key, value in rows.items()}


def _findings(given: Any, where: str) -> dict[str, float]:  # noqa: ANN401
    rows = given if isinstance(given, Mapping) else {} if given is None else {ALL: given}
    for key in rows:
        if key not in (*SEVERITIES, ALL):
            raise _unknown(
                f"max-findings has no severity called {key}", key, (*SEVERITIES, ALL), where
            )
    return {key: number(value, "max-findings", where) for key, value in rows.items()}


def _words(given: Any, where: str) -> tuple[str, ...]:  # noqa: ANN401
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        fact = f"no must be a list of words ({where})."
        raise UsageError(fact, 'Write no = ["new-findings"].', slug="wrong-key")
    found = tuple(part.strip() for word in words for part in word.split(",") if part.strip())
    for word in found:
        if word not in NO:
            raise _unknown(f"no does not take {word}", word, NO, where)
    return found


def _one_of(value: Any, name: str, known: tuple[str, ...], where: str) -> str:  # noqa: ANN401
    if value not in known:
        fact = f"{name} must be {' or '.join(known)}, not {value!r} ({where})."
        raise UsageError(fact, f"Write {name} = {known[0]!r}.", slug="wrong-key")
    return str(value)


def _flag(value: Any, name: str, where: str) -> bool:  # noqa: ANN401
    if not isinstance(value, bool):
        fact = f"{name} must be true or false, not {value!r} ({where})."
        raise UsageError(fact, f"Write {name} = true.", slug="wrong-key")
    return value


def _unknown(fact: str, key: str, known: Iterable[str], where: str) -> UsageError:
    words = list(known)
    near = get_close_matches(str(key), words, 1)
    remedy = f"Did you mean {near[0]}?" if near else f"Choose from {', '.join(words)}."
    return UsageError(f"{fact} ({where}).", remedy, slug="no-such-key")
