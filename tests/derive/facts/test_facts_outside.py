"""What runs outside of compiled code, how the script ends, and where outputs go wrong."""

import pytest

from traceview.derive.facts.outputs import output_verdicts
from traceview.derive.facts.outside import (
    outside_work,
    script_ends,
    sparse_coalesces,
    step_shares,
)
from traceview.tables import Tables, from_rows
from traceview.torchtext import marks

FILE = "/u/train.py"


def made(**rows_by_table):
    return Tables(
        {
            name: from_rows(name, [{"pass": "cold", **row} for row in rows])
            for name, rows in rows_by_table.items()
        }
    )


def account(rank, **ms):
    at = {"rank": rank, "stance": "compiled", "clock": "host"}
    return [{**at, "category": name, "ms": value} for name, value in ms.items()]


def python(rank, line, ms):
    at = {"rank": rank, "stance": "compiled", "category": "python", "what": "Python"}
    return {**at, "file": FILE, "line": line, "ms": ms, "count": 1.0}


def test_work_is_each_ranks_own_and_the_largest_line_comes_first():
    tables = made(
        accounting=[*account(0, python=3.0, gemm=1.0), *account(1, python=1.0, gemm=1.0)],
        account_details=[python(0, 7, 1.0), python(0, 9, 2.0), python(1, 7, 1.0)],
    )
    found = outside_work(tables).select("rank", "kind", "line", "ms", "share").rows()
    assert found == [
        (0, "python", 9, 2.0, 0.5),
        (0, "python", 7, 1.0, 0.25),
        (1, "python", 7, 1.0, 0.5),
    ]


@pytest.mark.parametrize(("inside_ns", "whose"), [(1_000, None), (2_000_000, "SGD")])
def test_operators_are_an_optimizers_where_its_mark_holds_most_of_them(inside_ns, whose):
    """The mark in which the window ends is longer than the optimizer's step."""
    at = {"rank": 0, "stance": "compiled", "category": "gemm", "clock": "host"}
    mark = {"rank": 0, "stance": "compiled", "name": "Optimizer.step#SGD.step"}
    tables = made(
        accounting=[{**at, "kind": "busy", "ms": 2.0}],
        account_details=[{**at, "what": "aten::mm", "file": FILE, "line": 7, "ms": 2.0}],
        cpu_ops=[
            {**mark, "step": step, "duration_ns": inside_ns + own, "self_ns": own}
            for step, own in ((0, 1_000), (1, 400_000_000))
        ],
    )
    assert outside_work(tables)["what"].to_list() == [whose]


def test_an_operators_line_is_known_with_the_lines_that_call_it():
    at = {"rank": 0, "stance": "compiled", "category": "gemm", "clock": "host"}
    # 40 main() { 50: traceview's mark of the compiled call; 60 step() { 30 nudge() { 7, 8 } } }
    tree = [
        (0, None, f"{FILE}:40", "line"),
        (1, 0, f"{FILE}:50", "line"),
        (2, 1, f"{marks.OUR_CALL}0", "user_annotation"),
        (3, 0, f"{FILE}:60", "line"),
        (4, 3, "Optimizer.step", "user_annotation"),
        (5, 4, f"{FILE}:30", "line"),
        (6, 5, f"{FILE}:7", "line"),
        (7, 6, "aten::mm", "cpu_op"),
    ]
    window = {"rank": 0, "stance": "compiled", "tid": "1", "start_ns": 0, "duration_ns": 1}
    tables = made(
        accounting=[{**at, "kind": "busy", "ms": 2.0}],
        account_details=[{**at, "what": "aten::mm", "file": FILE, "line": 7, "ms": 2.0}],
        line_ops=[
            {**window, "op_id": op, "parent_id": parent, "name": name, "kind": kind}
            for op, parent, name, kind in tree
        ],
    )
    assert outside_work(tables)["callers"].to_list() == [[f"{FILE}:30", f"{FILE}:60"]]


def test_loading_without_marked_lines_has_a_time_and_no_place():
    tables = made(accounting=account(0, data_loading=2.0), account_details=[python(0, 7, 0.01)])
    (row,) = outside_work(tables).to_dicts()
    assert (row["kind"], row["file"], row["ms"], row["share"]) == ("loading", None, 2.0, 1.0)


def launching(what, line, ms, *, in_graph=False, category="idle_launch_bound"):
    at = {"rank": 0, "stance": "compiled", "category": category, "what": what, "ms": ms}
    return {**at, "file": line and FILE, "line": line, "in_graph": in_graph}


def test_what_the_device_waits_for_launches_of_eager_code_is_that_codes():
    kinds = {"elementwise": "busy", "idle_launch_bound": "idle"}
    accounts = [{**row, "kind": kinds[row["category"]], "clock": "device"}
                for row in account(0, elementwise=1.0, idle_launch_bound=9.0)]  # fmt: skip
    step = {"rank": 0, "stance": "compiled", "tid": "1", "name": "Optimizer.step#Lion.step"}
    line = {**step, "name": "train.py:9", "kind": "line", "file": FILE}
    tables = made(
        accounting=accounts,
        account_details=[
            launching("kernel", 9, 1.0, category="elementwise"),
            launching("aten::mul", 9, 2.0),
            launching("launch latency", 9, 1.5),
            launching("Python", 9, 0.5),
            launching("Optimizer.step#Lion.step", None, 0.25),
            launching("aten::norm", 20, 1.0),
            launching("Python", 30, 0.25),
            launching("aten::mm", 40, 3.5, in_graph=True),
        ],
        line_ops=[
            {**step, "start_ns": 10, "duration_ns": 50},
            {**line, "start_ns": 20, "duration_ns": 5, "line": 9},
            {**line, "start_ns": 70, "duration_ns": 5, "line": 20},
        ],
    )
    found = outside_work(tables).select("what", "line", "ms", "waits_ms", "share").rows()
    assert found == [
        ("Lion", 9, 5.0, 4.0, 0.5),
        (None, 20, 1.0, 1.0, 0.1),
        ("Lion", None, 0.25, 0.25, 0.025),
    ]


