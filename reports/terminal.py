"""The diagnosis on a terminal, in about 30 lines: verdict, top findings, what to do.

The lines that are left say what else is worth one: fusion, the call path, compile phases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import msgspec

from traceview.diagnosis.callables import MOST_NAMED
from traceview.diagnosis.explanation import CallPart
from traceview.diagnosis.job.model import Job
from traceview.diagnosis.model import Diagnosis
from traceview.diagnosis.tree import everyone
from traceview.reports import phrases, words
from traceview.reports.job import words as jobs
from traceview.reports.screen import BLUE, BOLD, DIM, GREEN, RED, RESET, YELLOW, columns
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import sentences, wrap

_OUTCOME_COLOURS = {"helped": GREEN, "hurt": RED, "failed": RED}
_SEVERITY_COLOURS = {"error": RED, "warning": YELLOW, "info": BLUE}
_SCREEN = 30
_FINDINGS = 3
_SYMPTOMS = 3
#: Less than this part of a compiled step, or of the compile, is not worth a line.
_WORTH = 0.05
_CALLABLES = 5
_JOB_FRAMES, _JOB_CAUSES, _JOB_RANKS, _JOB_TROUBLES = 3, 2, 8, 6
_SENTENCE_HAS_TIMES = {"helped", "neutral", "hurt"}


class _Screen(msgspec.Struct, frozen=True):
    width: int
    color: bool

    def say(
        self, text: str, most: int, indent: str = "", hanging: str | None = None, tone: str = ""
    ) -> list[str]:
        """About ``most`` characters of ``text``, on lines of the screen's width."""
        lines = wrap(sentences(text, most), self.width, indent, hanging)
        return [f"{tone}{line}{RESET}" for line in lines] if self.color and tone else lines


def render(diagnosis: Diagnosis, width: int, color: bool) -> str:
    """Lines of at most ``width`` columns (20 to 100 are used); no newline at the end.

    Escape codes are written only if ``color``; those in the diagnosis' own texts never are.
    """
    screen = _Screen(columns(width), color)
    last = list(_findings(diagnosis, screen))
    if diagnosis.job is not None:
        return "\n".join([*_job(diagnosis, diagnosis.job, screen), *last])
    first = list(_verdict(diagnosis, screen))
    room = _SCREEN - len(first) - len(last)
    more: list[str] = []
    # Seconds of the cold compile by phase, in the order in which they follow each other.
    phases = [(name, s) for name, s in diagnosis.compile_time.phases.items() if fmt.given(s)]
    least = _WORTH * sum(s for _, s in phases)
    spent = [f"{names.phase(name)} {fmt.seconds(s)}" for name, s in phases if s > 0 and s >= least]
    compiling = f"compile phases: {', '.join(spent)}" if spent else None
    # What is left out first, where there is no room, stands last.
    for clause in (_unfused(diagnosis), _call_path(diagnosis), compiling):
        said = screen.say(clause, 400, "  ") if clause else []
        if len(more) + len(said) <= room:
            more += said
    return "\n".join([*first, *more, *last])


def _job(diagnosis: Diagnosis, job: Job, screen: _Screen) -> Iterator[str]:
    """A post-mortem: its sentence, the figures, the slowest functions, what went wrong."""
    yield from screen.say(words.said(job.sentence, diagnosis), 600, hanging="  ", tone=BOLD)
    facts = " · ".join(f"{name.lower()} {value}" for name, value, _ in jobs.facts(job))
    yield from screen.say(facts, 300, "  ", "    ")
    by_rank = jobs.seconds_by_rank(job, _JOB_RANKS)
    if by_rank:
        yield from screen.say(f"by rank: {by_rank}", 300, "  ", "    ")
    for row in job.frames[:_JOB_FRAMES]:
        title = f"{jobs.frame(row, diagnosis)}: {fmt.seconds(row.rank_seconds)}"
        yield from ("", *screen.say(title, 200, hanging="  ", tone=BOLD))
        for cause in row.causes[:_JOB_CAUSES]:
            yield from screen.say(f"→ {jobs.cause(cause)}", 300, "  ", "    ")
    troubles = list(jobs.troubles(job, diagnosis))
    if troubles:
        yield ""
    for kind, text in troubles[:_JOB_TROUBLES]:
        yield from screen.say(f"{kind}: {text}", 300, hanging="  ")


def _verdict(diagnosis: Diagnosis, screen: _Screen) -> Iterator[str]:
    """The sentence, what its figures rest on, the limit of the device; then compile seconds, memory
    and outputs.

    Times and speedup come first where the sentence does not say them.
    """
    verdict = diagnosis.verdict
    mark, _ = words.outcome(verdict.outcome)
    tone = BOLD + _OUTCOME_COLOURS.get(verdict.outcome, YELLOW)
    sentence = words.said(verdict.sentence, diagnosis)
    yield from screen.say(f"{mark} {sentence}", 800, hanging="  ", tone=tone)
    if ended := words.ended(diagnosis):
        yield from screen.say(f"How it ended: {ended}", 200, "  ")
    timed = [region for region in diagnosis.regions if region.speedup is not None]
    if len(timed) > MOST_NAMED + 1:  # the sentence has fewer
        for region in timed[:_CALLABLES]:
            mark = "→" if region.headline else "·"
            yield from screen.say(f"{mark} {region.sentence}", 300, "  ", "    ")
    stances = (("eager", verdict.eager_ms), ("compiled", verdict.compiled_ms))
    known = [f"{name} {fmt.milliseconds(ms)}" for name, ms in stances if ms is not None]
    if known and verdict.outcome not in _SENTENCE_HAS_TIMES:
        times = " → ".join(known)
        if verdict.speedup is not None:
            times += f", {fmt.ratio(verdict.speedup)}"
        if verdict.speedup_interval is not None:
            times += f" (95 % interval {fmt.ratio_interval(verdict.speedup_interval)})"
        yield from screen.say(times, 200, "  ")
    if known:
        yield from screen.say(words.blocks(diagnosis), 200, "  ")
    limit = phrases.compiled_limit(diagnosis)
    if limit and limit.sentence and limit.limit_ms is not None:
        short = limit.headline if limit.fusible_ms is None else None
        yield from screen.say(short or limit.sentence, 400, "  ")
    parts = [f"{name.lower()} {value}" for name, value, _ in words.facts(diagnosis)]
    for line in (phrases.outputs_summary(diagnosis), " · ".join(parts)):
        if line:
            yield from screen.say(line, 400, "  ")


