"""Fusion in words and what passes changed, on recorded runs whose graphs are known."""

import re
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

from traceview.derive.compiler.lowered import lowered_graphs
from traceview.derive.compiler.notes import plain
from traceview.derive.compiler.passes import graph_passes
from traceview.derive.compiler.traffic import traffic
from traceview.diagnosis.explained import MOST_NOTES, fusion_notes
from traceview.diagnosis.focus import Focus
from traceview.tables import from_rows
from traceview.torchtext.fx import read_graph

MAX_AUTOTUNE = "torch._inductor.config.max_autotune_gemm"
STATE = 16 * 256 * 2  # bytes of the state of gpu-cg_skip_mutation


def notes(tables, kind):
    return tables["fusion_notes"].filter(pl.col("kind") == kind).to_dicts()


def stage(tables, name, aot_id=None):
    rows = tables["graph_passes"].filter(pl.col("stage") == name)
    rows = rows if aot_id is None else rows.filter(pl.col("aot_id") == aot_id)
    assert rows.height == 1
    return rows.row(0, named=True)


def test_what_runs_as_one_kernel_and_what_that_saves(tables_of):
    common, last = notes(tables_of("gpu-cg_skip_mutation"), "fused")
    assert common["ops"] == ["aten.tanh", "aten.add"]
    assert common["times"] == 11
    assert common["bytes_saved"] == 11 * 2 * STATE  # tanh's result: not written, not read
    assert [Path(line).name for line in common["lines"]] == ["cg_skip_mutation.py:20"]
    assert common["kernels"] == ["triton_poi_fused_add_tanh_0", "triton_poi_fused_add_tanh_1"]
    assert last["ops"] == ["aten.mul", "aten.tanh", "aten.add", "aten.copy_"]


def test_a_refusal_of_every_round_is_one_note(tables_of):
    tables = tables_of("gpu-cg_skip_mutation")
    logged = tables["fusions"].filter(pl.col("decision") == "refused")
    first, second = notes(tables, "refused")
    assert logged["times"].sum() == 35
    assert first["times"] == 30  # ten pairs of layers, in three rounds each
    assert first["bytes_saved"] == 10 * STATE  # one reads what the other has just written
    assert first["reason"] == "intermediate nodes between node1 & node2"
    assert "between them runs another kernel" in first["text"]
    assert second["times"] == 4  # not the pair that later rounds put together


def test_gemms_that_are_library_calls_name_the_setting_that_would_try(tables_of):
    common, last = notes(tables_of("gpu-cg_skip_mutation"), "epilogue_not_tried")
    assert (common["times"], last["times"]) == (11, 1)
    assert common["setting"] == MAX_AUTOTUNE
    assert common["ops"] == ["aten.addmm", "aten.add", "aten.tanh"]
    # The GEMM's result is written and read; where tanh alone reads its input, add's is read too.
    assert common["bytes_saved"] == 11 * 3 * STATE
    assert not notes(tables_of("healthy-pointwise"), "epilogue_not_tried")


def test_on_a_cpu_no_setting_helps_a_training_graph(tables_of):
    found = notes(tables_of("healthy-bf16_autocast"), "epilogue_not_tried")
    assert sum(note["times"] for note in found) == 4
    assert {note["setting"] for note in found} == {None}


def test_an_epilogue_that_was_tried_says_how_it_ended(tables_of):
    tables = tables_of("gpu-autotuned_template")
    (note,) = notes(tables, "epilogue_apart")
    assert (
        note["reason"] == "benchmark: no time for the fused kernel"
    )  # torch wrote "infx slowdown"
    assert note["bytes_saved"] == 2 * 2048 * 4096 * 2  # the product, written and read
    assert note["kernels"] == ["triton_poi_fused_gelu_1"]
    assert not notes(tables, "epilogue_not_tried")


def test_a_threshold_of_torchs_is_named_as_the_setting(tables_of):
    (note,) = notes(tables_of("good-rc_module_int_attr"), "refused")
    assert note["reason"] == "score_fusion_memory_threshold"
    assert note["setting"] == "torch._inductor.config.score_fusion_memory_threshold"
    assert note["bytes_saved"] == 8  # one int64: torch wants ten bytes


def test_fallbacks_are_said(tables_of):
    (note,) = notes(tables_of("gpu-transformer_training"), "fallback")[:1]
    assert note["ops"] == ["aten._scaled_dot_product_cudnn_attention"]
    assert "ATen's kernel" in note["text"]


def test_without_a_fusion_log_there_is_no_table(tables_of):
    assert not tables_of("bad-cap_nothing_compiled_dropped").has("fusion_notes")


