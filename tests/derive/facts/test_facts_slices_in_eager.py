"""Gradients of slices that a compiled function gives out, which eager code adds."""

import polars as pl
import pytest

from traceview.derive.facts.slice_gradients import slice_gradients
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None, "stance": "compiled"}
ENGINE = "autograd::engine::evaluate_function: SelectBackward0"


def tables(count, *, device, views=16):
    """Two steps; in each ``count`` gradients, of 0.2 ms of the host and 0.5 ms of the device."""
    ops, kernels = [], []
    for number in range(2 * count):
        step, first = number // count, 10 * number + 1
        names = (ENGINE, "SelectBackward0", "aten::select_backward", "aten::copy_")
        for depth, name in enumerate(names):
            above = first + depth - 1 if depth else None
            ops.append({
                **HEAD, "step": step, "op_id": first + depth, "parent_id": above, "name": name,
                "depth": depth, "duration_ns": 200_000, "kind": "cpu_op",
                "concrete_inputs": '["", "[16, 64]", "0", "3"]' if depth == 2 else None,
            })  # fmt: skip
        kernels.append({**HEAD, "step": step, "cpu_op_id": first + 3, "duration_ns": 500_000})
    other = {**HEAD, "step": 0, "op_id": 0, "name": "aten::mm", "duration_ns": 900_000}
    ops.append({**other, "depth": 0, "kind": "cpu_op"})
    kernels.append({**HEAD, "step": 0, "cpu_op_id": 0, "duration_ns": 900_000})
    view = {"pass": "cold", "rank": None, "views": views, "user_line": "/a.py:7"}
    counts = {**HEAD, "timed_step_ms": 20.0, "step_ms": 20.0}
    matched = {**HEAD, "name": "gemm", "category": "gemm", "ms": 1.0}
    return Tables({
        "matched_kernels": from_rows("matched_kernels", [matched]),
        "graphs": from_rows("graphs", []),
        "kernel_groups": from_rows("kernel_groups", []),
        "generated_kernels": from_rows("generated_kernels", []),
        "kernel_calls": from_rows("kernel_calls", []),
        "cpu_ops": from_rows("cpu_ops", ops),
        "kernels": from_rows("kernels", kernels if device else []),
        "output_views": from_rows("output_views", [view]),
        "step_counts": from_rows("step_counts", [counts]),
    })  # fmt: skip


@pytest.mark.parametrize(("device", "ms"), [(True, 8.0), (False, 3.2)])
def test_what_they_take_and_where_they_are(device, ms):
    (row,) = slice_gradients(tables(16, device=device)).to_dicts()
    assert (row["slices"], row["elements"], row["dim"], row["single"]) == (16, 1024, 0, True)
    assert (row["kernel_name"], row["user_lines"]) == ("SelectBackward0", ["/a.py:7"])
    assert row["ms"] == pytest.approx(ms)
    assert row["host_ms"] == pytest.approx(3.2)
    assert row["wasted_ms"] == pytest.approx(ms * 15 / 16)


@pytest.mark.parametrize(("count", "views"), [(3, 16), (16, 3)])
def test_few_slices_and_those_that_no_compiled_function_gives_out_are_none(count, views):
    assert slice_gradients(tables(count, device=True, views=views)).is_empty()


def test_ranks_that_number_their_operators_alike_are_kept_apart():
    """Each rank's own trace begins at operator 0."""
    one = tables(16, device=True)
    ranks = [pl.lit(rank, dtype=pl.Int32) for rank in (0, 1)]
    both = Tables({
        name: pl.concat(one[name].with_columns(rank=rank) for rank in ranks)
        for name in (
            "matched_kernels", "graphs", "kernel_groups", "generated_kernels", "kernel_calls",
            "cpu_ops", "kernels", "output_views", "step_counts",
        )
    })  # fmt: skip
    found = slice_gradients(both)
    assert found["rank"].to_list() == [0, 1]
    assert found["ms"].to_list() == pytest.approx([8.0, 8.0])
