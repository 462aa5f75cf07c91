"""The diagnosis on a terminal, in about 30 lines: verdict, dearest findings, what to do.

What else there is to say (``brief``) has the lines that are left.
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.diagnosis.model import Diagnosis, Verdict
from traceview.diagnosis.tree import everyone
from traceview.reports import agreement, brief, words
from traceview.reports.job.terminal import lines as job_lines
from traceview.rules.finding import Finding
from traceview.words import numbers as fmt
from traceview.words.text import one_line, wrap

_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_RED, _GREEN, _YELLOW, _BLUE = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m"
_OUTCOME_COLOURS = {"helped": _GREEN, "hurt": _RED, "failed": _RED}
_SEVERITY_COLOURS = {"error": _RED, "warning": _YELLOW, "info": _BLUE}
_NARROWEST, _WIDEST = 20, 100
_SCREEN = 30
#: What is left out first, where there is no room, stands last.
_BRIEF = (brief.unfused, brief.call_path, brief.compile_phases)
_FINDINGS = 3
_SYMPTOMS = 3
_SENTENCE_HAS_TIMES = {"helped", "neutral", "hurt"}


def render(diagnosis: Diagnosis, width: int, color: bool) -> str:
    """Lines of at most ``width`` columns (20 to 100 are used); no newline at the end.

    Escape codes are written only if ``color``; those in the diagnosis' own texts never are.
    """
    columns = max(_NARROWEST, min(width, _WIDEST))
    first = list((_job if diagnosis.job else _measured)(diagnosis, columns, color))
    last = [*_findings(diagnosis, columns, color), *_ending(diagnosis, columns, color)]
    more = [] if diagnosis.job else _more(diagnosis, columns, _SCREEN - len(first) - len(last))
    return "\n".join([*first, *more, *last])


def _measured(diagnosis: Diagnosis, width: int, color: bool) -> Iterator[str]:
    """What was measured of a run."""
    yield from _verdict(diagnosis, width, color)
    yield from _facts(diagnosis, width)


def _more(diagnosis: Diagnosis, width: int, room: int) -> list[str]:
    """Fusion, the call path and compile phases, as far as they fit into ``room`` lines."""
    lines: list[str] = []
    for clause in _BRIEF:
        said = clause(diagnosis)
        wrapped = wrap(one_line(said, 400), width, "  ") if said else []
        if len(lines) + len(wrapped) <= room:
            lines += wrapped
    return lines


def _job(diagnosis: Diagnosis, width: int, color: bool) -> Iterator[str]:
    """The story of a job, in place of a verdict."""
    if diagnosis.job:
        for bold, line in job_lines(diagnosis, diagnosis.job, width):
            yield from _painted([line], _BOLD if bold else "", color)


def _painted(lines: list[str], codes: str, color: bool) -> list[str]:
    return [f"{codes}{line}{_RESET}" for line in lines] if color and codes else lines


def _verdict(diagnosis: Diagnosis, width: int, color: bool) -> Iterator[str]:
    verdict = diagnosis.verdict
    mark, _ = words.outcome(verdict.outcome)
    tone = _OUTCOME_COLOURS.get(verdict.outcome, _YELLOW)
    sentence = one_line(f"{mark} {words.said(verdict.sentence, diagnosis)}", 800)
    yield from _painted(wrap(sentence, width, hanging="  "), _BOLD + tone, color)
    ended = words.ended(diagnosis)
    if ended:
        yield from wrap(one_line(f"How it ended: {ended}", 200), width, "  ")


def _facts(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    """What the figures rest on, where the time went; then compile seconds and memory if known.

    Times and speedup come first where the sentence above does not say them.
    """
    verdict = diagnosis.verdict
    timed = verdict.eager_ms is not None or verdict.compiled_ms is not None
    if timed and verdict.outcome not in _SENTENCE_HAS_TIMES:
        yield from wrap(_times(verdict), width, "  ")
    if timed:
        yield from wrap(one_line(words.blocks(diagnosis), 200), width, "  ")
    yield from _limit(diagnosis, width)
    parts = [f"{name.lower()} {value}" for name, value, _ in words.facts(diagnosis)]
    for said in (agreement.summary(diagnosis), " · ".join(parts)):
        if said:
            yield from wrap(one_line(said, 400), width, "  ")


def _limit(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    """What the compiled step would take at the device's limits."""
    for step in diagnosis.explanation.step_limits:
        if step.stance == "compiled" and step.sentence and step.limit_ms is not None:
            known = step.fusible_ms is not None
            said = step.sentence if known else words.first_sentence(step.sentence)[0]
            yield from wrap(one_line(said, 400), width, "  ")


def _times(verdict: Verdict) -> str:
    stances = (("eager", verdict.eager_ms), ("compiled", verdict.compiled_ms))
    times = " → ".join(f"{name} {fmt.milliseconds(ms)}" for name, ms in stances if ms is not None)
    if verdict.speedup is not None:
        times += f", {fmt.ratio(verdict.speedup)}"
    if verdict.speedup_interval is not None:
        times += f" (95 % interval {fmt.ratio_interval(verdict.speedup_interval)})"
    return times


def _findings(diagnosis: Diagnosis, width: int, color: bool) -> Iterator[str]:
    yield ""
    if not diagnosis.findings:
        yield from wrap(words.no_findings(diagnosis), width)
    for finding in diagnosis.findings[:_FINDINGS]:
        yield from _finding(finding, diagnosis, width, color)
    if len(diagnosis.findings) > _FINDINGS:
        rest = len(diagnosis.findings) - _FINDINGS
        yield from wrap(f"{fmt.plural(rest, 'more finding')} in the report.", width)


def _finding(finding: Finding, diagnosis: Diagnosis, width: int, color: bool) -> Iterator[str]:
    """What, where and the cost; what follows from it; then what to do."""
    mark = words.SEVERITIES[finding.severity]
    title = one_line(f"{mark} {finding.code} {finding.title}", 200)
    tone = _BOLD + _SEVERITY_COLOURS[finding.severity]
    facts = (words.spot(finding, diagnosis), words.whole_cost(finding))
    known = one_line(" · ".join(fact for fact in facts if fact), 200)
    yield from _painted(wrap(title, width, hanging="  "), tone, color)
    if known:
        yield from _painted(wrap(known, width, "  "), _DIM, color)
    for symptom in list(everyone(finding.symptoms))[:_SYMPTOMS]:
        said = f"└ {symptom.code} {symptom.title}"
        yield from _painted(wrap(one_line(said, 160), width, "  ", "    "), _DIM, color)
    yield from wrap(one_line(f"→ {finding.what_to_do}", 240), width, "  ", "    ")


def _ending(diagnosis: Diagnosis, width: int, color: bool) -> Iterator[str]:
    said = []
    if diagnosis.not_checked:
        verb = "was" if len(diagnosis.not_checked) == 1 else "were"
        said.append(f"{fmt.plural(len(diagnosis.not_checked), 'rule')} {verb} not checked")
    if diagnosis.reading.unreadable:
        said.append(f"{fmt.plural(diagnosis.reading.unreadable, 'record')} could not be read")
    if said:
        sentence = f"{'; '.join(said)}: the report says which and why."
        yield from _painted(wrap(sentence, width), _DIM, color)
    for note in diagnosis.rules.notes:
        yield from _painted(wrap(one_line(note, 300), width, hanging="  "), _DIM, color)
