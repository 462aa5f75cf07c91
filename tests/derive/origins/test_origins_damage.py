"""Windows that lost a part: what is left is told, every kernel once, and nothing breaks."""

import polars as pl
import pytest

from traceview.derive.origins import origin_tables
from traceview.derive.windows import windows
from traceview.tables import Tables

LINKS = ("cpu_op_id", "cpu_op", "launch_start_ns", "graph_key", "compile_id", "correlation")
AROUND = ("parent_id", "sequence", "region", "graph_key", "compile_id", "input_types")


def without(frame, columns):
    return frame.with_columns(pl.lit(None, dtype=frame.schema[c]).alias(c) for c in columns)


def of_stance(tables, stance):
    return {name: tables[name].filter(stance=stance) for name in ("cpu_ops", "kernels")}


DAMAGE = {
    "eager alone": lambda t: of_stance(t, "eager"),
    "compiled alone": lambda t: of_stance(t, "compiled"),
    "no calls": lambda t: {"kernel_calls": t["kernel_calls"].clear()},
    "no graphs": lambda t: {"graphs": t["graphs"].clear()},
    "calls of nothing": lambda t: {
        "kernel_calls": without(t["kernel_calls"], ("kernel_name", "ops", "user_lines", "order"))
    },
    "no operators": lambda t: {"cpu_ops": t["cpu_ops"].filter(pl.col("kind") != "cpu_op")},
    "no links": lambda t: {"kernels": without(t["kernels"], LINKS)},
    "no context": lambda t: {"cpu_ops": without(t["cpu_ops"], AROUND)},
    "its own parent": lambda t: {"cpu_ops": t["cpu_ops"].with_columns(parent_id="op_id")},
    "several processes": lambda t: {"cpu_ops": pl.concat([t["cpu_ops"], t["cpu_ops"]])},
    "no calls of regions": lambda t: {"regions": without(t["regions"], ("first_call_stack",))},
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("run", ["gpu-reduce_overhead", "gpu-cg_skip_mutation"])
def test_every_kernel_is_in_one_group_whatever_is_lost(tables_of, run, damage):
    whole = tables_of(run)
    tables = Tables({name: whole[name] for name in whole})
    for name, frame in DAMAGE[damage](whole).items():
        tables.put(name, frame)
    found = windows(tables)
    made = origin_tables(tables, found)
    for window in found:
        mine = made["matched_kernels"].filter(stance=window.stance)
        ns = window.kernels["duration_ns"].sum()
        assert mine["ms"].sum() == pytest.approx(window.ms_per_step(ns))
        assert mine["count"].sum() == pytest.approx(window.per_step(window.kernels.height))
    stances = {window.stance for window in found}
    assert made["match_groups"]["matched"].any() <= (stances == {"eager", "compiled"})


def test_an_all_eager_run_is_the_other_side_of_one_that_had_no_time_for_it(tables_of):
    whole = tables_of("gpu-pointwise")
    tables = Tables({name: whole[name] for name in whole})
    for name in ("cpu_ops", "kernels", "kernel_launches"):
        other = pl.when(stance="eager").then(pl.lit("baseline")).otherwise("pass")
        tables.put(name, whole[name].with_columns(other.alias("pass")))
    made = origin_tables(tables, windows(tables))
    (group,) = made["match_groups"].to_dicts()
    assert (group["pass"], group["matched"], group["eager_kernels"]) == ("cold", True, 22)


def test_without_windows_there_are_no_tables():
    assert origin_tables(Tables(), []) == {}
