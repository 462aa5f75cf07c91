"""Profiles on the clock of the logs: their steps, and idle time that falls on compiles."""

from job_rows import ZERO, S, compiled, job

from traceview.derive.job import job_tables

NS = 1_000_000_000


def trace(rank, seconds=100, **more):
    """A trace that begins with the first compile."""
    return {
        "rank": rank, "pid": 1, "name": f"worker{rank}.json", "stance": "compiled",
        "zero_ns": 1000 * ZERO, "span_ns": seconds * NS, **more,
    }  # fmt: skip


def ran(rank, start, seconds, **more):
    """Something that ran on the device."""
    return {
        "rank": rank, "stance": "compiled", "start_ns": start * NS, "duration_ns": seconds * NS,
        "category": "gemm", "name": "gemm", **more,
    }  # fmt: skip


def step(rank, number, start):
    return ran(rank, start, 10, name=f"ProfilerStep#{number}", category="mark")


def idle(**rows):
    return job_tables(job(**rows))["idle_on_compile"].to_dicts()


def test_idle_time_is_parted_by_who_compiled():
    (row,) = idle(
        compiles=[compiled(0, 10, 20), compiled(1, 20, 40)],
        traces=[trace(0)],
        kernels=[ran(0, 0, 5), ran(0, 3, 9), ran(0, 50, 50)],
    )
    assert (row["window_s"], row["idle_s"], row["basis"]) == (100, 38, "measured")
    assert (row["own_compile_s"], row["other_compile_s"]) == (18, 20)


def test_waiting_in_a_collective_is_idle():
    (row,) = idle(
        compiles=[compiled(0, 0, 1), compiled(1, 0, 40)],
        traces=[trace(0, seconds=40)],
        kernels=[ran(0, 0, 40, category="communication"), ran(0, 0, 2)],
    )
    assert (row["idle_s"], row["other_compile_s"]) == (38, 38)


def test_without_a_gpu_operators_are_the_work_and_marks_are_not():
    (row,) = idle(
        compiles=[compiled(0, 0, 60)],
        traces=[trace(0)],
        cpu_ops=[step(0, 3, 0), ran(0, 60, 40), ran(0, 0, 60, category="other")],
    )
    assert (row["idle_s"], row["own_compile_s"], row["basis"]) == (60, 60, "derived")


def test_a_trace_without_a_rank_or_a_clock_says_nothing():
    rows = {"compiles": [compiled(0, 0, 60)], "kernels": [ran(0, 0, 5)]}
    assert idle(traces=[trace(None)], **rows) == []
    assert idle(traces=[trace(0, zero_ns=None)], **rows) == []
    assert idle(traces=[trace(0), trace(0, name="another.json")], **rows) == []


def late(*compiles, traces=1):
    tables = job(
        compiles=compiles,
        traces=[trace(rank) for rank in range(traces)],
        cpu_ops=[step(rank, 8 + n, 10 * n) for rank in range(traces) for n in range(3)],
    )
    return job_tables(tables)["late_compiles"].to_dicts()


def test_steps_that_a_profile_names_count_for_ranks_without_one():
    first, second = late(compiled(0, 0, 1), compiled(1, 15, 1, "0/1"))
    assert (first["late_by"], first["step"], second["member"], second["step"]) == (
        "profiler_steps", 8, "1", 9,
    )  # fmt: skip
    assert second["started_us"] == ZERO + 15 * S


def test_before_a_profile_no_step_is_known():
    early = compiled(0, -50, 1)
    assert [row["compile_id"] for row in late(early, compiled(0, 25, 1, "0/1"))] == ["0/1"]
