"""Where the milliseconds went: the pictures as tables, cut to what a ticket has room for."""

from __future__ import annotations

from collections.abc import Iterable

from traceview.diagnosis.explanation import Explanation
from traceview.diagnosis.model import Diagnosis
from traceview.reports import format as fmt
from traceview.reports import names, phrases, words
from traceview.reports.markdown.sections import ROWS, details, more
from traceview.reports.markdown.text import code, escape, prose, table
from traceview.reports.view import digits

_FEW = 12


def explained(d: Diagnosis) -> Iterable[str]:
    """The effects openly, the rest folded; nothing where nothing is known."""
    yield _waterfall(d)
    yield details("From eager kernels to compiled ones", _groups(d))
    yield details("Beside the device's limits", _limits(d))
    yield details("Fusion, in words", _fusion(d.explanation))
    yield details("Guards and the call path", _calls(d.explanation))
    yield details("The first call, autotuning", _compiling(d.explanation))


def _waterfall(d: Diagnosis) -> str:
    effects, decimals = d.explanation.waterfall, digits(d)
    if not effects:
        return ""
    rows = [
        (escape(names.effect(e.effect, e.ms)), fmt.cell(e.eager_ms, decimals),
         fmt.cell(e.compiled_ms, decimals), fmt.difference(0.0, e.ms, decimals))
        for e in effects[:ROWS]
    ]  # fmt: skip
    ends = (d.verdict.eager_ms, d.verdict.compiled_ms)
    whole = (fmt.cell(ends[0], decimals), fmt.cell(ends[1], decimals),
             fmt.difference(*ends, decimals))  # fmt: skip
    heads = ("From eager to compiled", "Eager, ms per step", "Compiled, ms per step", "Difference")
    made = table(heads, [*rows, ("**The step**", *whole)], 3)
    clock = escape(words.clock(d.verdict.clock))
    return f"\n### Where the time went\n\n{made}\nMedians, {clock}; − is time saved.\n"


def _groups(d: Diagnosis) -> str:
    found = d.explanation.matching.groups
    if not found:
        return ""
    rows = [
        (escape(phrases.computes(g)),
         code(words.user_lines(g.lines, d)) or "–", escape(phrases.group(g)),
         escape(phrases.how(g.how)) if g.how else "–")
        for g in found[:_FEW]
    ]  # fmt: skip
    heads = ("Operators", "Source lines", "Eager → compiled, per step as profiled", "Joined by")
    made = table(heads, rows) + more(len(found), "groups", _FEW)
    return f"{made}\nAs profiled, {escape(words.clock(found[0].clock))}.\n"


def _limits(d: Diagnosis) -> str:
    x = d.explanation
    said = [
        f"{escape(step.stance).capitalize()}: {prose(step.sentence, 400)}\n"
        for step in x.step_limits
        if step.sentence
    ]
    ceilings = "; ".join(escape(phrases.ceiling(c)) for c in x.ceilings[:ROWS])
    measured = f"Ceilings measured in this run: {ceilings}.\n" if ceilings else ""
    return "\n".join(part for part in (*said, _kernels(d), measured) if part)


def _kernels(d: Diagnosis) -> str:
    found, decimals = d.explanation.limits, digits(d)
    if not found:
        return ""
    rows = [
        (code(names.kernel(k.name)), escape(k.stance), escape(phrases.bound(k.bound)),
         fmt.cell(k.ms, decimals), phrases.bytes_of(k), fmt.figure(k.gb_s), fmt.figure(k.tflop_s),
         fmt.percent(k.of_ceiling) if fmt.given(k.of_ceiling) else "–")
        for k in found[:_FEW]
    ]  # fmt: skip
    heads = ("Kernel", "Stance", "Bound by", "ms per step", "Bytes, each", "GB/s", "TFLOP/s",
             "Of the ceiling")  # fmt: skip
    made = table(heads, rows, 5) + more(len(found), "kernels", _FEW)
    return f"{made}\nAs profiled, {escape(words.clock(found[0].clock))}.\n"


def _fusion(x: Explanation) -> str:
    """What was left apart first: it is what can still be done."""
    fused, apart = phrases.by_outcome(x.fusion)
    shown = [*apart[:_FEW], *fused[:_FEW]]
    lines = [
        f"- **{escape(phrases.note(n.kind))}**: {prose(n.text, 400)}"
        + (f" ({fmt.size(n.bytes_saved)} per call)" if n.bytes_saved is not None else "")
        + (f"; setting {code(n.setting)}" if n.setting else "")
        for n in shown
    ]
    return "\n".join(lines) + "\n" + more(len(x.fusion), "notes", len(shown)) if lines else ""


def _calls(x: Explanation) -> str:
    rows = [
        (escape(phrases.part(p.part)), fmt.cell(p.us_per_call, 1), fmt.cell(p.ms, 4),
         fmt.count(p.guards) if p.guards is not None else "–")
        for p in x.call_path[:_FEW]
    ]  # fmt: skip
    return (
        table(("Part, host clock", "µs per call", "ms per step", "Guards"), rows, 3) if rows else ""
    )


def _compiling(x: Explanation) -> str:
    first = [(escape(words.part(p.part)), fmt.cell(p.ms, 1)) for p in x.first_calls[:ROWS]]
    tuned = [
        (escape(a.op), code(a.winner), fmt.cell(a.winner_ms, 4),
         code(a.runner_up) if a.runner_up else "–", fmt.cell(a.runner_up_ms, 4))
        for a in x.autotuning[:_FEW]
    ]  # fmt: skip
    tables = (
        table(("Part of the first call, host clock", "ms"), first, 1) if first else "",
        table(("Operator", "Winner", "ms", "Runner-up", "ms"), tuned) if tuned else "",
    )
    return "\n".join(part for part in tables if part)
