"""What the reader must know to trust the figures: said once, plainly, in the report's notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from traceview.derive.windows import far_longer
from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import StanceCounts, Verdict
from traceview.diagnosis.order import Known
from traceview.run import Run
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, plural

#: More pages than this a step are no coincidence; this part of a step unexplained is worth a word.
MORE_PAGES, UNEXPLAINED = 100, 0.02
#: Compiling keeps a processor busy; below this part of its time, others had it.
BUSY_SHARE = 0.7
#: What Triton's workers compile costs processor time that is not counted.
_WITHOUT_WORKERS = {"cpp", "extern", "fallback", None}
#: A profiled step that is this much dearer than the unprofiled one is worth a word.
PROFILER_COST = 1.1


def notes(
    run: Run,
    tables: Tables,
    focus: Focus,
    verdict: Verdict,
    counts: dict[str, StanceCounts],
) -> tuple[str, ...]:
    """The notes in order: what was not done, then how the figures came about."""
    return tuple(
        dict.fromkeys(
            [
                *run.manifest.notes,
                *(f"Pass {item.name}: {item.why}" for item in run.manifest.passes if item.why),
                *_measurement(tables, focus, verdict),
                *_compiling(tables, focus),
                *_collector(tables),
                *_profiler(verdict, counts),
                *_other_steps(tables, focus),
                *_page_faults(tables, focus),
                *_ranks(tables),
                *_other_starts(tables, focus),
            ]
        )
    )


def _measurement(tables: Tables, focus: Focus, verdict: Verdict) -> Iterator[str]:
    speed = focus.first(tables["speedups"])
    if verdict.basis == "paired_blocks":
        yield (
            "Eager and compiled steps alternated in one process, so times that the script itself "
            "printed mix both: do not trust them."
        )
    if verdict.basis == "two_runs":
        yield (
            "The eager time comes from a second run, all eager: the two runs did not share the "
            "machine's state, so the interval understates what is not known."
        )
    if speed and speed["compiles_inside"]:
        inside = plural(speed["compiles_inside"], "compile")
        yield f"Compiling never went quiet: {inside} ran inside the timed blocks and count in them."
    reasons = [row["left_out"] for row in focus.rows(tables["block_pairs"]) if row["left_out"]]
    for kind, times in Counter(reason.split(":")[0] for reason in reasons).most_common():
        example = next(reason for reason in reasons if reason.startswith(kind))
        yield f"Left out {plural(times, 'block pair')}: {'the first, ' * (times > 1)}{example}."


def _compiling(tables: Tables, focus: Focus) -> Iterator[str]:
    """What compile seconds hold besides compiling."""
    if not tables.has("compiles") or focus.pass_name != "cold":
        return
    yield (
        "Compile times are of a cold start: the run had private, empty caches. A warm start is "
        "measured with --warm."
    )
    compiles = focus.rows(tables["compiles"])
    logging = [row["logging_us"] for row in compiles if row["logging_us"] is not None]
    if logging:
        yield (
            f"Of the compile times, {sum(logging) / 1e6:.2f} s went into writing torch's "
            "structured log for traceview; what causes cost is told without that."
        )
    spans = [row for row in focus.rows(tables["compile_intervals"]) if row["cpu_ms"] is not None]
    taken = sum(row["duration_ms"] or 0.0 for row in spans)
    share = sum(row["cpu_ms"] for row in spans) / taken if taken else 1.0
    kinds = set(tables["generated_kernels"]["category"])
    if share < BUSY_SHARE and not kinds - _WITHOUT_WORKERS:
        yield (
            f"Compiling had a processor for {100 * share:.0f} % of its time: others used the "
            "machine, so compile times are that much longer than on a quiet one."
        )


def _collector(tables: Tables) -> Iterator[str]:
    """What the collector said that it could not do."""
    for row in tables["notes"].iter_rows(named=True):
        yield f"{row['what']}: {row['why']}" if row["why"] else str(row["what"])
    for row in tables["profile_windows"].iter_rows(named=True):
        if row["error"]:
            what = "the user's lines in" if row["purpose"] == "lines" else "the"
            yield f"No profiler trace of {what} {row['stance']} steps: {row['error']}"


def _profiler(verdict: Verdict, counts: dict[str, StanceCounts]) -> Iterator[str]:
    plain: dict[str, Any] = {"eager": verdict.eager_ms, "compiled": verdict.compiled_ms}
    dearer = [
        f"{stance} {milliseconds(found.step_ms)} against {milliseconds(plain[stance])}"
        for stance, found in counts.items()
        if found.step_ms and plain[stance] and found.step_ms > PROFILER_COST * plain[stance]
    ]
    if dearer:
        yield (
            f"A step costs more under the profiler than without it ({', '.join(dearer)}): the "
            "accounting is scaled to the time without."
        )


def _other_steps(tables: Tables, focus: Focus) -> Iterator[str]:
    for row in focus.rows(tables["step_counts"]):
        if far_longer(row["unexplained_ms"], row["timed_step_ms"], row["beside_step_ms"]):
            profiled, timed = map(milliseconds, (row["step_ms"], row["timed_step_ms"]))
            yield (
                f"The profiled {row['stance']} steps took {profiled} where timed ones take "
                f"{timed}, which is more than the profiler can cost: they were other steps, and "
                "where their time went tells nothing of the timed ones. A run of more steps is "
                "profiled again at its end."
            )


def _page_faults(tables: Tables, focus: Focus) -> Iterator[str]:
    """The profiler's own blocks split freed tensors, and tensors move to memory not used before."""
    for row in focus.rows(tables["step_counts"]):
        timed, profiled = row["page_faults"], row["profiled_page_faults"]
        if timed is None or profiled is None or profiled < timed + MORE_PAGES:
            continue
        if (row["unexplained_ms"] or 0.0) < -UNEXPLAINED * (row["timed_step_ms"] or math.inf):
            yield (
                f"Profiled {row['stance']} steps touched {profiled - timed:,.0f} more memory pages "
                "for the first time than timed ones: the allocator could not reuse what was freed, "
                "and operators were slower for it. Under jemalloc (LD_PRELOAD=libjemalloc.so.2) "
                "the accounting would be truer."
            )


def _ranks(tables: Tables) -> Iterator[str]:
    rows = tables["speedups"]
    if rows.height > 1:
        each = ", ".join(
            f"rank {row['rank']} {row['speedup']:.2f}×"
            for row in rows.iter_rows(named=True)
            if row["speedup"] is not None
        )
        yield f"Figures are those of the first of {rows.height} ranks. Speedups: {each or 'none'}."


def order_note(steps: int, known: Known) -> str:
    """How the findings are ordered, and over how long a job."""
    length = plural(steps, "step")
    if known == "told":
        return f"Findings are ordered by what they cost over the job's {length}, information last."
    why = "The job has at least as many" if known == "seen" else "That length is assumed"
    return (
        f"Findings are ordered by what they would cost over {length}, information last. "
        f"{why}: --job-steps names the real one."
    )


def _other_starts(tables: Tables, focus: Focus) -> Iterator[str]:
    """What the logs of a job's other starts hold, which no finding and no section is about."""
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
