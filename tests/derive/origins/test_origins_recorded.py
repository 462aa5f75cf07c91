"""Recorded runs: how much of the time is matched, and matches that are known from the scripts."""

import json
from pathlib import Path

import polars as pl
import pytest

from traceview.derive.origins.lines import op_sources, region_lines, traced_lines
from traceview.derive.origins.work import operators
from traceview.derive.windows import windows

RUNS = Path(__file__).resolve().parents[3] / "fixtures" / "runs"
INDEX = json.loads((RUNS / "INDEX.json").read_text())
#: Those with a label are of other versions of torch: see tests/rules/test_rules_versions.py.
RECORDED = sorted(name for name, line in INDEX.items() if "label" not in line)
#: In these the script ended, or failed, before both stances had been profiled.
NOT_PROFILED = {
    "bad-cap_nothing_compiled_dropped", "bad-cap_nothing_compiled_method",
    "bad-cap_bad_args_backend", "bad-cap_bad_args_mode_options", "bad-cap_bad_args_option",
    "bad-cap_customop_no_fake", "bad-cap_toolchain_missing", "gpu-cudagraph_overwritten",
    "bad-cap_compile_crash", "bad-ct_repeated_blocks", "good-ct_repeated_blocks",
    "bad-cap_no_compile_call", "healthy-worker_threads",
    "bad-cap_compile_crash_dynamo", "bad-cap_fails_in_eager", "bad-cap_fails_in_eager_explain",
    "bad-cap_customop_no_autograd", "bad-cap_fails_compiled",
    "bad-cap_nothing_compiled_generator",
}  # fmt: skip


def share(tables, stance):
    groups = tables["match_groups"]
    return groups.filter("matched")[f"{stance}_ms"].sum() / groups[f"{stance}_ms"].sum()


#: Scripts in which a stance does work that the other has nothing of, on purpose; in the last
#: three the wrapper copies inputs to the device, every step compiles again, and the window of each
#: holds other branches.
UNLIKE = {
    "truth-gpu-compiled_extra", "truth-gpu-eager_extra", "truth-gpu-cudagraph_inputs",
    "truth-gpu-dead_code", "gpu-misaligned_copy", "bad-acc_backend_bug_custom_op",
    "truth-gpu-duplicate_matmul", "truth-cpu-operator_compiled", "truth-cpu-operator_dead",
    "truth-cpu-operator_eager", "truth-cpu-page_faults",
    "gpu-cg_skip_cpu", "bad-ct_repeated_same_compile", "bad-rc_dim_specialized_branch",
    "bad-cap_cached_function", "bad-cap_customop_no_autograd_library",
    "bad-acc_dropped_operator",
    "gpu-catalog_scorer",  # as truth-gpu-cudagraph_inputs: a cudagraph copies inputs
    # A cudagraph copies inputs, and two products in it are without a match.
    "gpu-cg_moved_input", "gpu-cg_moved_input_good",
    # In eager an operator's line saves a tensor on the host, in compiled steps the graph does.
    "gpu-saved_on_host",
    "gpu-launch_bound_cond",  # eager has no graph that the reading of a predicate is part of
    # Eager computes flex_attention in operators of torch's own lines.
    "bad-ind_dense_flex_attention", "good-ind_dense_flex_attention",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["torch2_6-healthy-pointwise", "torch2_6-bad-gb_fragmented", "torch2_8-bad-gb_item"],
)
def test_kernels_of_graphs_that_older_torch_does_not_mark_are_matched(tables_of, name):
    """Neither provenance nor the mark of a graph's call is there: the kernel's name has to do."""
    tables = tables_of(name)
    assert share(tables, "eager") >= 0.9
    assert share(tables, "compiled") >= 0.9
    generated = tables["matched_kernels"].filter(
        pl.col("category").str.starts_with("generated_"), stance="compiled"
    )
    assert generated.height
    assert generated["graph_key"].null_count() == generated["line"].null_count() == 0


