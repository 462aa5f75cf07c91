"""What a terminal has room for of fusion, the call path and compile time: a clause each.

None where it is not recorded, or too little to be worth a line.
"""

from __future__ import annotations

import math

from traceview.diagnosis.explanation import CallPart, FusionNote, StepLimit
from traceview.diagnosis.model import Diagnosis
from traceview.reports import phrases, words
from traceview.words import numbers as fmt

#: Less than this part of a compiled step, or of the compile, is not worth a line.
_WORTH = 0.05


def unfused(diagnosis: Diagnosis) -> str | None:
    """What was left apart at the highest price: why, the bytes and the setting that would try it.

    Nothing where the step limit says that fusing all that is left would save next to nothing.
    """
    apart = phrases.by_outcome(diagnosis.explanation.fusion)[1]
    known = [note for note in apart if fmt.given(note.bytes_saved) and note.bytes_saved > 0]
    limit = _limit(diagnosis)
    fusible = limit.fusible_ms if limit else None
    if not known or (fusible is not None and not _worth_saying(fusible, diagnosis)):
        return None
    return _note(max(known, key=lambda note: note.bytes_saved or 0))


def _note(note: FusionNote) -> str:
    facts = [phrases.saved(note)]
    if note.times > 1:
        facts.insert(0, f"{fmt.count(note.times)} times")
    if note.setting:
        facts.append(f"setting {note.setting}")
    return f"{phrases.note(note.kind)}: {note.text} ({', '.join(facts)})"


def call_path(diagnosis: Diagnosis) -> str | None:
    """The dearest part of a compiled call, and the look-up if it is another, with its guards.

    Nothing where the device hides it: it hardly ever waits for the host's launches. Nor where a
    part takes longer than the step: then others were profiled than those that were timed.
    """
    parts = sorted(diagnosis.explanation.call_path, key=_ms, reverse=True)
    limit = _limit(diagnosis)
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
    said = ", ".join(_part(part, less_profiler=less) for part in shown)
    clock = "less the profiler" if less else "as profiled"
    return f"call path per call, host clock, {clock}: {said}"


def _part(part: CallPart, *, less_profiler: bool) -> str:
    name = phrases.part(part.part).partition(":")[0]
    us = part.us_less_profiler if less_profiler else part.us_per_call
    guards = f" ({fmt.plural(part.guards, 'guard')})" if part.guards is not None else ""
    return f"{name} {fmt.rate(us, 'us')}{guards}"


def _ms(part: CallPart) -> float:
    """Milliseconds per step, without what the profiler adds where that is known."""
    if part.us_less_profiler is not None and part.calls is not None:
        return part.us_less_profiler * part.calls / 1000
    return part.ms if fmt.given(part.ms) else 0.0


def _limit(diagnosis: Diagnosis) -> StepLimit | None:
    limits = diagnosis.explanation.step_limits
    return next((limit for limit in limits if limit.stance == "compiled"), None)


def _worth_saying(ms: float, diagnosis: Diagnosis) -> bool:
    step = diagnosis.verdict.compiled_ms
    return step is None or ms >= _WORTH * step


def compile_phases(diagnosis: Diagnosis) -> str | None:
    """Seconds of the cold compile by phase, in the order in which they follow each other."""
    phases = [(name, s) for name, s in diagnosis.compile_time.phases.items() if fmt.given(s)]
    least = _WORTH * sum(s for _, s in phases)
    told = [f"{words.phase(name)} {fmt.seconds(s)}" for name, s in phases if s > 0 and s >= least]
    return f"compile phases: {', '.join(told)}" if told else None
