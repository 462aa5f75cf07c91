"""Small tables of one profiler window, written by hand: times in µs, host thread ``1``."""

from __future__ import annotations

from traceview.derive.profile import profile_tables
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None, "stance": "compiled"}


def op(name, start, duration, parent=None, tid="1", category="other", kind="cpu_op", step=0):
    times = {"start_ns": start * 1000, "duration_ns": duration * 1000, "self_ns": 0, "step": step}
    named = {"name": name, "tid": tid, "parent_id": parent, "category": category, "kind": kind}
    return named | times


def mark(name, start, duration, parent=None, **more):
    return op(name, start, duration, parent, category="mark", kind="user_annotation", **more)


def overhead(name, start, duration, parent=None):
    return op(name, start, duration, parent, category="overhead")


def call(name, start, duration, kind="launch", correlation=None, tid="1", kernels=0):
    return {"name": name, "start_ns": start * 1000, "duration_ns": duration * 1000, "kind": kind,
            "correlation": correlation, "tid": tid, "kernels": kernels, "step": 0}  # fmt: skip


def kernel(start, duration, launched, correlation=None, name=None, category="gemm", **more):
    """A kernel and, with ``launched``, the start of its launch."""
    row = {"name": name or f"k{start}", "kind": "kernel", "category": category, "step": 0,
           "device": 0, "start_ns": start * 1000, "duration_ns": duration * 1000,
           "correlation": correlation}  # fmt: skip
    launch = {"launch_name": "cuLaunchKernel", "launch_duration_ns": 2000}
    if launched is not None:
        row |= {**launch, "launch_start_ns": launched * 1000}
    return row | more


def window(ops=(), calls=(), kernels=(), end=1000, **tables):
    """Tables of one step from 0 to ``end``; operator n has op_id n, the step's mark 900."""
    marks = [{**mark("traceview step 4", 0, end), "op_id": 900}]
    numbered = [{**row, "op_id": n} for n, row in enumerate(ops)]
    frames = {
        "kernels": kernels, "kernel_launches": calls, "cpu_ops": [*marks, *numbered], **tables,
    }  # fmt: skip
    return Tables(
        {name: from_rows(name, [{**HEAD, **row} for row in rows]) for name, rows in frames.items()}
    )


def step(tables, step_ms=None):
    """(category → row of accounting, the row of step_counts, rows of account_details)."""
    made = profile_tables(tables, {} if step_ms is None else {"compiled": step_ms})
    rows = {row["category"]: row for row in made["accounting"].to_dicts()}
    return rows, made["step_counts"].row(0, named=True), made["account_details"].to_dicts()


def us(tables):
    """Category → µs as profiled."""
    return {name: round(row["profiled_ms"] * 1000, 3) for name, row in step(tables)[0].items()}