@pytest.mark.parametrize(
    "name", [name for name in RECORDED if name not in NOT_PROFILED and name not in UNLIKE]
)
def test_nine_tenths_of_both_stances_are_matched(tables_of, name):
    tables = tables_of(name)
    for stance in ("eager", "compiled"):
        assert share(tables, stance) >= 0.9


@pytest.mark.parametrize("name", sorted(NOT_PROFILED & {*RECORDED}))
def test_what_was_not_profiled_has_no_groups(tables_of, name):
    assert tables_of(name)["match_groups"].is_empty()


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("gpu-")])
def test_groups_hold_every_kernel_once(tables_of, name):
    tables = tables_of(name)
    rows = tables["matched_kernels"].group_by("stance", "group_id").agg(
        pl.col("ms").sum(), pl.col("count").sum()
    )  # fmt: skip
    groups = tables["kernel_groups"].group_by("stance").agg(
        pl.col("ms").sum(), pl.col("count").sum()
    )  # fmt: skip
    for stance, ms, count in groups.iter_rows():
        mine = rows.filter(stance=stance)
        assert mine["ms"].sum() == pytest.approx(ms)
        assert mine["count"].sum() == pytest.approx(count)
        both = mine.join(tables["match_groups"], on="group_id")
        assert both["ms"].to_list() == pytest.approx(both[f"{stance}_ms"].to_list())


def test_pointwise_operators_became_one_kernel(tables_of):
    tables = tables_of("gpu-pointwise")
    (group,) = tables["match_groups"].to_dicts()
    assert (group["kind"], group["eager_kernels"], group["compiled_kernels"]) == ("fused", 22, 1)
    assert group["eager_ms"] > 5 * group["compiled_ms"]
    assert {line.rpartition("/")[2] for line in group["lines"]} == {
        f"pointwise.py:{n}" for n in (20, 21, 22, 23)
    }  # fmt: skip
    (kernel,) = tables["matched_kernels"].filter(stance="compiled").to_dicts()
    assert kernel["name"] == "triton_poi_fused_add_clamp_mul_sigmoid_tanh_0"
    assert kernel["how"] == "provenance"
    assert (kernel["compile_id"], kernel["aot_id"]) == ("0/0", "0_inference")
    assert kernel["source_nodes"][:2] == ["mul", "y"]


@pytest.fixture
def transformer(tables_of):
    """(groups, kernels) of the training step of a six-layer decoder."""
    tables = tables_of("gpu-transformer_training")
    return tables["match_groups"], tables["matched_kernels"]


def group_of(transformer, condition):
    """The one group that holds the kernels for which ``condition`` holds."""
    groups, kernels = transformer
    (number,) = kernels.filter(condition)["group_id"].unique()
    return groups.filter(group_id=number).row(0, named=True), kernels.filter(group_id=number)


OPS = pl.col("ops").list
COMPILED, EAGER = (pl.col("stance") == name for name in ("compiled", "eager"))


def test_the_heads_products_are_matched_forward_and_backward(transformer):
    head = COMPILED & (pl.col("line") == 47) & (pl.col("category") == "gemm")
    tokens, hidden, words = 4096, 512, 8192
    shapes = {
        "0_forward": [f"{tokens}x{words}, {hidden}"],
        "0_backward": [f"{hidden}x{tokens}, {words}", f"{hidden}x{words}, {tokens}"],
    }
    for aot_id, known in shapes.items():
        for shape in known:
            mine = head & (pl.col("aot_id") == aot_id) & (pl.col("shape") == shape)
            group, kernels = group_of(transformer, mine)
            assert (group["kind"], group["matched"], group["shape"]) == ("library", True, shape)
            assert group["eager_kernels"] == group["compiled_kernels"]
            assert (set(kernels["cpu_op"]), set(kernels["line"])) == ({"aten::mm"}, {47})
            assert set(kernels.filter(COMPILED)["aot_id"]) == {aot_id}


