"""The catalogue: every rule as data, and running them over the tables of one run."""

from __future__ import annotations

import inspect
import math
import pkgutil
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from types import ModuleType

import msgspec
from msgspec.structs import replace

from traceview.errors import spared
from traceview.rules.finding import SEVERITIES, Finding, Severity
from traceview.rules.needs import unmet
from traceview.tables import Tables

SECTIONS = ("What it finds", "Why it costs", "Evidence", "What to do", "References")
#: A section that only rules with settings have, before the references: ``- `name`: what it is``.
SETTINGS = "Settings"

#: A rule's name, and its module's, begin with one of these: graph breaks, capture, recompiles,
#: guards, Inductor, gain, memory, cudagraphs, accuracy, compile time, serving, distributed, the
#: measurement.
FAMILIES = "gb|cap|rc|gd|ind|ap|mem|cg|acc|ct|sv|dd|bm"
_MODULE = re.compile(rf"(?:{FAMILIES})_\w+")
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)

#: Where the rules of this package come from; another origin is a package's name and version.
OWN = "traceview"

#: Rules whose predictions were off when their remedies were tried → their score, from
#: docs/measurements.md, "Trials": what `benchmarks/bench_try.py --scores` has as off by more than
#: 25 % in the median. A figure of theirs for a step is no longer called measured: what is measured
#: is what something takes, and that a remedy saves it is derived.
OFF: dict[str, str] = {
    "gb-data-dependent": "median error 87 % of 5 trials",
    "gb-item": "median error 80 % of 4 trials",
    "ind-recomputed": "median error 33 % of 5 trials",
    "rc-module-int-attr": "median error 439 % of 3 trials",
}

Setting = bool | int | float


class Rule(msgspec.Struct, frozen=True):
    """One rule: ``sections`` maps the headings of its docstring, in order, to their text.

    ``severities``: those that its findings may have, gravest first.
    ``follows``: rules whose findings are its cause where both are about the same function.
    ``explains``: effects of the waterfall, or categories of the accounting, whose time its findings
    account for.
    ``is_cause``: other findings may follow from its own; else families in ``follows`` leave it out.
    ``gpu_only``: it is about kernels or launches on a GPU, which a run on a CPU can neither show
    nor deny.
    ``settings``: the keyword-only parameters of ``check`` with the values in force, which are the
    defaults until ``traceview.rules.choice`` changes them.
    """

    name: str
    code: str
    needs: frozenset[str]
    sections: Mapping[str, str]
    check: Callable[..., Iterator[Finding]]
    module: str
    severities: tuple[Severity, ...] = SEVERITIES
    follows: frozenset[str] = frozenset()
    explains: frozenset[str] = frozenset()
    is_cause: bool = True
    gpu_only: bool = False
    settings: Mapping[str, Setting] = {}
    origin: str = OWN

    @property
    def summary(self) -> str:
        """The first sentence of what it finds, on one line."""
        text = " ".join(self.sections[SECTIONS[0]].split())
        return re.split(r"(?<=\.) (?=[A-Z`])", text, maxsplit=1)[0]


class Unchecked(msgspec.Struct, frozen=True):
    """A rule that had nothing to read: what it needs, in words, and the command that records it."""

    rule: str
    code: str
    needs: str
    command: str | None


@cache
def catalogue() -> tuple[Rule, ...]:
    """Every rule of traceview's own, in order of its code."""
    modules = (
        found.name for found in pkgutil.iter_modules(import_module("traceview.rules").__path__)
    )
    rules = [
        rule_of(import_module(f"traceview.rules.{name}"), name.replace("_", "-"))
        for name in modules
        if _MODULE.fullmatch(name)
    ]
    return tuple(sorted((following(rule, rules) for rule in rules), key=lambda rule: rule.code))


