"""Each torch.compile call's own sentence, and which of them the verdict is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import polars as pl

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import CompileLine, Region, Verdict
from traceview.diagnosis.verdict import hurts_by_compiles
from traceview.tables import Tables
from traceview.words.names import at_line
from traceview.words.numbers import ordinal, plural, ratio, ratio_interval, together
from traceview.words.text import listed

MOST_NAMED = 3
_USUAL = (None, "inductor", "default")
_OUTCOMES = {
    "helped": "torch.compile helped",
    "hurt": "torch.compile hurt",
    "neutral": "no clear difference",
}


def of_callable(region: Region) -> str:
    """The callable's own verdict: what it is, the outcome, its figures or why there are none."""
    word = _OUTCOMES.get(region.outcome or "")
    if word is None:
        return f"{named(region)}: not measured, {region.not_measured or 'no step was timed'}."
    compiled, eager = together(region.step_compiled_ms or 0.0, region.step_eager_ms or 0.0)
    speedup = f"{ratio(region.speedup)} (95 % interval {ratio_interval(region.speedup_interval)})"
    return f"{named(region)}: {word}, {speedup}, {compiled} instead of {eager}."


def named(region: Region) -> str:
    """``matmul() at bench.py:20``, with the mode and a backend that is not torch's own."""
    where = ""
    if region.call_file and region.call_line is not None:
        where = f" at {at_line(PurePath(region.call_file).name, region.call_line)}"
    given = region.arguments
    asked = [f"{key}={given[key]}" for key in ("backend", "mode") if given.get(key) not in _USUAL]
    return f"{region.name}(){where}" + (f" with {', '.join(asked)}" if asked else "")


def unreached(tables: Tables, focus: Focus) -> tuple[CompileLine, ...]:
    """Lines that call torch.compile and had not run when the run was stopped."""
    if focus.first(tables["runs"]).get("exit_kind") != "stopped":
        return ()
    rows = focus.rows(tables["compile_lines"].filter(~pl.col("reached")))
    return tuple(CompileLine(row["file"], row["line"]) for row in rows)


#: What recurs between the steps is said where it moves the ratio by this part, out of the interval.
_MOVES = 0.05


def with_other_work(row: Mapping[str, Any]) -> str:
    """A sentence on work that recurs between the steps (a row of ``speedups``), if it matters."""
    eager, compiled = row.get("eager_mean_ms"), row.get("compiled_mean_ms")
    low, middle, high = (row.get(f"speedup{end}") for end in ("_low", "", "_high"))
    if eager is None or compiled is None or low is None or middle is None or high is None:
        return ""
    whole = eager / compiled
    if low <= whole <= high or abs(whole / middle - 1) < _MOVES:
        return ""
    if hurts_by_compiles(dict(row)):
        after, before = together(row["compiled_ms"], row["eager_ms"])
        between = f"a step takes {after} instead of {before} ({ratio(middle)})"
        return f"Where nothing compiles, {between}."
    before, after = together(eager, compiled)
    return (
        "Blocks in which other work recurs between the steps do not count; with them a step takes"
        f" {after} instead of {before} on average ({ratio(whole)})."
    )


def about_others(
    tables: Tables,
    focus: Focus,
    verdict: Verdict,
    callables: Sequence[Region],
    lines: Sequence[CompileLine],
) -> Iterator[str]:
    """What the verdict is about, where there are several callables, and what it leaves out."""
    rows = focus.rows(tables["callable_speedups"])
    timed = [row for row in rows if row["timed"]]
    measured = verdict.outcome in ("helped", "neutral", "hurt")
    others = [region for region in callables if region.speedup is not None and not region.headline]
    if measured and len(timed) > 1:
        own = next((region for region in callables if region.headline), None)
        why = ": of those measured, it takes most of the script's time" if others else ""
        if own and any((each.script_ms or 0.0) > (own.script_ms or 0.0) for each in others):
            why = ": backends that generate no code come last"
        if own is None:
            yield f"This is about the steps of the optimizer{why}."
        else:
            ids = sorted(region.region_id for region in callables)
            place = f"the {ordinal(ids.index(own.region_id) + 1)} of {plural(len(ids), 'callable')}"
            yield f"This is about {named(own)}, {place}{why}."
        if others:
            said = [f"{named(each)} {ratio(each.speedup)}" for each in others[:MOST_NAMED]]
            more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
            yield f"Timed as well: {listed(said) if not more else ', '.join(said)}{more}."
    ended = focus.first(tables["runs"]).get("exit_kind")
    uncalled = [region for region in callables if region.calls == 0 and ended == "stopped"]
    if uncalled and measured:
        said = [named(region) for region in uncalled[:MOST_NAMED]]
        yield f"The run was stopped before a call of {listed(said)}: --run-to-end waits for it."
    if lines:
        places = [at_line(PurePath(each.file).name, each.line) for each in lines[:MOST_NAMED]]
        more = f" and {len(lines) - MOST_NAMED} more" if len(lines) > MOST_NAMED else ""
        yield (
            f"The run was stopped before torch.compile was reached at {', '.join(places)}{more}: "
            "--run-to-end measures that, too."
        )