def test_products_of_other_lines_and_shapes_are_apart(transformer):
    _, kernels = group_of(transformer, EAGER & (pl.col("cpu_op") == "aten::addmm")
                          & (pl.col("line") == 27))  # fmt: skip
    assert set(kernels["line"]) == {27}
    assert kernels.filter(COMPILED)["count"].sum() == kernels.filter(EAGER)["count"].sum() == 6
    assert set(kernels["category"]) == {"gemm"}
    _, kernels = transformer
    mlp = kernels.filter((pl.col("line") == 31) & (pl.col("cpu_op") == "aten::addmm"))
    assert mlp.group_by("group_id").agg(pl.col("shape").unique())["shape"].list.len().max() == 1
    assert mlp["group_id"].n_unique() == 2  # up and down


def test_layer_norm_is_in_the_kernels_that_replaced_it(transformer):
    norm = pl.col("cpu_op") == "aten::native_layer_norm"
    group, kernels = group_of(transformer, EAGER & norm)
    assert group["kind"] == "fused"
    generated = kernels.filter(COMPILED)
    assert generated["category"].str.starts_with("generated_").all()
    assert generated["ops"].list.contains("aten.native_layer_norm").sum() >= 13
    assert set(generated["aot_id"]) == {"0_forward"}


def test_an_activation_is_apart_from_the_norm_of_its_line(transformer):
    group, kernels = group_of(transformer, EAGER & (pl.col("cpu_op") == "aten::gelu"))
    assert (group["eager_kernels"], group["compiled_kernels"]) == (6, 6)
    assert set(kernels.filter(COMPILED)["name"]) == {"triton_poi_fused_gelu_view_8"}
    assert set(kernels["line"]) == {31}


def test_backward_norms_are_with_the_backward_of_their_lines(transformer):
    norm = pl.col("cpu_op") == "aten::native_layer_norm_backward"
    _, kernels = group_of(transformer, EAGER & norm)
    assert set(kernels.filter(COMPILED)["aot_id"]) == {"0_backward"}
    assert set(kernels.filter(norm)["line"]) == {27, 31, 47}


def test_attention_is_attention_with_its_memset(transformer):
    attention = pl.col("cpu_op") == "aten::_cudnn_attention_forward"
    group, kernels = group_of(transformer, EAGER & attention)
    assert (group["kind"], group["eager_kernels"]) == ("library", group["compiled_kernels"])
    assert set(kernels["line"]) == {29}
    assert "memset" in set(kernels["category"])


def test_the_optimizer_is_the_same_in_both(transformer):
    group, kernels = group_of(transformer, pl.col("cpu_op") == "aten::_fused_adamw_")
    assert (group["kind"], group["eager_kernels"]) == ("same", group["compiled_kernels"])
    assert kernels["graph_key"].null_count() == kernels.height


def test_no_generated_kernel_is_untraced(transformer):
    _, kernels = transformer
    generated = kernels.filter(COMPILED & pl.col("category").str.starts_with("generated_"))
    assert set(generated["how"]) == {"provenance"}
    assert generated["source_nodes"].list.len().min() > 0
    assert generated["line"].null_count() == 0


def test_a_copy_to_the_device_in_a_graph_is_the_one_that_eager_makes(tables_of):
    matched = tables_of("gpu-radar_clutter")["matched_kernels"]
    copies = matched.filter(pl.col("name").str.contains("^Memcpy HtoD"))
    assert copies.select("stance", "line").rows() == [("eager", 22), ("compiled", 22)]
    assert copies["group_id"].n_unique() == 1


