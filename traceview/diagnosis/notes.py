"""What the reader must know to trust the figures: the report's notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import polars as pl

from traceview.derive.windows import far_longer
from traceview.diagnosis.ahead import ahead_of_time
from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import StanceCounts, Verdict
from traceview.run import Run
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, plural

#: More pages than this a step are no coincidence; a smaller unexplained part is not reported.
MORE_PAGES, UNEXPLAINED = 100, 0.02
#: Compiling keeps a CPU busy; below this part of its time, other processes had it.
BUSY_SHARE = 0.7
#: Kernels that Triton's workers compile take CPU time that is not counted.
_WITHOUT_WORKERS = {"cpp", "extern", "fallback", None}
#: A profiled step that takes this many times as long as an unprofiled one is reported.
PROFILER_COST = 1.1


def notes(
    run: Run,
    tables: Tables,
    focus: Focus,
    verdict: Verdict,
    counts: dict[str, StanceCounts],
) -> Iterator[str]:
    """The notes in order: what was not done, then how the figures came about."""
    yield from run.manifest.notes
    yield from (f"Pass {item.name}: {item.why}" for item in run.manifest.passes if item.why)
    speed = focus.first(tables["speedups"])
    if verdict.basis in ("paired_blocks", "all_blocks"):
        yield (
            "Eager and compiled steps alternated in one process. Times that the script itself "
            "printed mix both: ignore them."
        )
    if verdict.replayed:
        yield (
            "The script ended before its speedup was known to 3 %, so traceview replayed its "
            f"compiled calls on copies of their inputs: {verdict.replayed} of "
            f"{plural(verdict.blocks, 'block pair')}. Only the calls count there, with one call's "
            "inputs: neither the code between them nor a backward pass outside of them."
        )
    if any(row["replayed"] for row in focus.rows(tables["profile_windows"])):
        yield "The profile is of replayed calls, too."
    if verdict.basis == "two_runs":
        yield (
            "The eager time comes from a second run, all in eager. The machine may have changed "
            "between the runs, so the interval is narrower than the real uncertainty."
        )
    if speed and speed["compiles_inside"]:
        inside = plural(speed["compiles_inside"], "compile")
        yield f"Compilation never stopped: {inside} ran inside the timed blocks and count there."
    reasons = [row["left_out"] for row in focus.pairs(tables) if row["left_out"]]
    for kind, times in Counter(reason.split(":")[0] for reason in reasons).most_common():
        example = next(reason for reason in reasons if reason.startswith(kind))
        yield f"Left out {plural(times, 'block pair')}: {'the first, ' * (times > 1)}{example}."
    of_each = focus.rows(tables["callable_speedups"].filter("timed"))
    shown = [row["windows"] for row in of_each if row["headline"]]
    if shown == [0] and any(row["windows"] for row in of_each):
        yield (
            "No profiler window was recorded of the steps that the verdict is about, only of "
            "another callable's. Those are not shown."
        )
    if ahead := ahead_of_time(tables):
        yield (
            f"{ahead}. It is no call of torch.compile's and in no other figure of this report; "
            "table ahead_compiles has it."
        )
    yield from _compiling(tables, focus)
    yield from _profiled(tables, focus, verdict, counts)
    yield from _others(tables, focus)


def _compiling(tables: Tables, focus: Focus) -> Iterator[str]:
    """What compile seconds contain besides compiling."""
    if not tables.has("compiles") or focus.pass_name != "cold":
        return
    yield (
        "Compile times are those of a cold start, with private, empty caches. --warm measures a "
        "warm start, too."
    )
    compiles = focus.rows(tables["compiles"])
    logging = [row["logging_us"] for row in compiles if row["logging_us"] is not None]
    if logging:
        yield (
            f"{sum(logging) / 1e6:.2f} s of the compile times went into writing torch's structured "
            "log for traceview; the costs of findings leave that out."
        )
    spans = [row for row in focus.rows(tables["compile_intervals"]) if row["cpu_ms"] is not None]
    taken = sum(row["duration_ms"] or 0.0 for row in spans)
    share = sum(row["cpu_ms"] for row in spans) / taken if taken else 1.0
    kinds = set(tables["generated_kernels"]["category"])
    if share < BUSY_SHARE and not kinds - _WITHOUT_WORKERS:
        yield (
            f"Compilation had a CPU for {100 * share:.0f} % of its time, because other processes "
            "used the machine. Compile times would be shorter on a quiet one."
        )


def _profiled(
    tables: Tables, focus: Focus, verdict: Verdict, counts: dict[str, StanceCounts]
) -> Iterator[str]:
    """What the collector could not do, and what sets profiled steps apart from timed ones."""
    for row in tables["notes"].iter_rows(named=True):
        yield f"{row['what']}: {row['why']}" if row["why"] else str(row["what"])
    for row in tables["profile_windows"].iter_rows(named=True):
        if row["error"]:
            what = "the user's lines in" if row["purpose"] == "lines" else "the"
            yield f"No profiler trace of {what} {row['stance']} steps: {row['error']}"
    slower = [
        f"{stance} {milliseconds(under)} instead of {milliseconds(plain)}"
        for stance, plain in (("eager", verdict.eager_ms), ("compiled", verdict.compiled_ms))
        if (under := counts[stance].step_ms) and plain and under > PROFILER_COST * plain
    ]
    if slower:
        yield (
            f"Steps are slower under the profiler ({', '.join(slower)}); the "
            "accounting is scaled to steps without it."
        )
    steps = focus.rows(tables["step_counts"])
    for row in steps:
        if far_longer(row["unexplained_ms"], row["timed_step_ms"], row["beside_step_ms"]):
            profiled, timed = map(milliseconds, (row["step_ms"], row["timed_step_ms"]))
            yield (
                f"The profiled {row['stance']} steps took {profiled}, timed ones {timed}. That is "
                "more than the profiler costs: the profiled steps did something else, so their "
                "accounting does not apply to the timed ones. A run of more steps is profiled "
                "again at its end."
            )
    for row in steps:
        # The profiler's own blocks split freed tensors: others move to memory not used before.
        timed, profiled = row["page_faults"], row["profiled_page_faults"]
        if timed is None or profiled is None or profiled < timed + MORE_PAGES:
            continue
        if (row["unexplained_ms"] or 0.0) < -UNEXPLAINED * (row["timed_step_ms"] or math.inf):
            yield (
                f"Profiled {row['stance']} steps touched {profiled - timed:,.0f} more new memory "
                "pages than timed ones: the allocator could not reuse freed memory, which slowed "
                "the operators down. jemalloc (LD_PRELOAD=libjemalloc.so.2) makes the accounting "
                "more accurate."
            )


def _others(tables: Tables, focus: Focus) -> Iterator[str]:
    """Ranks and starts of the job that no finding and no section is about."""
    ranks = tables["speedups"].select("rank", "speedup")
    if ranks.height > 1:
        known = ranks.drop_nulls("speedup").iter_rows()
        each = ", ".join(f"rank {rank} {speedup:.2f}×" for rank, speedup in known)
        yield f"Figures are those of the first of {ranks.height} ranks. Speedups: {each or 'none'}."
    starts = {row["pass"]: row for row in tables["jobs"].iter_rows(named=True)}
    shown = starts.get(focus.pass_name)
    if shown is None or len(starts) < 2:
        return
    others = pl.col("pass") != focus.pass_name
    broken = tables["break_sites"].filter(others, ~pl.col("in_torch"))
    again = tables["recompile_causes"].filter(others).height
    text = (
        "Findings and sections are about one start of the script: "
        f"job {shown['job']}, attempt {shown['attempt']}."
    )
    lines = broken.select("file", "line").unique().height
    found = [f"graph breaks at {plural(lines, 'line')}"] if lines else []
    found += [plural(again, "recompile")] if again else []
    if found:
        text += (
            f" {plural(len(starts) - 1, 'other start')} in these logs recorded "
            f"{' and '.join(found)}. To read about them, run traceview postmortem on the logs of "
            "that start alone."
        )
    yield text
