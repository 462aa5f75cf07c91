"""The catalogue: every rule as data, and running them over the tables of one run."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType

from traceview.rules.finding import Finding, Severity
from traceview.rules.needs import in_words
from traceview.tables import Tables

SECTIONS = ("What it finds", "Why it costs", "Evidence", "What to do", "References")
#: A section that only rules with settings have, before the references: ``- `name`: what it is``.
SETTINGS = "Settings"

#: A module of a rule is named like it: graph breaks, capture, recompiles, guards, Inductor, gain,
#: memory, cudagraphs, accuracy, compile time, serving, distributed, the measurement.
_MODULE = re.compile(r"(?:gb|cap|rc|gd|ind|ap|mem|cg|acc|ct|sv|dd|bm)_\w+")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_SEVERITY = re.compile(r"\"(error|warning|info)\"")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: ``sections`` maps the headings of its docstring, in order, to their text.

    ``follows``: rules whose findings are its cause where both are about the same function.
    ``gpu_only``: it is about kernels or launches on a GPU, which a run on a CPU can neither show
    nor deny.
    ``settings``: the keyword-only parameters of ``check`` with their defaults: its thresholds.
    """

    name: str
    code: str
    needs: frozenset[str]
    sections: Mapping[str, str]
    check: Callable[..., Iterator[Finding]]
    follows: frozenset[str] = frozenset()
    gpu_only: bool = False
    settings: Mapping[str, float] = field(default_factory=dict)

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
    modules = (
        found.name for found in pkgutil.iter_modules(import_module("traceview.rules").__path__)
    )
    rules = (_rule(name.replace("_", "-")) for name in modules if _MODULE.fullmatch(name))
    return tuple(sorted(rules, key=lambda rule: rule.code))


def run_rules(
    tables: Tables, rules: Iterable[Rule] | None = None
) -> tuple[tuple[Finding, ...], tuple[Unchecked, ...]]:
    """(findings, rules that could not be checked); both in the order of the catalogue."""
    findings: list[Finding] = []
    unchecked: list[Unchecked] = []
    on_cpu = bool(tables["runs"].height) and set(tables["runs"]["device_name"]) == {"cpu"}
    for rule in catalogue() if rules is None else rules:
        if on_cpu and rule.gpu_only:
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
    settings = {
        name: parameter.default
        for name, parameter in inspect.signature(module.check).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    return Rule(
        name,
        module.CODE,
        module.NEEDS,
        sections,
        module.check,
        follows=getattr(module, "FOLLOWS", frozenset()),
        gpu_only=getattr(module, "GPU_ONLY", False),
        settings=settings,
    )