def torchs_reasons():
    """Every reason that the installed torch's scheduler can give, read from its source."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "_inductor"
    files = [folder / name for name in ("scheduler.py", "choices.py", "codegen/simd.py")]
    text = "\n".join(file.read_text() for file in files if file.exists())
    return sorted(set(re.findall(r'(?:why|WhyNoFuse\(node1, node2\))\(\s*"([^"]+)"', text)))


def test_every_reason_of_the_installed_torch_has_plain_words():
    reasons = torchs_reasons()
    if not reasons:
        pytest.skip("no torch here")
    assert len(reasons) > 30
    assert [reason for reason in reasons if plain(reason)[0] is None] == []


def test_an_unknown_reason_has_none():
    assert plain("the moon is full") == (None, None)
    assert plain(None) == (None, None)


def test_decompositions_and_fusion_by_the_numbers(tables_of):
    tables = tables_of("gpu-pointwise")
    assert stage(tables, "capture")["nodes_after"] == 7
    aot = stage(tables, "aot")
    assert (aot["nodes_before"], aot["nodes_after"]) == (7, 23)
    assert "aten.tanh ×3" in aot["added"]
    fused = stage(tables, "fusion")
    array, vector = 1024 * 4096 * 4, 4096 * 4
    assert (fused["nodes_before"], fused["nodes_after"]) == (23, 1)
    assert fused["read_bytes_after"] == 2 * array + 2 * vector
    assert fused["read_bytes_before"] > 25 * fused["read_bytes_after"]


def test_recomputation_shows_as_operations_that_the_partition_added(tables_of):
    row = stage(tables_of("healthy-mlp_training"), "partition")
    assert (row["nodes_before"], row["nodes_after"]) == (58, 57)
    assert sorted(row["added"]) == ["aten.add ×1", "aten.mul ×1"]
    assert row["removed"] == ["aten.permute ×3"]


def test_a_pass_that_removes_operations_names_them(tables_of):
    row = stage(tables_of("gpu-transformer_training"), "post_grad", "0_backward")
    assert (row["nodes_before"], row["nodes_after"]) == (620, 596)
    assert "prims.convert_element_type ×24" in row["removed"]


def counted(tables, *rows):
    """``graph_passes`` as they would be if the collector had written these (stage, patterns)."""
    head = tables["graphs"].select("pass", "rank", "compile_key").row(0, named=True)
    pid = int(head.pop("compile_key").split(":")[1])
    events = [
        {**head, "pid": pid, "compile_id": "0/0", "stage": stage, "patterns": patterns}
        for stage, patterns in rows
    ]
    more = tables.copy()
    more.put("pattern_counts", from_rows("pattern_counts", events))
    found = graph_passes(more, (), read_graph)
    return [(r["stage"], r["aot_id"], r.get("patterns")) for r in found if r["compile_id"] == "0/0"]


def test_patterns_belong_to_the_pass_that_matched_them(tables_of):
    tables = tables_of("gpu-transformer_training")
    plain = counted(tables)
    assert {patterns for *_, patterns in plain} == {None}
    found = counted(tables, ("post_grad", 7), ("post_grad", 9))
    assert [row for row in found if row[0] == "post_grad"] == [
        ("post_grad", "0_forward", 7), ("post_grad", "0_backward", 9),
    ]  # fmt: skip
    assert counted(tables, ("post_grad", 7)) == plain, "of two graphs one was not counted"


def test_a_stage_whose_graphs_are_not_logged_still_tells_its_patterns(tables_of):
    tables = tables_of("gpu-transformer_training")
    assert "joint" not in {stage for stage, *_ in counted(tables)}
    stages = counted(tables, ("joint", 4))
    assert stages[[s for s, *_ in stages].index("joint")] == ("joint", None, 4)
    order = [stage for stage, *_ in stages]
    assert order.index("aot") < order.index("joint") < order.index("post_grad")


def test_symbolic_sizes_leave_bytes_unknown(tables_of):
    passes = tables_of("healthy-dynamic_shapes")["graph_passes"]
    dynamic = passes.filter((pl.col("compile_id") == "0/1") & (pl.col("stage") == "fusion"))
    assert dynamic.select("read_bytes_before", "read_bytes_after").row(0) == (None, None)


def test_reports_get_the_weightiest_notes_of_each_kind(tables_of):
    tables = tables_of("gpu-transformer_training")
    found = fusion_notes(tables, Focus.of(tables))
    assert tables["fusion_notes"].height > 50
    assert 10 < len(found) <= 6 * MOST_NOTES
    sizes = [note.bytes_saved or 0 for note in found]
    assert sizes == sorted(sizes, reverse=True)
    assert all(note.bytes_saved != 0 for note in found if note.kind == "refused")


@pytest.mark.parametrize(
    ("name", "kernels"), [("gpu-reduce_overhead", 8), ("gpu-cg_skip_mutation", 3)]
)
def test_bytes_of_a_graphs_nodes_are_those_that_its_generated_code_moves(tables_of, name, kernels):
    """Two ways to the same figure: shapes in the post-grad graph, signatures of the kernels."""
    tables = tables_of(name)
    code = tables["kernel_limits"].filter(
        (pl.col("stance") == "compiled") & (pl.col("bytes_from") == "generated_code")
    )
    known = dict(code.select("name", "bytes").iter_rows())
    compared = {
        kernel.name: (traffic(graph.graph, kernel.nodes, kernel.shared), known[kernel.name])
        for graph in lowered_graphs(tables)
        for kernel in graph.kernels
        if kernel.name in known
    }
    assert len(compared) == kernels
    assert all(ours == theirs for ours, theirs in compared.values()), compared


def test_known_bytes_are_found_to_the_byte(tables_of):
    row = stage(tables_of("truth-gpu-known_bytes"), "fusion")
    assert row["read_bytes_after"] == 512 * 2**20  # 256 MiB read, 256 MiB written
    assert row["read_bytes_before"] == 3 * row["read_bytes_after"]  # three operations
