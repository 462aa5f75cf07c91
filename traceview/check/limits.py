"""Limits as a user writes them, on the command line or in ``[tool.traceview.check]``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from traceview.compare.figures import kinds
from traceview.diagnosis.order import SEVERITIES
from traceview.errors import UsageError

#: Limits with a name of their own: which figure, and whether it is the most or the least allowed.
NAMED: dict[str, tuple[str, Literal["max", "min"]]] = {
    "max-breaks": ("graph_breaks", "max"),
    "max-recompiles": ("recompiles", "max"),
    "max-compile-seconds": ("compile_seconds", "max"),
    "max-step-ms": ("compiled_ms", "max"),
    "min-speedup": ("speedup", "min"),
}
#: What must not be there at all, in words.
NO = {
    "errors": "findings of severity error",
    "warnings": "findings of severity error or warning",
    "findings": "findings of any severity",
    "new-findings": "errors and warnings that the baseline has not",
    "damage": "pieces of a log or trace that could not be read",
    "slowdowns": "a compiled step, or compiling, that is slower than the baseline's beyond noise",
}
NEED_BASELINE = ("new-findings", "slowdowns")
ALL = "all"
MISSING = ("fail", "skip")


class Limits(msgspec.Struct, frozen=True):
    """``highest``, ``lowest`` and ``growth`` (a part, against the baseline) by a figure's key.

    ``names`` are the words that the user wrote for a figure; ``findings`` by severity, or "all".
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
        """Whether nothing is asked for."""
        return not (self.highest or self.lowest or self.growth or self.findings or self.no)

    @property
    def need_baseline(self) -> bool:
        """Whether a baseline is part of what is asked for."""
        return bool(self.growth) or any(word in NEED_BASELINE for word in self.no)


def limits_of(asked: Mapping[str, Any], where: str) -> Limits:
    """Limits from words: keys as in the TOML table; UsageError for what can't be understood.

    ``max``, ``min`` and ``max-growth`` map figures to numbers; what is empty asks for nothing.
    """
    asked = {key: value for key, value in asked.items() if not _says_nothing(value)}
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


def _says_nothing(value: Any) -> bool:  # noqa: ANN401 - any TOML value
    return value is None or value is False or value in ((), [], {})


_PLAIN = ("missing", "whole-interval", "allow-failure")


def merged(first: Limits, later: Limits, given: Iterable[str]) -> Limits:
    """``first`` where ``later`` says nothing: figure by figure, and field by field for the rest."""
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
        fact = f"{name} needs a number that is not negative, not {value!r} ({where})."
        raise UsageError(fact, "Write a plain number, such as 2 or 1.5.", slug="no-number")
    return found / 100 if percent else found


def pairs_of(words: Iterable[str], option: str) -> dict[str, str]:
    """``FIGURE=N`` as written after an option."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            fact = f"--{option} needs NAME=N, not {word!r}."
            raise UsageError(fact, f"Say --{option} kernels_per_step=120.", slug="no-number")
        found[name.strip()] = value
    return found


def _figures(given: Any, option: str, where: str) -> dict[str, float]:  # noqa: ANN401
    known = [kind.key for kind in kinds()]
    rows = _table(given, option, where)
    for key in rows:
        if key not in known:
            raise _unknown(f"{option} knows no figure called {key}", key, known, where)
    return {key: number(value, f"{option} {key}", where) for key, value in rows.items()}


def _findings(given: Any, where: str) -> dict[str, float]:  # noqa: ANN401
    rows = given if isinstance(given, Mapping) else {} if given is None else {ALL: given}
    for key in rows:
        if key not in (*SEVERITIES, ALL):
            raise _unknown(f"max-findings knows no {key}", key, (*SEVERITIES, ALL), where)
    return {key: number(value, "max-findings", where) for key, value in rows.items()}


def _table(given: Any, option: str, where: str) -> Mapping[str, Any]:  # noqa: ANN401
    if given is None or isinstance(given, Mapping):
        return given or {}
    fact = f"{option} must be a table of figures ({where})."
    raise UsageError(fact, f"Write {option} = {{ kernels_per_step = 120 }}.", slug="wrong-key")


def _words(given: Any, where: str) -> tuple[str, ...]:  # noqa: ANN401
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        fact = f"no must be a list of words ({where})."
        raise UsageError(fact, 'Write no = ["new-findings"].', slug="wrong-key")
    found = tuple(part.strip() for word in words for part in word.split(",") if part.strip())
    for word in found:
        if word not in NO:
            raise _unknown(f"no knows no {word}", word, NO, where)
    return found


def _one_of(value: Any, name: str, known: tuple[str, ...], where: str) -> str:  # noqa: ANN401
    if value not in known:
        fact = f"{name} is {' or '.join(known)}, not {value!r} ({where})."
        raise UsageError(fact, f"Write {name} = {known[0]!r}.", slug="wrong-key")
    return str(value)


def _flag(value: Any, name: str, where: str) -> bool:  # noqa: ANN401
    if not isinstance(value, bool):
        fact = f"{name} is true or false, not {value!r} ({where})."
        raise UsageError(fact, f"Write {name} = true.", slug="wrong-key")
    return value


def _unknown(fact: str, key: str, known: Iterable[str], where: str) -> UsageError:
    words = list(known)
    near = get_close_matches(str(key), words, 1)
    remedy = f"Did you mean {near[0]}?" if near else f"There are {', '.join(words)}."
    return UsageError(f"{fact} ({where}).", remedy, slug="no-such-key")