def following(rule: Rule, rules: Collection[Rule]) -> Rule:
    """``rule`` with a family that it follows (``gb-*``) spelled out: the names of its rules.

    Left out are those of the family that are no cause of anything (``IS_CAUSE = False``), that sum
    up the family themselves, or that follow ``rule``.
    """
    names: set[str] = set()
    for word in rule.follows:
        if not word.endswith("-*"):
            names.add(word)
            continue
        names |= {
            other.name
            for other in rules
            if other.name.startswith(word[:-1])
            and other.is_cause
            and other.follows.isdisjoint({word, rule.name})
        }
    return replace(rule, follows=frozenset(names - {rule.name}))


def rule_of(module: ModuleType, name: str, origin: str = OWN) -> Rule:
    """The rule that ``module`` is."""
    parts = _HEADING.split(inspect.cleandoc(module.__doc__ or ""))
    sections = dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))
    settings: dict[str, Setting] = {}
    for parameter in inspect.signature(module.check).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            default = settings[parameter.name] = parameter.default
            # A whole number that stands for a float is one, so that 0.5 may replace it.
            if parameter.annotation in (float, "float") and type(default) is int:
                settings[parameter.name] = float(default)
    return Rule(
        name,
        module.CODE,
        module.NEEDS,
        sections,
        module.check,
        module.__name__,
        severities=tuple(getattr(module, "SEVERITIES", SEVERITIES)),
        follows=getattr(module, "FOLLOWS", frozenset()),
        explains=getattr(module, "EXPLAINS", frozenset()),
        is_cause=getattr(module, "IS_CAUSE", True),
        gpu_only=getattr(module, "GPU_ONLY", False),
        settings=settings,
        origin=origin,
    )


def run_rules(
    tables: Tables, rules: Iterable[Rule] | None = None
) -> tuple[tuple[Finding, ...], tuple[Unchecked, ...]]:
    """(findings, rules that could not be checked); both in the order of ``rules``.

    Without ``rules``, traceview's own are run. A rule that fails is one that could not be checked,
    and costs no other its findings; a failure of our own is a defect, which standard error says.
    """
    findings: list[Finding] = []
    unchecked: list[Unchecked] = []
    for rule in catalogue() if rules is None else rules:
        lacking = unmet(tables, rule.needs, gpu_only=rule.gpu_only)
        if lacking is None and rule.origin == OWN:
            failed: list[str] = []
            with spared(failed.append):
                findings.extend(map(as_scored, tuple(rule.check(tables, **rule.settings))))
            if failed:
                lacking = (f"a repair in {OWN}: {failed[0]}", None)
                sys.stderr.write(f"traceview: rule {rule.code} has a defect: {failed[0]}\n")
        elif lacking is None:
            try:
                with redirect_stdout(sys.stderr):  # ours may be a JSON document
                    findings.extend(_of_another_package(rule, tables))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - not our code
                lacking = (f"a repair in {rule.origin}: {in_one_line(error)}", None)
        if lacking is not None:
            unchecked.append(Unchecked(rule.name, rule.code, *lacking))
    return tuple(findings), tuple(unchecked)


def as_scored(finding: Finding) -> Finding:
    """``finding``, with a figure for a step called what its rule's score allows."""
    if finding.rule in OFF and finding.confidence == "measured" and finding.cost.ms_per_step:
        return replace(finding, confidence="derived")
    return finding


def in_one_line(error: BaseException) -> str:
    """``KeyError: 'x'``, short enough for a sentence."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said[:200]}" if said else type(error).__name__


def _of_another_package(rule: Rule, tables: Tables) -> list[Finding]:
    """Its findings, each of them checked: reports rely on what a Finding says that it is."""
    found = []
    for item in rule.check(tables, **rule.settings):
        finding = msgspec.convert(msgspec.to_builtins(item), Finding)
        if (finding.rule, finding.code) != (rule.name, rule.code):
            said = f"{finding.rule} ({finding.code})"
            raise ValueError(f"it gave a finding of {said}, not of {rule.name} ({rule.code})")
        if finding.severity not in rule.severities:
            raise ValueError(f"SEVERITIES does not name {finding.severity!r}, which it gave")
        if not all(map(math.isfinite, (finding.cost.ms_per_step or 0, finding.cost.seconds or 0))):
            raise ValueError("a cost is not finite")
        found.append(finding)
    return found