def _unfused(diagnosis: Diagnosis) -> str | None:
    """What is not fused and moves most bytes: why, and the setting that would try it.

    None where the step limit says that fusing all that is left would save next to nothing.
    """
    apart = phrases.by_outcome(diagnosis.explanation.fusion)[1]
    known = [note for note in apart if fmt.given(note.bytes_saved) and note.bytes_saved > 0]
    limit = phrases.compiled_limit(diagnosis)
    fusible = limit.fusible_ms if limit else None
    if not known or (fusible is not None and not _worth_saying(fusible, diagnosis)):
        return None
    note = max(known, key=lambda note: note.bytes_saved or 0)
    facts = (
        f"{fmt.count(note.times)} times" if note.times > 1 else "",
        phrases.saved(note),
        f"setting {note.setting}" if note.setting else "",
    )
    kind = names.word(names.FUSION, note.kind)
    return f"{kind}: {note.text} ({', '.join(filter(None, facts))})"


def _call_path(diagnosis: Diagnosis) -> str | None:
    """The most expensive part of a compiled call, and the look-up if it is another, with guards.

    None where the device hides it: it hardly ever waits for the host's launches. Nor where a part
    takes longer than the step: then others were profiled than those that were timed.
    """
    parts = sorted(diagnosis.explanation.call_path, key=_ms, reverse=True)
    limit = phrases.compiled_limit(diagnosis)
    waited = limit.launch_idle_ms if limit and diagnosis.verdict.clock == "device" else None
    if not parts or not _worth_saying(_ms(parts[0]), diagnosis):
        return None
    if _ms(parts[0]) > (diagnosis.verdict.compiled_ms or math.inf):
        return None
    if waited is not None and not _worth_saying(waited, diagnosis):
        return None
    lookups = [part for part in parts[1:] if part.guards is not None and parts[0].guards is None]
    shown = [parts[0], *lookups[:1]]
    less = all(fmt.given(part.us_less_profiler) for part in shown)
    said = []
    for part in shown:
        name = names.word(names.CALL_PARTS, part.part)
        us = part.us_less_profiler if less else part.us_per_call
        guards = f" ({fmt.plural(part.guards, 'guard')})" if part.guards is not None else ""
        said.append(f"{name} {fmt.rate(us, 'us')}{guards}")
    clock = "less the profiler" if less else "as profiled"
    return f"call path per call, host clock, {clock}: {', '.join(said)}"


def _ms(part: CallPart) -> float:
    """Milliseconds per step, without what the profiler adds where that is known."""
    if part.us_less_profiler is not None and part.calls is not None:
        return part.us_less_profiler * part.calls / 1000
    return part.ms if fmt.given(part.ms) else 0.0


def _worth_saying(ms: float, diagnosis: Diagnosis) -> bool:
    step = diagnosis.verdict.compiled_ms
    return step is None or ms >= _WORTH * step


def _findings(diagnosis: Diagnosis, screen: _Screen) -> Iterator[str]:
    """What, where and the cost; what follows from it; then what to do. Below, what is missing."""
    yield ""
    if not diagnosis.findings:
        yield from screen.say(words.no_findings(diagnosis), 200)
    for finding in diagnosis.findings[:_FINDINGS]:
        title = f"{words.SEVERITIES[finding.severity]} {finding.code} {finding.title}"
        tone = BOLD + _SEVERITY_COLOURS[finding.severity]
        yield from screen.say(title, 200, hanging="  ", tone=tone)
        facts = (words.spot(finding, diagnosis), words.whole_cost(finding))
        if any(facts):
            yield from screen.say(" · ".join(filter(None, facts)), 200, "  ", tone=DIM)
        for symptom in islice(everyone(finding.symptoms), _SYMPTOMS):
            said = f"└ {symptom.code} {symptom.title}"
            yield from screen.say(said, 160, "  ", "    ", tone=DIM)
        yield from screen.say(f"→ {finding.what_to_do}", 240, "  ", "    ")
        command = (
            finding.snippet if finding.snippet and finding.snippet.language == "shell" else None
        )
        if command and "\n" not in command.text:
            yield from screen.say(f"$ {command.text}", 240, "    ", "      ")
    if len(diagnosis.findings) > _FINDINGS:
        rest = len(diagnosis.findings) - _FINDINGS
        yield from screen.say(f"{fmt.plural(rest, 'more finding')} in the report.", 200)

    unchecked, unread = len(diagnosis.not_checked), diagnosis.reading.unreadable
    verb = "was" if unchecked == 1 else "were"
    missing = [f"{fmt.plural(unchecked, 'rule')} {verb} not checked"] if unchecked else []
    missing += [f"{fmt.plural(unread, 'record')} could not be read"] if unread else []
    if missing:
        said = f"{'; '.join(missing)}: the report says which and why."
        yield from screen.say(said, 200, tone=DIM)
    for note in diagnosis.rules.notes:
        yield from screen.say(note, 300, hanging="  ", tone=DIM)
