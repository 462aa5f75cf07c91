"""The catalogue: every rule as data, and running them over the tables of one run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

from traceview.rules.finding import Finding, Severity
from traceview.rules.needs import in_words
from traceview.tables import Tables

#: In order of the codes: capture, recompiles, Inductor, launches, compile time, measurement.
NAMES = (
    "gb-item", "gb-data-dependent", "gb-side-effect-io", "gb-frame-skipped", "gb-fragmented",
    "cap-nothing-compiled", "cap-debug-backend", "cap-suppressed-failure",
    "rc-dynamic-false", "rc-limit-hit", "rc-module-int-attr", "rc-python-constant",
    "rc-auto-dynamic",
    "ind-tf32-off", "ap-gemm-bound", "mem-peak-up",
    "ap-call-overhead", "ap-launch-bound", "cg-skip-mutation",
    "bm-no-break-even", "bm-cold-in-timing",
)  # fmt: skip
#: Rules about kernels and launches on a GPU: a run on a CPU can neither show nor deny them.
GPU_ONLY = frozenset({"ind-tf32-off", "ap-launch-bound", "cg-skip-mutation"})
SECTIONS = ("What it finds", "Why it costs", "Evidence", "What to do", "References")

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_SEVERITY = re.compile(r"\"(error|warning|info)\"")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: ``sections`` maps the headings of its docstring, in order, to their text."""

    name: str
    code: str
    needs: frozenset[str]
    sections: Mapping[str, str]
    check: Callable[[Tables], Iterator[Finding]]

    @property
    def summary(self) -> str:
        """The first sentence of what it finds, on one line."""
        text = " ".join(self.sections[SECTIONS[0]].split())
        return re.split(r"(?<=\.) (?=[A-Z`])", text, maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A rule that had nothing to read: what it needs, in words, and the command that records it."""

    rule: str
    code: str
    needs: str
    command: str | None


@cache
def catalogue() -> tuple[Rule, ...]:
    """Every rule, in order of its code."""
    return tuple(_rule(name) for name in NAMES)


def run_rules(
    tables: Tables, rules: Iterable[Rule] | None = None
) -> tuple[tuple[Finding, ...], tuple[Unchecked, ...]]:
    """(findings, rules that could not be checked); both in the order of the catalogue."""
    findings: list[Finding] = []
    unchecked: list[Unchecked] = []
    on_cpu = bool(tables["runs"].height) and set(tables["runs"]["device_name"]) == {"cpu"}
    for rule in catalogue() if rules is None else rules:
        if on_cpu and rule.name in GPU_ONLY:
            unchecked.append(Unchecked(rule.name, rule.code, "a GPU: this run was on a CPU", None))
            continue
        missing = sorted(name for name in rule.needs if not tables.has(name))
        if missing:
            words, command = in_words(missing, recorded=tables.has("runs"))
            unchecked.append(Unchecked(rule.name, rule.code, words, command))
        else:
            findings.extend(rule.check(tables))
    return tuple(findings), tuple(unchecked)


def module_of(name: str) -> ModuleType:
    """The module of a rule: ``gb-item`` is ``traceview.rules.gb_item``."""
    return import_module(f"traceview.rules.{name.replace('-', '_')}")


def severities(rule: Rule) -> tuple[Severity, ...]:
    """The severities that the rule's own source names, gravest first."""
    source = inspect.getsource(module_of(rule.name))
    named = set(_SEVERITY.findall(source))
    if re.search(r"_(costs|breaks)\.severity\(", source):
        named |= {"warning", "info"}
    order: tuple[Severity, ...] = ("error", "warning", "info")
    return tuple(severity for severity in order if severity in named)


def _rule(name: str) -> Rule:
    module = module_of(name)
    parts = _HEADING.split(inspect.cleandoc(module.__doc__ or ""))
    sections = dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))
    return Rule(name, module.CODE, module.NEEDS, sections, module.check)
