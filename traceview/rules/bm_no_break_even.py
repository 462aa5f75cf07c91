"""
## What it finds
A job too short for compiling to pay for itself: fewer steps than it takes to earn the compile
time back.

## Why it costs
Compiling takes seconds once and saves milliseconds a step. Below the break-even the job as a
whole ends later than in eager.

## Evidence
break-even steps = compile seconds / (eager step - compiled step), both measured. The length of
the job is what `--job-steps` says, or the steps of a script that ended by itself after more than
a minute. Where the measurement leaves open whether a step got faster, the upper end of its interval
says what these steps save at most.

A warning only where that length is known and compiling helped or hurt; else information, and only
where the script that was run ended before it had earned the compile time back.

## What to do
Compile less (one repeated block instead of the whole model), keep the cache between starts
(`TORCHINDUCTOR_CACHE_DIR`), or leave a short job in eager.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- https://docs.pytorch.org/tutorials/recipes/regional_compilation.html
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html
- torch/_inductor/config.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _costs, _places
from traceview.rules._rows import Row, first
from traceview.rules.finding import Cost, Evidence, Finding
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, seconds

CODE = "TV601"
NEEDS = frozenset({"speedups"})
#: What makes every step slower. Recompiles and breaks are not the whole of what is not earned back.
FOLLOWS = frozenset({
    "rc-limit-hit", "ap-call-overhead", "cap-debug-backend", "ct-repeated-same-compile",
    "ap-not-in-model", "ap-grad-inference", "ind-extern-dominated",
})  # fmt: skip


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: the job as a whole."""
    found = _costs.measured(tables)
    if found is None or found["compile_s"] is None or found["speedup"] is None:
        return
    job, steps = found["job_steps"], _steps(tables, found)
    if found["outcome"] == "hurt" and job:
        title = "Compiling never pays here: a compiled step is slower than an eager one"
        yield _finding(tables, found, job, title)
    elif found["outcome"] == "helped" and found["break_even_steps"]:
        if steps and steps < found["break_even_steps"]:
            title = (
                f"Compiling pays from step {found['break_even_steps']:,} on; "
                f"the {'job' if job else 'script'} has {steps:,}"
            )
            yield _finding(tables, found, job, title, steps)
    elif found["outcome"] == "neutral" and steps and found["speedup_high"]:
        most = steps * found["eager_ms"] * max(0.0, 1 - 1 / found["speedup_high"]) / 1e3
        if most < found["compile_s"]:
            title = f"Compiling takes {seconds(found['compile_s'])}; {steps:,} steps save " + (
                f"{seconds(most)} of it at most" if most else "nothing of it"
            )
            yield _finding(tables, found, job, title, steps)


def _steps(tables: Tables, found: Row) -> int | None:
    """Of the job, else of a script that ended by itself."""
    run = first(tables, "runs")
    ended: int | None = run["steps_seen"] if run and run["exit_kind"] == "exit" else None
    return found["job_steps"] or ended


def _finding(
    tables: Tables, found: Row, job: int | None, title: str, steps: int | None = None
) -> Finding:
    steps = steps or job or 0
    region = first(tables, "regions", is_anchor=True) or first(tables, "regions")
    saved = (found["eager_ms"] - found["compiled_ms"]) * steps / 1e3
    return Finding(
        code=CODE,
        rule="bm-no-break-even",
        severity="warning" if job and found["outcome"] != "neutral" else "info",
        title=title,
        explanation=(
            f"Compiling takes {seconds(found['compile_s'])} once. A step takes "
            f"{milliseconds(found['eager_ms'])} in eager and {milliseconds(found['compiled_ms'])} "
            f"compiled, measured on warm steps."
        ),
        cost=_cost(job, found["compile_s"] - saved),
        confidence="derived",
        location=_places.compile_call(region) if region else None,
        evidence=(
            Evidence(
                f"{seconds(found['compile_s'])} of compiling, speedup {found['speedup']:.2f}×"
                + (f", job length from {found['job_steps_from']}" if job else ""),
                "speedups",
            ),
        ),
        what_to_do=_remedy(found["outcome"], job),
    )


def _remedy(outcome: str, job: int | None) -> str:
    if outcome == "hurt":
        return "Leave this job in eager."
    shorter = (
        "keep the compile cache between starts, compile one repeated block instead of the whole "
        "model, or leave it in eager."
    )
    if job:
        return shorter[:1].upper() + shorter[1:]
    return (
        "Nothing, if the real job is longer: `--job-steps N` tells its length. For a job as short "
        f"as this, {shorter}"
    )


def _cost(job: int | None, lost_s: float) -> Cost:
    """Seconds that the job loses; none where its length is not known."""
    if job:
        return Cost(seconds=lost_s, about=f"compiling, less what {job:,} steps save")
    return Cost(about="nothing, if the real job is longer than its break-even")
