"""The sections of a page below the findings: title, count, and the line that a folded one shows."""

from __future__ import annotations

from collections.abc import Iterable, Sized

import msgspec

from traceview.diagnosis.job.model import Job
from traceview.diagnosis.model import Diagnosis
from traceview.reports import phrases, words
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import one_line


class Section(msgspec.Struct, frozen=True):
    """``title`` stands in the contents, ``heading`` above the section where it says more.

    ``line`` is what a reader sees while the section is folded: what is inside, with its most
    important figure. A section without one is not folded. ``filled``: it has anything to show.
    """

    title: str
    count: int | None
    line: str | None
    filled: bool = True
    heading: str | None = None


def of_run(d: Diagnosis) -> dict[str, Section]:
    """Id and section of a run's page, in its order."""
    c, v = d.compile_time, d.verdict
    cold = f"{fmt.seconds(c.seconds)} of compilation" if fmt.given(c.seconds) else None
    warm = f"{fmt.seconds(c.warm_seconds)} warm" if fmt.given(c.warm_seconds) else None
    compiled = _join(cold, warm, _many(d.compiles, "compile"))
    logs, pairs = d.reading.records > 0, None
    if d.pairs:
        whole, interval = fmt.plural(len(d.pairs), "pair"), v.speedup_interval
        pairs = _join(
            f"{fmt.count(v.blocks)} of {whole} used" if v.blocks else whole,
            f"95 % interval {fmt.ratio_interval(interval)}" if interval else None,
        )
    return {
        **_of_step(d),
        **_of_code(d),
        "compile": Section(
            "Compile time", None, compiled, bool(c.seconds is not None or d.compiles)
        ),
        "recompiles": Section(
            "Recompiles",
            len(d.recompiles),
            _recompiled(sum(len(c.links) for c in d.recompiles), d.recompiles),
            logs or bool(d.recompiles),
        ),
        "breaks": Section(
            "Graph breaks",
            len(d.graph_breaks),
            _seen(b.times for b in d.graph_breaks),
            logs or bool(d.graph_breaks),
        ),
        "pairs": Section("Block pairs", None, pairs, bool(d.pairs)),
        **_about(d),
        "method": Section("How it was measured", None, words.blocks(d)),
    }


def _of_step(d: Diagnosis) -> dict[str, Section]:
    """Where the time of a step goes, and what it gives."""
    x, matching = d.explanation, d.explanation.matching
    figures = [figure for one in d.counts.values() for figure in msgspec.structs.astuple(one)]
    time = any((*d.accounting.values(), x.waterfall, x.details, *figures))
    steps = [s for s in x.timelines if fmt.given(s.duration_ms)]
    stances = ", ".join(f"{s.stance} {fmt.milliseconds(s.duration_ms)}" for s in steps)
    step = f"{stances}, as profiled" if steps else None
    matched = matching.eager_share
    share = f"{fmt.percent(matched)} of eager matched" if fmt.given(matched) else None
    groups = _join(_many(matching.groups, "group"), share) if matching.groups else None
    limit = phrases.compiled_limit(d)
    limits = limit.sentence if limit else None
    limits = limits or _join(_many(x.limits, "kernel"), _many(x.ceilings, "measured limit"))
    limited = any((x.limits, x.step_limits, x.ceilings))
    whole = "Outputs: eager against compiled"
    agree = " ".join(dict.fromkeys(phrases.outputs_agree(one) for one in d.outputs)) or None
    outputs = Section("Outputs", len(d.outputs), agree, heading=whole)
    return {
        "time": Section("Where the time goes", None, _time(d), time),
        "step": Section("Step timeline", None, step, bool(x.timelines)),
        "groups": Section(
            "Eager and compiled kernels", len(matching.groups), groups, bool(matching.groups)
        ),
        "limits": Section("Device limits", None, limits, limited),
        **({"outputs": outputs} if d.outputs else {}),
    }


def _of_code(d: Diagnosis) -> dict[str, Section]:
    """What was compiled, and the kernels that were made of it."""
    x = d.explanation
    fused, apart = phrases.by_outcome(x.fusion)
    notes = f"{fmt.count(len(fused))} fused, {fmt.count(len(apart))} not fused"
    fusion = _join(notes if x.fusion else None, _many(x.passes, "graph pass", "graph passes"))
    timed = [k for k in d.fused if fmt.given(k.ms)]
    slowest = max(timed, key=lambda k: k.ms or 0.0, default=None)
    said = f"slowest {fmt.milliseconds(slowest.ms)} per step" if slowest else None
    ranked = [k for k in d.kernels if k.stance in ("compiled", "eager") and fmt.given(k.share)]
    top = max(ranked, key=lambda k: (k.stance == "compiled", k.share), default=None)
    kernels = None
    if top:
        named = one_line(names.kernel(top.name), 60)
        kernels = f"{named} takes {fmt.percent(top.share)} of the {top.stance} busy time"
    ops = sum(g.op_count or 0 for g in d.graphs)
    graphs = _join(_many(d.graphs, "graph"), fmt.plural(ops, "operation") if ops else None)
    calls = _join(_many(x.call_path, "part", "parts of a call"), _many(x.guards, "guard"))
    parts = [p for p in x.call_path if fmt.given(p.us_per_call)]
    if parts:
        most = max(parts, key=lambda p: p.us_per_call or 0.0)
        part = names.word(names.CALL_PARTS, most.part)
        calls = f"{part}: {fmt.figure(most.us_per_call)} µs per call"
    return {
        "regions": _rows("Regions", d.regions, "compiled callable"),
        "fusion": Section("Fusion", len(x.fusion), fusion, bool(x.fusion or x.passes)),
        "fused": Section(
            "Fused kernels",
            len(d.fused),
            _join(_many(d.fused, "generated kernel"), said),
            bool(d.fused),
        ),
        "kernels": Section("Top kernels", None, kernels, bool(d.kernels)),
        "graphs": Section("Graphs", len(d.graphs), graphs, bool(d.graphs)),
        "calls": Section("Guards and the call path", None, calls, bool(x.call_path or x.guards)),
    }