def test_without_a_profile_there_is_no_table():
    assert outside_work(made(accounting=[], account_details=[])) is None
    assert step_shares(made(step_counts=[])) is None
    assert output_verdicts(Tables()) is None
    assert script_ends(Tables()) is None


def test_a_backward_counts_for_its_own_rank():
    counts = {"stance": "compiled", "steps": 1, "step_ms": 10.0}
    backward = {"stance": "compiled", "step": 0, "name": "CompiledFunctionBackward"}
    block = {"rank": 1, "stance": "compiled", "pair_index": 0, "host_ms": 10.0}
    tables = made(
        step_counts=[{"rank": rank, **counts} for rank in (0, 1)],
        region_costs=[{"rank": rank, "share": 0.25} for rank in (0, 1)],
        cpu_ops=[{"rank": rank, **backward, "duration_ns": 2_000_000} for rank in (0, 1)],
        blocks=[{**block, "thread_ms": 6.0, "queued_ms": 1.0}],
    )
    first, second = step_shares(tables).to_dicts()
    assert first["compiled"] == second["compiled"] == pytest.approx(0.45)
    assert (first["waiting"], second["waiting"]) == (None, pytest.approx(0.3))
    assert second["queued"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("run", "calls", "by_itself", "after"),
    [
        ({"exit_kind": "exit", "exit_code": 0}, 2, True, 4.0),
        ({"exit_kind": "exit", "exit_code": 0}, 3, True, None),
        ({"exit_kind": "exit", "exit_code": 1}, 2, False, None),
        ({"exit_kind": "timeout"}, 2, False, None),
        ({"exit_kind": "exit", "exit_code": 0, "error_type": "ValueError"}, 2, False, None),
    ],
    ids=["ends", "not every call was recorded", "fails", "is cut short", "raises"],
)
def test_time_after_the_last_call(run, calls, by_itself, after):
    call = {"pid": 1, "region_id": 0, "outermost": True, "host_ms": 1000.0}
    tables = made(
        runs=[{"pid": 1, "started_us": 0.0, "wall_s": 10.0, **run}],
        regions=[{"pid": 1, "region_id": 0, "outermost_calls": calls}],
        calls=[{**call, "started_us": start} for start in (1e6, 5e6)],
    )
    (row,) = script_ends(tables).to_dicts()
    assert (row["by_itself"], row["after_calls_s"]) == (by_itself, after)


def test_the_first_wrong_stage_and_what_wavers_in_eager():
    region = {"pid": 1, "region_id": 0}
    checks = [
        ("eager_again", None, "b", False),
        ("compiled", "inductor", "a", False),
        ("fallback_random", "inductor", "a", False),
        ("ladder", "eager", "a", True),
        ("ladder", "aot_eager", "a", False),
        ("ladder", "inductor", "a", False),
    ]
    names = ("run", "backend", "output", "same")
    tables = made(
        output_trials=[{**region, "compared": True, "draws_random": True}],
        output_checks=[{**region, **dict(zip(names, row, strict=True))} for row in checks],
    )
    (row,) = output_verdicts(tables).to_dicts()
    assert (row["outcome"], row["judged_run"]) == ("differ", "fallback_random")
    assert (row["wrong_from"], row["ladder_agrees"]) == ("aot_eager", False)
    assert row["wavering"] == ["b"]


def coalesced(each_step, made_in_steps=0, **tables):
    """Four steps with so many ``aten::_coalesce`` of 1 ms, and sparse tensors made."""
    at = {"stance": "compiled", "duration_ns": 1_000_000}
    ops = [
        {**at, "name": "aten::_coalesce", "step": step}
        for step in range(4)
        for _ in range(each_step)
    ]
    ops += [{**at, "name": "aten::sparse_coo_tensor", "step": 0}] * made_in_steps
    ops += [{**at, "name": "aten::add", "step": step} for step in range(4)]
    line = {**at, "name": "aten::_coalesce", "file": FILE, "line": 7}
    return sparse_coalesces(made(cpu_ops=ops, line_ops=[line], **tables))


def test_a_sparse_tensor_is_coalesced_again_in_each_step():
    (row,) = coalesced(2).to_dicts()
    assert (row["line"], row["per_step"], row["ms"]) == (7, 2.0, 2.0)
    kernel = {
        "stance": "compiled",
        "cpu_op": "aten::_coalesce",
        "duration_ns": 3_000_000,
        "step": 0,
    }
    (row,) = coalesced(1, kernels=[kernel] * 4).to_dicts()
    assert row["ms"] == 3.0


def test_what_is_new_in_each_step_or_seldom_coalesced_is_not_coalesced_again():
    assert coalesced(1, made_in_steps=4).is_empty()
    assert coalesced(0).is_empty()
    assert sparse_coalesces(made(cpu_ops=[])) is None
