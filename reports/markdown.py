"""The diagnosis as GitHub Markdown that fits a ticket: under ``MAX_BYTES``, safe to paste.

Nothing in a log can end a table cell, a fence or a ``<details>``, mention a person or load an
image.
"""

from __future__ import annotations

from collections.abc import Iterable

from traceview.diagnosis.explanation import Explanation
from traceview.diagnosis.model import AccountRow, Diagnosis, RecompileLink
from traceview.diagnosis.tree import everyone
from traceview.reports import phrases, words
from traceview.reports.job import markdown as postmortem
from traceview.reports.markdown_text import (
    ROWS,
    code,
    details,
    escape,
    fenced,
    more,
    prose,
    table,
    within_limit,
)
from traceview.reports.view import Account, accounts, digits, environment_groups
from traceview.rules.finding import Finding
from traceview.words import names
from traceview.words import numbers as fmt

_FEW = 12
_CUT = "\n\n_The rest is left out to fit an issue tracker; `report.html` has all of it._\n"


def render(diagnosis: Diagnosis) -> str:
    """Verdict, facts, findings, then what is folded; beyond the limit whole parts are left out."""
    job = diagnosis.job
    parts = [
        *([_head(diagnosis)] if job is None else postmortem.head(diagnosis, job)),
        *_findings(diagnosis),
        *(f"\n{prose(note, 400)}\n" for note in diagnosis.rules.notes),
        *(_explained(diagnosis) if job is None else postmortem.folded(diagnosis, job)),
        *(_sections(diagnosis) if job is None else _around(diagnosis)),
        f"\n_traceview {escape(diagnosis.traceview or 'version not recorded')}_\n",
    ]
    return within_limit(parts, _CUT)


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


def _explained(d: Diagnosis) -> Iterable[str]:
    """The effects openly, the rest folded; nothing where nothing is known."""
    yield _waterfall(d)
    yield details("From eager kernels to compiled ones", _groups(d))
    yield details("How far from the device's limits", _limits(d))
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
         escape(names.word(names.JOINS, g.how)) if g.how else "–")
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
    return "\n".join(part for part in (*said, _kernel_limits(d), measured) if part)


def _kernel_limits(d: Diagnosis) -> str:
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
        f"- **{escape(names.word(names.FUSION, n.kind))}**: {prose(n.text, 400)}"
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
        (escape(names.word(names.CALL_PARTS, p.part)), fmt.cell(p.us_per_call, 1),
         fmt.cell(p.us_less_profiler, 1),
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
    first = [
        (escape(names.word(names.PHASES, p.part)), fmt.cell(p.ms, 1)) for p in x.first_calls[:ROWS]
    ]
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


def _sections(d: Diagnosis) -> Iterable[str]:
    """Everything that is folded away, the most telling first."""
    yield details("Where the time goes", _accounting(d))
    yield _nothing(d)
    yield details("Recompiles", _recompiles(d))
    yield details("Graph breaks", _breaks(d))
    yield details("Top kernels, compiled", _kernels(d, "compiled"))
    yield details("Top kernels, eager", _kernels(d, "eager"))
    yield from _around(d)


def _around(d: Diagnosis) -> Iterable[str]:
    """Where it ran, and what was not checked."""
    yield details("Environment", _environment(d))
    yield details("Not checked", _not_checked(d))


def _nothing(d: Diagnosis) -> str:
    """What was looked for in the compiler's logs and was not there, in one line."""
    kinds = (("recompile", d.recompiles), ("graph break", d.graph_breaks))
    absent = [f"no {what}" for what, rows in kinds if not rows]
    if not absent or not d.reading.records:
        return ""
    return f"\n{' and '.join(absent).capitalize()} was recorded.\n"


def _accounting(d: Diagnosis) -> str:
    """Categories of both stances, the largest change first, as in the report."""
    decimals = digits(d)
    rows = [
        (escape(names.category(row.category)), _ms(row.eager, decimals),
         _ms(row.compiled, decimals), _change(row, decimals) if len(d.accounting) > 1 else "–")
        for row in accounts(d)[:ROWS]
    ]  # fmt: skip
    heads = ("Category", "Eager, ms per step", "Compiled, ms per step", "Difference")
    return table(heads, rows, 3) if rows else ""


def _ms(row: AccountRow | None, decimals: int) -> str:
    return fmt.fixed(row.ms, decimals) if row else "–"


def _change(row: Account, decimals: int) -> str:
    eager, compiled = (side.ms if side else 0.0 for side in (row.eager, row.compiled))
    return fmt.difference(eager, compiled, decimals)


def _recompiles(d: Diagnosis) -> str:
    rows = [
        (code(chain.name), code(link.compile_id), code(link.guard),
         _old_new(link), fmt.seconds(link.seconds) if link.seconds is not None else "–")
        for chain in d.recompiles for link in chain.links
    ]  # fmt: skip
    if not rows:
        return ""
    heads = ("Function", "Compile id", "Failed guard", "Old → new", "Time")
    hit = [chain for chain in d.recompiles if chain.limit_hit]
    said = "".join(f"\nRecompile limit hit: {code(chain.name)}.\n" for chain in hit[:ROWS])
    return table(heads, rows[:ROWS], 1) + more(len(rows), "recompiles") + said


def _old_new(link: RecompileLink) -> str:
    if link.old is None and link.new is None:
        return "–"
    return f"{code(link.old or '?')} → {code(link.new) if link.new else 'another value'}"


def _breaks(d: Diagnosis) -> str:
    rows = [
        (code(words.line(b.file, b.line, d)), _gb(b.gb_id),
         escape(b.reason), fmt.count(b.times))
        for b in d.graph_breaks
    ]  # fmt: skip
    if not rows:
        return ""
    heads = ("Place", "torch's id", "Reason", "Times")
    return table(heads, rows[:ROWS], 1) + more(len(rows), "graph breaks")


def _gb(gb_id: str | None) -> str:
    page = words.graph_break_page(gb_id)
    return f"[{gb_id}]({page})" if page else escape(gb_id or "none")


def _kernels(d: Diagnosis, stance: str) -> str:
    groups = [group for group in d.kernels if group.stance == stance]
    rows = [
        (code(names.kernel(g.name)), escape(names.category(g.category)),
         fmt.count(g.count), fmt.fixed(g.ms))
        for g in groups[:ROWS]
    ]  # fmt: skip
    heads = ("Kernel", "Category", "Calls per step", f"ms per step ({stance})")
    return table(heads, rows, 2) + more(len(groups), "kernels") if rows else ""


def _environment(d: Diagnosis) -> str:
    rows = [
        (code(name) if title else escape(name), escape(value), escape(title))
        for title, group in environment_groups(d.environment)
        for name, value in group[: 2 * ROWS]
    ]
    return table(("Name", "Value", "Kind"), rows[: 4 * ROWS]) if rows else ""


def _not_checked(d: Diagnosis) -> str:
    rows = [
        (escape(needs), code(command or "") or "–", escape(", ".join(rules), 600))
        for needs, command, rules in words.unchecked(d)
    ]
    return table(("Needs", "Command", "Rules"), rows[: 2 * ROWS]) if rows else ""
