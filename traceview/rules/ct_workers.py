"""
## What it finds
Problems with the workers that compile kernels: kernels compiled one after the other because there
is only one thread, or a run that ended while it waited for a worker.

## Why it costs
The kernels of a graph compile independently of each other. With one thread a start takes the sum of
their times, with several about the longest one. A pool that hangs never returns.

## Evidence
One: a user's `compile_threads=1` or `TORCHINDUCTOR_COMPILE_THREADS=1`, several processors, and the
time of each kernel that was compiled; the cost is their sum less what one thread per processor
would have needed.

Two: the run was ended from outside, and the last thing that began is `async_compile.wait`, more
than a minute before.

The first is a warning where it costs at least a quarter of a job whose length is known. Otherwise
information. The second is a warning.

## What to do
Remove the setting; it is for debugging. Where the pool hangs or takes too much memory, 1 rules it
out, and a small number is a compromise.

## Settings
- `least_seconds`: smaller losses are not reported
- `hang_seconds`: a run that was ended after waiting this long for a worker counts as hung

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- torch/_inductor/config.py, `compile_threads`
- torch/_inductor/async_compile.py, `AsyncCompile`
- https://github.com/pytorch/pytorch/issues/121197
- https://github.com/pytorch/pytorch/issues/162199
- https://github.com/pytorch/pytorch/pull/183003
- https://github.com/vllm-project/vllm/issues/36028
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _starts
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Row,
    Snippet,
    Tables,
    first,
    first_rank,
    from_row,
    plural,
    rows,
    seconds,
)

CODE = "TV607"
NEEDS = frozenset({"compile_phases", "environment", "runs"})
SEVERITIES = ("warning", "info")

#: Less than a second is not worth a finding.
LEAST_SECONDS = 1.0
#: No known kernel takes g++ or Triton a minute.
HANG_SECONDS = 60.0
_THREADS = ("compile_threads", "TORCHINDUCTOR_COMPILE_THREADS")
_WAITING = "async_compile.wait"
_ENDED = ("timeout", "interrupted", "signal", "killed")


def check(
    tables: Tables, *, least_seconds: float = LEAST_SECONDS, hang_seconds: float = HANG_SECONDS
) -> Iterator[Finding]:
    """At most one finding of each kind."""
    run = first(tables, "runs")
    if run is None:
        return
    phases = first_rank(rows(tables, "compile_phases"))
    yield from _serial(tables, run, phases, least_seconds)

    # The wait in which the run was ended: the last thing that began, and it has no end.
    started = [row for row in phases if row["started_us"] is not None and not row["aside"]]
    wait = max(started, key=lambda row: (row["started_us"], row["phase_id"]), default=None)
    known = run["started_us"] is not None and run["wall_s"] is not None
    if wait is None or not known or run["exit_kind"] not in _ENDED:
        return
    if wait["name"] != _WAITING or wait["duration_us"] is not None:
        return
    waited = run["started_us"] / 1e6 + run["wall_s"] - wait["started_us"] / 1e6
    if waited < hang_seconds:
        return
    text = f"compile {wait['compile_id']}: {_WAITING} has no end"
    yield Finding(
        code=CODE,
        rule="ct-workers",
        severity="warning",
        title=f"The run was ended while it waited for a compile worker, after {seconds(waited)}",
        explanation=(
            "Inductor gives kernels to worker processes and waits for them. The compiler logged "
            "nothing after this wait began."
        ),
        cost=Cost(seconds=waited, about="waiting for a worker, until the run was ended"),
        confidence="measured",
        location=_starts.setting_place(tables, _THREADS[1]),
        evidence=(from_row(text, "compile_phases", wait),),
        what_to_do=(
            "Run once with one compile thread, which uses no workers: if that succeeds, the pool "
            "is at fault; look at the memory that its workers used."
        ),
        snippet=Snippet("shell", "TORCHINDUCTOR_COMPILE_THREADS=1 python SCRIPT"),
    )


def _serial(tables: Tables, run: Row, phases: list[Row], least_seconds: float) -> Iterator[Finding]:
    """Kernels that one thread compiled, where more could have."""
    settings = [
        row["name"]
        for row in rows(tables, "environment", value="1")
        if row["name"] in _THREADS and row["set_by"] != "traceview"
    ]
    if not settings:
        return
    # Seconds of each kernel that was compiled, by compile.
    names = {row["phase_id"]: row["name"] for row in phases}
    kernels: dict[str | None, list[float]] = {}
    for row in phases:
        compiled = _starts.is_kernel(row["name"], names.get(row["parent_id"]))
        if compiled and row["duration_us"] is not None:
            kernels.setdefault(row["compile_key"], []).append(row["duration_us"] / 1e6)
    # What one thread took more than one per processor would; 0 where their number is not known.
    lost = sum(
        sum(own) - max(max(own), sum(own) / min(len(own), run["cpu_count"] or 1))
        for own in kernels.values()
    )
    if lost < least_seconds:
        return
    name, every = settings[0], [spent for own in kernels.values() for spent in own]
    yield Finding(
        code=CODE,
        rule="ct-workers",
        severity=_starts.severity(tables, lost),
        title=f"{plural(len(every), 'kernel')} compiled one after the other (`{name}` is 1)",
        explanation=(
            f"They took {seconds(sum(every))}. {run['cpu_count']} processors could have "
            "compiled each graph's kernels in parallel."
        ),
        cost=Cost(seconds=lost, about="compared with one thread per processor, without a cache"),
        confidence="derived",
        location=_starts.setting_place(tables, name),
        evidence=(
            Evidence(f"{name} is 1", "environment"),
            Evidence(f"{seconds(sum(every))} in {plural(len(every), 'kernel')}", "compile_phases"),
        ),
        what_to_do=f"Remove `{name}`: torch then uses one thread per processor, at most 32.",
    )
