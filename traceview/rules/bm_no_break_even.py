"""
## What it finds
A job too short for compiling to pay for itself: it ends before the time saved per step adds up to
the compile time.

## Why it costs
Compiling takes seconds once and saves milliseconds per step. Before the break-even step, the job as
a whole takes longer than in eager.

## Evidence
break-even steps = compile seconds / (eager step - compiled step), both measured. The length of the
job is what `--job-steps` says, the number of steps of a script that ended by itself after more than
a minute, not counting the compile time, or that of the loops around the step, if they take so long
both in eager and compiled. Where the measurement cannot tell whether a step got
faster, the upper end of its interval gives the most that these steps can save.

A warning only where that length is known and compiling helped or hurt. Otherwise information, and
only where the script ended before it had saved its compile time.

## What to do
Compile less (one repeated block instead of the whole model), keep the cache between starts
(`TORCHINDUCTOR_CACHE_DIR`), or run short jobs in eager.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- https://docs.pytorch.org/tutorials/recipes/regional_compilation.html
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html
- torch/_inductor/config.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Tables,
    compile_call,
    first,
    milliseconds,
    ratio,
    seconds,
    speedup,
)

CODE = "TV601"
NEEDS = frozenset({"speedups"})
SEVERITIES = ("warning", "info")
#: What makes every step slower. Recompiles and breaks explain only a part of what is not saved.
FOLLOWS = frozenset(
    {
        "rc-limit-hit",
        "ap-call-overhead",
        "ap-many-tensors",
        "cap-debug-backend",
        "ct-repeated-blocks",
        "ct-repeated-same-compile",
        "ap-not-in-model",
        "ap-grad-inference",
        "cap-cached-function",
        "cap-copy-in-eager",
        "ind-extern-dominated",
        "ind-other-form",
        "ind-random-numbers",
        "ind-recomputed",
        "ind-scalar-loop",
        "ind-slower-fusion",
    }
)
#: How the job's length is known.
_LENGTHS = {
    "option": "length of the job as given",
    "observed": "length of the job as observed",
    "loops": "length of the job by the loops around the step",
}


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: the job as a whole."""
    found, run = speedup(tables), first(tables, "runs")
    if found is None or found["compile_s"] is None or found["speedup"] is None:
        return
    job, outcome, even = found["job_steps"], found["outcome"], found["break_even_steps"]
    steps = job or (run["steps_seen"] if run and run["exit_kind"] == "exit" else None)
    once, title = seconds(found["compile_s"]), None
    if outcome == "hurt" and job and found["job_steps_from"] != "loops":
        title = "Compiling never pays off here: a compiled step is slower than an eager one"
    elif outcome == "helped" and even and steps and steps < even:
        title = f"Break-even at step {even:,}; {'the job has' if job else 'this run had'} {steps:,}"
    elif outcome == "neutral" and steps and found["speedup_high"]:
        most = steps * found["eager_ms"] * max(0.0, 1 - 1 / found["speedup_high"]) / 1e3
        saved = f"at most {seconds(most)}" if most else "nothing"
        if most < found["compile_s"]:
            title = f"Compiling takes {once}; {steps:,} steps save {saved}"
    if title is None:
        return

    region = first(tables, "regions", is_anchor=True) or first(tables, "regions")
    proof = f"{once} of compiling, speedup {ratio(found['speedup'])}"
    cost = Cost(about="nothing, if the real job runs past its break-even step")
    remedy = (
        "keep the compile cache between starts, compile one repeated block instead of the whole "
        "model, or run it in eager."
    )
    if job:
        lost = found["compile_s"] - (found["eager_ms"] - found["compiled_ms"]) * steps / 1e3
        cost = Cost(seconds=lost, about=f"compiling, less what {job:,} steps save")
        remedy = "Run this job in eager." if outcome == "hurt" else remedy.capitalize()
        proof += f", {_LENGTHS[found['job_steps_from']]}"
    else:
        remedy = (
            "Nothing, if the real job is longer: `--job-steps N` sets its length. For a job as "
            f"short as this one, {remedy}"
        )
    yield Finding(
        code=CODE,
        rule="bm-no-break-even",
        severity="warning" if job and outcome != "neutral" else "info",
        title=title,
        explanation=(
            f"Compiling takes {once} once. A warm step takes {milliseconds(found['eager_ms'])} in "
            f"eager and {milliseconds(found['compiled_ms'])} compiled."
        ),
        cost=cost,
        confidence="derived",
        location=compile_call(region),
        evidence=(Evidence(proof, "speedups"),),
        what_to_do=remedy,
    )
