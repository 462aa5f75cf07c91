"""Pages touched for the first time have an effect of their own, taken from operators' time."""

import pytest
from effect_steps import HEAD, account, kernel

from traceview.derive.effects import effect_tables
from traceview.tables import Tables, from_rows

GROUP = {**HEAD, "group_id": 0, "kind": "fused", "matched": True}
#: At the machine's limits the eager sum needs 2 of its 8 ms, the eager product 5 of its 6 ms.
KERNELS = (
    kernel(0, "eager", "aten::add", 8.0, clock="host"),
    kernel(0, "eager", "aten::mm", 6.0, "gemm", clock="host"),
    kernel(0, "compiled", "cpp_fused_add_0", 1.0, "generated_pointwise", clock="host"),
    kernel(0, "compiled", "aten::mm", 6.0, "gemm", clock="host"),
)
LIMITS = (
    {"stance": "eager", "name": "aten::add", "ms": 8.0, "floor_ms": 2.0},
    {"stance": "eager", "name": "aten::mm", "ms": 6.0, "floor_ms": 5.0},
)


def waterfall(eager, compiled=0.0, *, profiled=None, cost=1.0):
    """Effect → its row, and the rows behind; ``eager`` and ``compiled`` faults a step."""
    busy = [
        account(row["stance"], row["category"], row["ms"], clock="host") for row in KERNELS
    ]  # fmt: skip
    counts = [
        {**HEAD, "stance": stance, "page_faults": timed,
         "profiled_page_faults": timed if profiled is None else profiled}
        for stance, timed in (("eager", eager), ("compiled", compiled))
    ]  # fmt: skip
    timed = {**HEAD, "clock": "host", "eager_ms": 14.0, "compiled_ms": 7.0}
    fault = {"device": "cpu", "kind": "page_fault", "value": cost, "unit": "us"}
    tables = Tables({
        "speedups": from_rows("speedups", [timed]),
        "accounting": from_rows("accounting", busy),
        "matched_kernels": from_rows("matched_kernels", KERNELS),
        "match_groups": from_rows("match_groups", [GROUP]),
        "kernel_limits": from_rows("kernel_limits", [{**HEAD, **row} for row in LIMITS]),
        "step_counts": from_rows("step_counts", counts),
        "ceilings": from_rows("ceilings", [] if cost is None else [{**HEAD, **fault}]),
    })  # fmt: skip
    found = effect_tables(tables)
    rows = found["waterfall"].to_dicts()
    assert sum(row["ms"] for row in rows) == pytest.approx(7.0 - 14.0)
    return {row["effect"]: row for row in rows}, found["waterfall_rows"].to_dicts()


def test_counted_faults_at_the_measured_cost_are_no_fusion():
    found, rows = waterfall(3500.0)
    faults = found["page_faults"]
    assert (faults["ms"], faults["eager_ms"]) == (pytest.approx(-3.5), pytest.approx(3.5))
    assert (faults["compiled_ms"], faults["confidence"]) == (None, "derived")
    said = "pages touched for the first time: 3,500 → 0, 1 µs each"
    assert said in [row["what"] for row in rows]


def test_operators_give_what_they_take_above_their_limits():
    found, _ = waterfall(3500.0)
    # 6 ms of the sum and 1 ms of the product lie above: half of each is gone.
    assert found["fusion"]["eager_ms"] == pytest.approx(8.0 - 3.0)
    assert found["other_kernels"]["eager_ms"] == pytest.approx(6.0 - 0.5)


def test_more_than_that_is_taken_from_all_but_never_more_than_there_is():
    found, _ = waterfall(10_500.0)
    assert found["page_faults"]["ms"] == pytest.approx(-10.5)
    assert found["fusion"]["eager_ms"] == pytest.approx(2.0 / 2)
    found, _ = waterfall(1_000_000.0)
    assert found["page_faults"]["eager_ms"] == pytest.approx(14.0)


def test_faults_of_both_stances_stand_beside_each_other():
    faults = waterfall(3000.0, 500.0)[0]["page_faults"]
    assert faults["ms"] == pytest.approx(0.5 - 3.0)
    assert faults["compiled_ms"] == pytest.approx(0.5)


def test_what_only_the_profiler_or_only_the_blocks_saw_is_not_claimed():
    assert waterfall(3000.0, profiled=1000.0)[0]["page_faults"]["ms"] == pytest.approx(-1.0)
    assert "page_faults" not in waterfall(0.0, profiled=20.0)[0]


@pytest.mark.parametrize(
    ("eager", "cost"), [(None, 1.0), (3500.0, None), (0.5, 1.0)], ids=["count", "cost", "few"]
)
def test_without_evidence_there_is_no_such_effect(eager, cost):
    found, _ = waterfall(eager, cost=cost)
    assert "page_faults" not in found
    assert found["fusion"]["ms"] == pytest.approx(1.0 - 8.0)
