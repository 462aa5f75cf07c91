"""Groups of eager and compiled kernels in the diagnosis, and how much of the time they cover."""

import pytest
from factories import REPLACED, matched, tables_of

from traceview.diagnosis.explained import MOST_GROUP_KERNELS, MOST_GROUPS, matching
from traceview.diagnosis.explanation import Matching
from traceview.diagnosis.focus import Focus

FOCUS = Focus("cold", None, 1)


def found(*compiled, tables=None):
    return matching(tables_of(**(tables or matched(*compiled))), FOCUS)


def test_a_group_with_its_kernels_eager_first_and_dearest_first():
    (group,) = found(REPLACED).groups
    assert (group.kind, group.matched, group.how) == ("fused", True, "provenance")
    assert (group.eager_kernels, group.eager_ms) == (2.0, 0.2)
    assert (group.compiled_kernels, group.compiled_ms) == (1.0, 0.05)
    assert [(kernel.stance, kernel.name, kernel.ms) for kernel in group.kernels] == [
        ("eager", "add_kernel", 0.12),
        ("eager", "gelu_kernel", 0.08),
        ("compiled", "triton_poi_fused_add_gelu_0", 0.05),
    ]


def test_calls_of_one_kernel_at_one_line_are_one():
    (group,) = found(REPLACED, REPLACED | {"ops": ["aten.tanh"]}, REPLACED | {"line": 8}).groups
    here, there = (kernel for kernel in group.kernels if kernel.stance == "compiled")
    assert (here.line, here.count, here.ms) == (7, 2.0, 0.1)
    assert here.ops == ("aten.add", "aten.gelu", "aten.tanh")
    assert (there.line, there.count) == (8, 1.0)


def test_the_shares_are_of_each_stances_own_time():
    tables = matched(REPLACED)
    tables["match_groups"] += [
        {"pass": "cold", "group_id": 1, "kind": "eager_only", "matched": False, "eager_ms": 0.6,
         "eager_kernels": 1.0, "compiled_ms": 0.0, "compiled_kernels": 0.0},
        {"pass": "cold", "group_id": 2, "kind": "compiled_only", "matched": False, "eager_ms": 0.0,
         "eager_kernels": 0.0, "compiled_ms": 0.15, "compiled_kernels": 1.0},
    ]  # fmt: skip
    lost = {"group_id": 2, "ms": 0.15, "ops": [], "how": None, "name": "copy_kernel"}
    tables["matched_kernels"].append(REPLACED | lost)
    told = found(tables=tables)
    assert told.eager_share == pytest.approx(0.25)
    assert told.compiled_share == told.sourced_share == pytest.approx(0.25)


def test_one_stance_alone_matches_nothing_and_says_no_share():
    tables = matched(REPLACED, eager_kernels=0.0, eager_ms=0.0, matched=False)
    told = found(tables=tables)
    assert (told.eager_share, told.compiled_share) == (None, None)
    assert found(tables={"match_groups": None}) == Matching()


def test_a_report_has_room_for_so_many():
    tables = matched(*(REPLACED | {"name": f"k{n}", "ms": 0.01 * n} for n in range(1, 50)))
    (first,) = tables["match_groups"]
    tables["match_groups"] = [first | {"group_id": n} for n in range(MOST_GROUPS + 7)]
    told = found(tables=tables)
    assert (len(told.groups), told.left_out) == (MOST_GROUPS, 7)
    shown = [kernel.name for kernel in told.groups[0].kernels if kernel.stance == "compiled"]
    assert (len(shown), shown[0]) == (MOST_GROUP_KERNELS, "k49")
