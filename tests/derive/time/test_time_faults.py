"""Pages that only profiled steps touch for the first time are the profiler's own cost."""

import pytest

from traceview.derive.profile import profile_tables
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "stance": "eager"}
#: A step of 100 ms: a product of 60, a sum of 30, Python around them.
OPS = (
    ("traceview step 4", "mark", 0, 100, 0, None),
    ("aten::mm", "gemm", 5, 60, 60, 0),
    ("aten::add", "elementwise", 65, 30, 30, 0),
)


def accounted(timed_ms, timed, profiled, cost=1.0, beside_ms=None, queued=None):
    """Category → ms, the row of step_counts and the notes; pages touched in a step.

    ``queued``: the part of all blocks in which the thread had no processor.
    """
    ops = [
        {**HEAD, "step": 0, "tid": "1", "op_id": n, "name": name, "category": category,
         "start_ns": start * 10**6, "duration_ns": duration * 10**6, "self_ns": own * 10**6,
         "parent_id": parent}
        for n, (name, category, start, duration, own, parent) in enumerate(OPS)
    ]  # fmt: skip
    window = {**HEAD, "purpose": "time", "steps": 1, "page_faults": profiled}
    block = {
        **HEAD,
        "pair_index": 0,
        "steps": 1,
        "page_faults": timed,
        "host_ms": 1.0,
        "queued_ms": queued,
    }
    beside = {**block, "pair_index": None, "duration_ms": beside_ms}
    fault = {"pass": "cold", "device": "cpu", "kind": "page_fault", "value": cost, "unit": "us"}
    found = profile_tables(
        Tables({
            "cpu_ops": from_rows("cpu_ops", ops),
            "blocks": from_rows("blocks", [block] if beside_ms is None else [block, beside]),
            "profile_windows": from_rows("profile_windows", [window]),
            "ceilings": from_rows("ceilings", [] if cost is None else [fault]),
        }),
        {"eager": timed_ms},
    )  # fmt: skip
    (counts,) = found["step_counts"].to_dicts()
    ms = {row["category"]: row["ms"] for row in found["accounting"].to_dicts()}
    assert sum(ms.values()) == pytest.approx(timed_ms)
    notes = found["notes"].to_dicts() if "notes" in found else []
    return ms, counts, notes


def test_operators_lose_what_the_profilers_faults_took_by_their_time():
    ms, counts, _ = accounted(82.0, timed=1000, profiled=19_002)
    assert counts["profiler_faults_ms"] == pytest.approx(18.0, abs=0.01)
    assert ms["gemm"] == pytest.approx(60 - 12, abs=0.01)
    assert ms["elementwise"] == pytest.approx(30 - 6, abs=0.01)
    assert ms["python"] == pytest.approx(10)
    assert ms["unexplained"] == pytest.approx(0, abs=0.01)


def test_no_more_than_the_window_is_longer_than_its_step():
    ms, counts, _ = accounted(94.0, timed=0, profiled=50_000)
    assert counts["profiler_faults_ms"] == pytest.approx(6.0, abs=0.01)
    assert ms["unexplained"] == pytest.approx(0, abs=0.01)


def test_what_was_counted_comes_before_the_machines_speed():
    ms, counts, _ = accounted(82.0, timed=0, profiled=10_003, beside_ms=110.0)
    assert counts["profiler_faults_ms"] == pytest.approx(10.0, abs=0.01)
    assert ms["machine_speed"] == pytest.approx(82.0 - 90.0, abs=0.01)


def test_what_the_faults_cannot_have_taken_stays_unexplained():
    ms, counts, _ = accounted(70.0, timed=0, profiled=10_000)
    assert counts["profiler_faults_ms"] == pytest.approx(10.0, abs=0.01)
    assert ms["unexplained"] == pytest.approx(-20.0, abs=0.1)


def test_it_is_said_in_words():
    (note,) = accounted(82.0, timed=1000, profiled=19_002)[2]
    assert note["what"].startswith("18 ms of the profiled eager step are the profiler's own")
    assert note["why"].startswith("18,002 more memory pages")
    assert accounted(99.5, timed=0, profiled=50_000)[2] == []  # half a percent is not worth it


@pytest.mark.parametrize(
    ("timed", "profiled", "cost"),
    [(None, 9000, 1.0), (0, None, 1.0), (0, 9000, None), (9000, 9000, 1.0), (0, 2, 1000.0)],
    ids=["uncounted", "unprofiled", "cost", "same", "the events' own"],
)
def test_without_evidence_operators_keep_their_time(timed, profiled, cost):
    ms, counts, notes = accounted(82.0, timed, profiled, cost)
    assert (counts["profiler_faults_ms"], notes) == (None, [])
    assert ms["gemm"] == pytest.approx(60.0, abs=0.01)
    assert ms["unexplained"] == pytest.approx(-18.0, abs=0.1)


def test_blocks_that_waited_for_a_processor_are_the_machines_speed():
    ms, _, _ = accounted(300.0, timed=0, profiled=0, beside_ms=320.0, queued=0.75)
    assert ms["machine_speed"] == pytest.approx(300.0 - 100.0, abs=0.01)
    assert ms["unexplained"] == pytest.approx(0, abs=0.01)
    # No more than they waited.
    ms, _, _ = accounted(300.0, timed=0, profiled=0, beside_ms=320.0, queued=0.1)
    assert ms["machine_speed"] == pytest.approx(300.0 - 270.0, abs=0.01)
    assert ms["unexplained"] == pytest.approx(270.0 - 100.0, abs=0.01)
