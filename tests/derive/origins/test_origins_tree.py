"""What stands around an operator, and which forward a backward belongs to."""

import polars as pl
import pytest

from traceview.derive.origins.tree import forward_rows, nearest, with_context
from traceview.tables import from_rows
from traceview.torchtext import marks


def ops(*rows):
    """Table cpu_ops; a row is (name, parent row or None, more columns)."""
    return from_rows("cpu_ops", [
        {"pass": "cold", "stance": "eager", "step": 0, "op_id": n, "name": name, "kind": "cpu_op",
         "category": "other", "tid": "1", "start_ns": n, "parent_id": parent, **more}
        for n, (name, parent, more) in enumerate(rows)
    ])  # fmt: skip


def test_the_nearest_row_is_found_over_any_number_of_levels():
    above = pl.Series([None, *range(999)], dtype=pl.UInt32)
    flags = pl.Series([n in (0, 400) for n in range(1000)])
    found = nearest(flags, above)
    assert (found[0], found[399], found[400], found[999]) == (0, 0, 400, 400)
    assert nearest(pl.Series([False, False]), pl.Series([None, 0], dtype=pl.UInt32)).to_list() == [
        None, None,
    ]  # fmt: skip


def test_marks_and_autograd_are_not_an_operators_outermost():
    mark = {"kind": "user_annotation", "category": "mark"}
    found = with_context(
        ops(
            ("traceview region 0", None, mark),
            ("aten::linear", 0, {}),
            ("aten::addmm", 1, {}),
            (marks.GRAPH + "f1 ##", 0, {"category": "overhead", "kind": "user_annotation"}),
            ("mylib::shift", 3, {}),
            (marks.AUTOGRAD + "MmBackward0", None, {}),
            ("MmBackward0", 5, {}),
            ("aten::mm", 6, {}),
        )
    )
    assert found["top_row"].to_list() == [None, 1, 1, None, 4, None, None, 7]
    assert found["graph_row"].to_list() == [None, None, None, 3, 3, None, None, None]
    assert found["backward_row"].to_list() == [*[None] * 5, 5, 5, 5]


def test_a_backward_belongs_to_the_last_operator_of_its_number():
    found = with_context(
        ops(
            ("aten::view", None, {"sequence": 7}),  # made no function: the next has the same number
            ("aten::linear", None, {"sequence": 7}),
            ("aten::addmm", 1, {"sequence": 7}),
            (marks.AUTOGRAD + "AddmmBackward0", None, {"sequence": 7}),
            ("aten::mm", 3, {}),
            (marks.AUTOGRAD + "torch::autograd::AccumulateGrad", None, {}),
            ("aten::add_", 5, {}),
        )
    )
    assert forward_rows(found).to_list() == [None, None, None, 2, 2, None, None]


@pytest.mark.parametrize("rows", [(), (("aten::add", 99, {}),)])
def test_lost_parents_are_no_parents(rows):
    found = with_context(ops(*rows))
    assert found.height == len(rows)
    assert found["parent_row"].null_count() == len(rows)