def test_a_replayed_graphs_kernels_are_known_by_order_and_name(tables_of):
    tables = tables_of("gpu-reduce_overhead")
    kernels = tables["matched_kernels"].filter(stance="compiled")
    assert dict(kernels.group_by("how").agg(pl.col("count").sum()).iter_rows()) == {
        "provenance": 25, "order": 24, None: 1,
    }  # fmt: skip
    copied = kernels.filter(pl.col("how").is_null()).row(0, named=True)
    assert copied["cpu_op"] == "aten::_foreach_copy_"  # of inputs, to where they were recorded
    group = tables["match_groups"].filter(group_id=copied["group_id"]).row(0, named=True)
    assert (group["kind"], group["matched"]) == ("compiled_only", False)
    products = kernels.filter(category="gemm")
    assert (products["count"].sum(), set(products["line"])) == (24, {21})
    assert set(products["ops"].list.first()) == {"aten.addmm"}


def test_a_template_with_its_epilogue_stands_for_the_product_and_the_activation(tables_of):
    tables = tables_of("gpu-autotuned_template")
    (group,) = tables["match_groups"].to_dicts()
    assert group["kind"] == "fused"
    eager = tables["matched_kernels"].filter(stance="eager")
    assert set(eager["cpu_op"]) == {"aten::addmm", "aten::gelu"}


def unmatched(tables, stance):
    groups = tables["match_groups"].filter(~pl.col("matched"))
    kernels = tables["matched_kernels"].filter(stance=stance)
    return kernels.join(groups, on="group_id", how="semi").sort("ms", descending=True)


@pytest.mark.skipif("truth-gpu-compiled_extra" not in RECORDED, reason="not recorded")
def test_work_of_one_stance_alone_has_no_partner(tables_of):
    (extra,) = unmatched(tables_of("truth-gpu-compiled_extra"), "compiled").to_dicts()
    assert (extra["category"], extra["cpu_op"]) == ("gemm", "aten::mm")
    tables = tables_of("truth-gpu-duplicate_matmul")
    once = unmatched(tables, "eager").row(0, named=True)  # forward: written twice, computed once
    assert (once["cpu_op"], once["how"]) == ("aten::mm", "line")
    copies = unmatched(tables_of("truth-gpu-cudagraph_inputs"), "compiled")
    assert set(copies["cpu_op"]) == {"aten::_foreach_copy_"}


@pytest.mark.parametrize("name", ["gpu-transformer_training", "gpu-launch_bound"])
def test_the_traced_graphs_lines_are_those_that_the_lines_window_saw(tables_of, name):
    tables = tables_of(name)
    by_stance = {window.stance: window for window in windows(tables)}
    eager, compiled = (operators(by_stance[stance]) for stance in ("eager", "compiled"))
    lead = by_stance["compiled"]
    traced = traced_lines(tables, lead, eager, compiled, region_lines(tables, lead))
    seen = op_sources(
        by_stance["eager"], eager, tables["line_ops"].filter(stance="eager"), tables["compiles"]
    )
    both = traced.join(seen.filter(how="line"), on="row").with_columns(
        seen=pl.format("{}:{}", "file", "line")
    )
    assert both.height == traced.height > 100
    assert both["place"].to_list() == both["seen"].to_list()


def test_a_custom_operator_is_fused_with_nothing(tables_of):
    """Inductor names the kernel that reads its result after it, and computes none of it."""
    tables = tables_of("healthy-custom_op")
    groups = tables["match_groups"].sort(pl.col("ops").list.len())
    own = [ops for ops in groups["ops"].to_list() if "scenarios.shift_rows" in ops]
    assert own == [["scenarios.shift_rows"]]
    generated = tables["generated_kernels"].filter(pl.col("category") == "cpp")
    assert "scenarios.shift_rows" not in generated["fused_ops"].explode().to_list()
    (members,) = (
        tables["matched_kernels"]
        .filter(pl.col("name").str.contains("shift_rows"))
        .filter(pl.col("category") == "user_kernel")
        .partition_by("group_id")
    )
    assert sorted(members["stance"]) == ["compiled", "eager"]
