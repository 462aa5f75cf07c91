"""Where the milliseconds went: the pictures as tables, cut to what a ticket has room for."""

from __future__ import annotations

from collections.abc import Iterable

from traceview.diagnosis.explanation import Explanation
from traceview.diagnosis.model import Diagnosis
from traceview.reports import phrases, words
from traceview.reports.markdown.sections import ROWS, details, more
from traceview.reports.markdown.text import code, escape, prose, table
from traceview.reports.view import digits
from traceview.words import names
from traceview.words import numbers as fmt

_FEW = 12


def explained(d: Diagnosis) -> Iterable[str]:
    """The effects openly, the rest folded; nothing where nothing is known."""
    yield _waterfall(d)
    yield details("From eager kernels to compiled ones", _groups(d))
    yield details("Beside the device's limits", _limits(d))
    yield details("Fusion, in words", _fusion(d.explanation))
    yield details("What the graph passes changed", _passes(d.explanation))
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
        + (f" ({phrases.saved(n)})" if n.bytes_saved is not None else "")
        + (f"; setting {code(n.setting)}" if n.setting else "")
        for n in shown
    ]
    return "\n".join(lines) + "\n" + more(len(x.fusion), "notes", len(shown)) if lines else ""


def _passes(x: Explanation) -> str:
    rows = [
        (escape(p.stage.replace("_", " ")), code(p.compile_id or "") or "–",
         fmt.cell(p.nodes_before, 0), fmt.cell(p.nodes_after, 0),
         fmt.size_cell(p.read_bytes_before), fmt.size_cell(p.read_bytes_after))
        for p in x.passes[:_FEW]
    ]  # fmt: skip
    heads = ("Pass or graph", "Compile", "Nodes before", "Nodes after",
             "Read and written before, per call", "after")  # fmt: skip
    return table(heads, rows, 4) + more(len(x.passes), "passes", _FEW) if rows else ""


def _calls(x: Explanation) -> str:
    parts = [
        (escape(phrases.part(p.part)), fmt.cell(p.us_per_call, 1), fmt.cell(p.us_less_profiler, 1),
         fmt.cell(p.ms, 4), fmt.count(p.guards) if p.guards is not None else "–",
         fmt.cell(p.ns_per_guard, 0))
        for p in x.call_path[:_FEW]
    ]  # fmt: skip
    guards = [
        (code(g.guard or g.kind or "") or "all guards of the compile",
         code(g.compile_id or "") or "–", fmt.count(g.guards) if g.guards is not None else "–",
         fmt.cell(g.us, 2))
        for g in x.guards[:_FEW]
    ]  # fmt: skip
    heads = ("Part, host clock, as profiled", "µs per call", "less the profiler", "ms per step",
             "Guards", "ns per guard")  # fmt: skip
    tables = (
        table(heads, parts, 5) if parts else "",
        table(("Guard", "Compile", "Guards", "µs per evaluation"), guards, 2) if guards else "",
    )
    return "\n".join(part for part in tables if part)


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
