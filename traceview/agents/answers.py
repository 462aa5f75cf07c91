"""Short answers: what of a diagnosis, a trial or a comparison a program needs to decide what next.

Each names the run folder, with which other tools give the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.tree import everyone
from traceview.rules.finding import Finding, Location
from traceview.words import names
from traceview.words.text import clean

Answer = dict[str, Any]
MOST_FINDINGS = 8
MOST_REASONS = 8
MOST_EVIDENCE = 12
#: Of a query's answer: characters of a cell, and of all cells.
MOST_IN_CELL, MOST_IN_ROWS = 2_000, 60_000
#: Of a verdict: the rest is in diagnosis.json.
_FIGURES = (
    *("outcome", "headline", "sentence", "eager_ms", "compiled_ms", "speedup"),
    *("speedup_interval", "clock", "difference_ms", "unexplained_ms"),
)
#: Figures and findings of a comparison that are the same in both runs.
_UNCHANGED = ("same", "within_noise", "not_recorded")
_OF_A_SIDE = ("name", "outcome", "sentence")
_OF_A_FIGURE = ("label", "unit", "before", "after", "change", "ratio_interval")
_OF_A_CAUSE = ("code", "rule", "title", "change", "after_severity", "what_to_do")
_OF_A_TRIAL = (
    *("name", "verdict", "why", "ratio", "interval", "outputs_agree", "measured_ms"),
    *("predicted_ms", "compile_seconds", "price", "settings", "patch", "notes"),
)


def of_diagnosis(found: Diagnosis, run: Path) -> Answer:
    """The verdict, what makes the difference, and the causes, most important first."""
    verdict = {name: getattr(found.verdict, name) for name in _FIGURES}
    reasons = [
        {"effect": each.effect, "what": each.what, "ms": each.ms, "share": each.share}
        | {"basis": each.basis, "finding": each.finding}
        for each in found.verdict.why[:MOST_REASONS]
    ]
    codes = {each.code: each for each in everyone(found.findings)}
    advice = [
        {"code": code, "title": codes[code].title} for code in found.verdict.advice if code in codes
    ]
    answer = {
        "run": str(run),
        "report": str(run / "report.html"),
        "verdict": verdict | {"why": reasons, "advice": advice},
        "findings": [
            {"number": number, **_line(each)}
            for number, each in enumerate(found.findings[:MOST_FINDINGS], 1)
        ],
        "more_findings": max(0, len(found.findings) - MOST_FINDINGS),
        "rules_not_checked": len(found.not_checked),
        "unreadable_records": found.reading.unreadable,
    }
    return answer | ({"job": found.job.sentence} if found.job is not None else {})


def of_finding(finding: Finding) -> Answer:
    """All of one: explanation, evidence, what follows from it, and what to do."""
    snippet = finding.snippet
    return _line(finding) | {
        "explanation": finding.explanation,
        "confidence": finding.confidence,
        "also_at": [_place(each) for each in finding.also_at],
        "evidence": [
            {"text": each.text, "table": each.table} for each in finding.evidence[:MOST_EVIDENCE]
        ],
        "what_to_do": finding.what_to_do,
        "change": {"language": snippet.language, "text": snippet.text} if snippet else None,
        "settings_to_try": list(finding.remedy),
        "consequences": [_line(each) for each in finding.symptoms],
    }


def of_trials(results: Mapping[str, Any], run: Path) -> Answer:
    """Verdicts with their intervals, and what to keep; ``results`` is the contract's JSON."""
    untried: Iterable[Mapping[str, Any]] = results["not_tried"]
    return {
        "run": str(run),
        "recommended": results["recommended"],
        "trials": [_of(each, _OF_A_TRIAL) for each in results["trials"]],
        "not_tried": [{"name": each["name"], "why": each["why"]} for each in untried],
        "notes": results["notes"],
    }


def of_comparison(found: Mapping[str, Any]) -> Answer:
    """What changed, most important first; ``found`` is the contract's JSON."""
    figures = [each for each in found["figures"] if each["change"] not in _UNCHANGED]
    causes = [each for each in found["causes"] if each["change"] not in _UNCHANGED]
    return {
        **{name: found[name] for name in ("outcome", "headline", "remarks", "notes")},
        **{side: _of(found[side], _OF_A_SIDE) for side in ("before", "after")},
        "figures": [_of(each, _OF_A_FIGURE) for each in figures],
        "findings": [_of(each, _OF_A_CAUSE) for each in causes[:MOST_FINDINGS]],
        "more_findings": max(0, len(causes) - MOST_FINDINGS),
        "different_environment": [each["name"] for each in found["environment"][:MOST_FINDINGS]],
    }


def of_rows(rows: Sequence[Mapping[str, Any]]) -> Answer:
    """Rows of a query, with long texts cut, up to what an answer has room for."""
    kept: list[Answer] = []
    room = MOST_IN_ROWS
    for row in rows:
        short = {
            name: clean(cell, MOST_IN_CELL) if isinstance(cell, str) else cell
            for name, cell in row.items()
        }
        room -= len(json.dumps(short))
        if room < 0 and kept:
            break
        kept.append(short)
    return {"rows": kept, "rows_left_out": len(rows) - len(kept)}


def shown(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """``value`` with nothing in its texts that acts where an answer is shown."""
    if isinstance(value, str):
        return "\r\n".join(map(clean, value.split("\r\n")))  # a patch has its file's line ends
    if isinstance(value, Mapping):
        return {shown(key): shown(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(each) for each in value]
    return value


def _of(known: Mapping[str, Any], names: Iterable[str]) -> Answer:
    return {name: known.get(name) for name in names}


def _line(finding: Finding) -> Answer:
    place, cost = finding.location, finding.whole_cost or finding.cost
    return {
        "code": finding.code,
        "rule": finding.rule,
        "severity": finding.severity,
        "title": finding.title,
        "at": _place(place) if place else None,
        "ms_per_step": cost.ms_per_step,
        "seconds_once": cost.seconds,
    }


def _place(place: Location) -> str:
    return place.file if place.line is None else names.at_line(place.file, place.line)