def of_job(d: Diagnosis, j: Job) -> dict[str, Section]:
    """Id and section of a post-mortem's page, in its order; the findings are not among them."""
    late = j.late.compiles if j.late and j.late.rows else 0
    failures = fmt.plural(len(j.failures), "failure")
    asked = sum(sum(row.counts.values()) for row in j.caches.rows)
    looked_up = fmt.plural(asked, "look-up") if asked else None
    waits = _join(_many(j.stragglers, "straggler"), _many(j.waits, "compile", "compiles"))
    slowest = None
    if j.frames:
        slowest = f"{one_line(j.frames[0].name, 60)} {fmt.seconds(j.frames[0].rank_seconds)}"
    code = _of_code(d)
    regions = ("regions",) if d.regions else ()
    kernels = ("fused", "kernels", "graphs") if d.fused or d.kernels or d.graphs else ()
    return {
        "ranks": _rows("Ranks", j.ranks, "rank", counted=False, heading="Ranks and phases"),
        "frames": Section(
            "Functions", len(j.frames), slowest, heading="Functions by compile seconds"
        ),
        "waits": Section("Waits and stragglers", len(j.stragglers), waits),
        "caches": Section("Caches", None, looked_up),
        "recompiles": Section(
            "Recompiles",
            len(j.recompiles),
            _recompiled(sum(c.recompiles for c in j.recompiles), j.recompiles),
        ),
        "late": Section(
            "Late compiles",
            j.late.compiles if j.late else 0,
            fmt.plural(late, "compile") if late else None,
            heading="Compiles after the start",
        ),
        "breaks": Section("Graph breaks", len(j.breaks), _seen(b.times for b in j.breaks)),
        "divergence": _rows("Rank differences", j.divergences, "difference"),
        "configs": _rows(
            "Versions and settings",
            j.configs,
            "setting",
            heading="Versions and settings that differ",
        ),
        "failures": Section("Failures", len(j.failures), failures if j.failures else None),
        "tuning": Section(
            "Autotuning",
            None,
            f"{fmt.seconds(j.autotuning.rank_seconds)} on all ranks together"
            if j.autotuning
            else None,
        ),
        "idle": _rows(
            "Idle time",
            j.idle,
            "profiler trace",
            counted=False,
            heading="Idle time while compiling",
        ),
        # What it shares with a run's page, where there is anything.
        **{id_: code[id_] for id_ in (*regions, *kernels)},
        **_about(d),
    }


def _rows(
    title: str, rows: Sized, what: str, *, counted: bool = True, heading: str | None = None
) -> Section:
    """A section that is one table."""
    return Section(title, len(rows) if counted else None, _many(rows, what), bool(rows), heading)


def _about(d: Diagnosis) -> dict[str, Section]:
    """What stands at the end of every page."""
    torch = words.setting(d.environment, "torch_version", "torch")
    device = words.setting(d.environment, "device_name", "device")
    settings = _join(f"torch {torch.removeprefix('torch ')}" if torch else None, device)
    read = f"{fmt.plural(d.reading.records, 'record')} of the compiler's logs"
    if d.reading.unreadable:
        read += f", {fmt.plural(d.reading.unreadable, 'piece')} could not be read"
    elif not d.reading.unknown_records:
        read += ", all understood"
    return {
        "environment": Section("Environment", None, settings),
        "unchecked": _rows("Not checked", d.not_checked, "rule"),
        "reading": Section("What was read", None, read if d.reading.records else None),
    }


def _many(rows: Sized, what: str, several: str | None = None) -> str | None:
    """``several``: the words for other numbers than one, where an s at the end does not do."""
    if several and len(rows) > 1:
        return f"{fmt.count(len(rows))} {several}"
    return fmt.plural(len(rows), what) if rows else None


def _join(*parts: str | None) -> str | None:
    return ", ".join(filter(None, parts)) or None


def _time(d: Diagnosis) -> str | None:
    eager, compiled = d.verdict.eager_ms, d.verdict.compiled_ms
    if not fmt.given(eager) or not fmt.given(compiled):
        return None
    step = f"a step goes from {fmt.milliseconds(eager)} to {fmt.milliseconds(compiled)}"
    effects = [e for e in d.explanation.waterfall if fmt.given(e.ms)]
    if not effects:
        return step
    first = max(effects, key=lambda e: abs(e.ms))
    sign = "−" if first.ms < 0 else "+"
    largest = f"{names.effect(first.effect, first.ms)} {sign}{fmt.milliseconds(abs(first.ms))}"
    return f"{step}; largest: {largest}"


def _recompiled(times: int, functions: Sized) -> str | None:
    said = f"{fmt.plural(times, 'recompile')} of {fmt.plural(len(functions), 'function')}"
    return said if functions else None


def _seen(times: Iterable[int]) -> str | None:
    found = list(times)
    said = f"{fmt.plural(len(found), 'place')}, seen {fmt.plural(sum(found), 'time')}"
    return said if found else None
