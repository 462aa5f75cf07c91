"""The diagnosis as GitHub Markdown that fits a ticket: under ``MAX_BYTES``, safe to paste.

Nothing in a log can end a table cell, a fence or a ``<details>``, mention a person or load an
image.
"""

from __future__ import annotations

from collections.abc import Iterable

from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.tree import everyone
from traceview.reports import words
from traceview.reports.job import markdown as postmortem
from traceview.reports.markdown.explained import explained
from traceview.reports.markdown.sections import ROWS, around, more, sections
from traceview.reports.markdown.text import code, escape, fenced, prose, table
from traceview.rules.finding import Finding
from traceview.words import numbers as fmt

MAX_BYTES = 60_000  # GitHub refuses more than 65,536 characters
_CUT = "\n\n_The rest is left out to fit an issue tracker; `report.html` has all of it._\n"


def render(diagnosis: Diagnosis) -> str:
    """Verdict, facts, findings, then what is folded; beyond the limit whole parts are left out."""
    job = diagnosis.job
    parts = [
        *([_head(diagnosis)] if job is None else postmortem.head(diagnosis, job)),
        *_findings(diagnosis),
        *(f"\n{prose(note, 400)}\n" for note in diagnosis.rules.notes),
        *(explained(diagnosis) if job is None else postmortem.folded(diagnosis, job)),
        *(sections(diagnosis) if job is None else around(diagnosis)),
        _foot(diagnosis),
    ]
    page, room = "", MAX_BYTES - len(_CUT.encode())
    for part in parts:
        if len((page + part).encode()) > room:
            return (page + _CUT).rstrip("\n")
        page += part
    return page.rstrip("\n")


def _head(d: Diagnosis) -> str:
    verdict = d.verdict
    mark, word = words.outcome(verdict.outcome)
    times = (("Eager", verdict.eager_ms), ("Compiled", verdict.compiled_ms))
    first, rest = words.verdict(d)
    lines = [f"## {mark} {word}\n\n{f'**{prose(first)}** {prose(rest)}'.rstrip()}\n"]
    ended = words.ended(d)
    if ended:
        lines.append(f"How it ended: {escape(ended, 300)}\n")
    rows = [
        ("Target", code(words.target(d)) or fmt.MISSING),
        *((f"{name} per step", fmt.milliseconds(ms)) for name, ms in times if ms is not None),
        *([("Speedup (95 % interval)", _speedup(d))] if verdict.speedup is not None else []),
        *((", ".join(filter(None, (name, small))), value) for name, value, small in words.facts(d)),
    ]
    basis = escape(words.blocks(d), 300)
    return "\n".join(lines) + "\n" + table(("", ""), rows) + f"\n{basis[:1].upper()}{basis[1:]}.\n"


def _speedup(d: Diagnosis) -> str:
    ends = d.verdict.speedup_interval
    interval = f" ({fmt.ratio_interval(ends)})" if ends else ""
    return fmt.ratio(d.verdict.speedup) + interval


def _findings(d: Diagnosis) -> Iterable[str]:
    yield "\n### Findings\n"
    if not d.findings:
        yield f"\n{words.no_findings(d)}\n"
    for finding in d.findings[:ROWS]:
        yield _finding(finding, d)
    yield more(len(d.findings), "findings")


def _finding(f: Finding, d: Diagnosis) -> str:
    where = words.spot(f, d)
    facts = (f.severity, words.whole_cost(f), words.by_itself(f), f.confidence, _code(where))
    known = " · ".join(fact for fact in facts if fact)
    evidence = "".join(f"- {prose(row.text, 300)} ({code(row.table)})\n" for row in f.evidence[:5])
    snippet = "\n" + fenced(f.snippet.text, f.snippet.language) if f.snippet else ""
    return (
        f"\n**{escape(f.code)} {prose(f.title, 300)}**\n\n"
        f"{known}\n\n"
        f"{prose(f.explanation)}\n\n→ {prose(f.what_to_do)}\n{snippet}\n{evidence}"
        f"{_symptoms(f, d)}"
    )


def _symptoms(cause: Finding, d: Diagnosis) -> str:
    """What follows from ``cause``, a line each."""
    lines = []
    for f in list(everyone(cause.symptoms))[:ROWS]:
        facts = (f.severity, words.cost(f.cost), f.confidence, _code(words.spot(f, d)))
        known = " · ".join(fact for fact in facts if fact)
        lines.append(f"- **{escape(f.code)}** {prose(f.title, 300)} ({known})\n")
    return f"\nWhat follows from it:\n\n{''.join(lines)}" if lines else ""


def _code(where: str | None) -> str | None:
    return code(where) if where else None


def _foot(d: Diagnosis) -> str:
    return f"\n_traceview {escape(d.traceview or 'version not recorded')}_\n"
