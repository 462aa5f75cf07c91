"""Bytes, operations and limits of recorded runs, where they are known from the scripts."""

import polars as pl
import pytest

from traceview.diagnosis.explained import kernel_limits, step_limits
from traceview.diagnosis.focus import Focus

#: HBM3e of an H200; what is faster ran out of its 50 MiB of L2.
PEAK_GB_S = 4800
L2_BYTES = 50 << 20


def kernels(tables, stance):
    return tables["kernel_limits"].filter(pl.col("stance") == stance)


def known_share(frame):
    known = frame.filter(pl.col("bytes").is_not_null() | pl.col("flops").is_not_null())
    return known["ms"].sum() / frame["ms"].sum()


def test_one_fused_kernel_moves_its_input_its_output_and_two_vectors(tables_of):
    (row,) = kernels(tables_of("gpu-pointwise"), "compiled").to_dicts()
    assert row["bytes"] == 2 * 4 * 1024 * 4096 + 2 * 4 * 4096
    assert (row["bytes_kind"], row["bytes_from"], row["count"]) == ("exact", "generated_code", 1.0)
    assert row["gb_s"] == pytest.approx(row["bytes"] / (row["ms"] / 1e3) / 1e9)


def test_eager_moves_the_same_tensor_again_and_again(tables_of):
    eager = kernels(tables_of("gpu-pointwise"), "eager")
    # Three times mul, add, sigmoid, mul, tanh, mul, add, and clamp: 22 kernels, 16 MiB a tensor.
    moved = (eager["bytes"] * eager["count"]).sum()
    one, two, vector = 2 * 2**24, 3 * 2**24, 4 * 4096
    wanted = 3 * (2 * (one + vector) + 3 * one + 2 * two) + one
    assert eager["count"].sum() == 22
    assert moved == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(
    ("run", "share"),
    [
        ("gpu-pointwise", 1.0), ("gpu-reduce_overhead", 1.0), ("gpu-launch_bound", 1.0),
        ("gpu-autotuned_template", 1.0), ("gpu-gemm_bound", 1.0), ("gpu-mem_peak_up", 0.9),
        ("gpu-transformer_training", 0.9), ("healthy-mlp_training", 0.99),
        ("healthy-bf16_autocast", 0.99),
    ],
)  # fmt: skip
def test_the_bytes_of_nearly_all_the_time_are_known(tables_of, run, share):
    tables = tables_of(run)
    for stance in ("eager", "compiled"):
        assert known_share(kernels(tables, stance)) >= share


def test_kernels_of_a_cudagraph_replay_have_their_work(tables_of):
    compiled = kernels(tables_of("gpu-reduce_overhead"), "compiled")
    products = compiled.filter(pl.col("category") == "gemm")
    # Twelve blocks of 256 → 512 → 256 on a batch of 16, fp16.
    flops = 12 * 2 * (2 * 16 * 256 * 512)
    assert (products["flops"] * products["count"]).sum() == flops
    silu = compiled.filter(pl.col("name").str.contains("silu")).row(0, named=True)
    assert (silu["bytes"], silu["count"]) == (2 * 2 * 16 * 512, 12.0)


def test_eager_and_compiled_multiply_the_same(tables_of):
    tables = tables_of("gpu-transformer_training")
    totals = []
    for stance in ("eager", "compiled"):
        products = kernels(tables, stance).filter(pl.col("category").is_in(["gemm", "attention"]))
        totals.append((products["flops"] * products["count"]).sum())
    assert totals[0] == totals[1]
    tokens, hidden, layers, words = 8 * 512, 512, 6, 8192
    weights = layers * (3 + 1 + 4 + 4) * hidden**2 + hidden * words
    scores = layers * 8 * 8 * 512 * 512 * 64  # causal: half of both forward and backward
    assert totals[0] == 3 * 2 * tokens * weights + (2 + 5) * scores


def test_a_template_has_the_operations_of_its_product(tables_of):
    compiled = kernels(tables_of("gpu-autotuned_template"), "compiled")
    template = compiled.filter(pl.col("category") == "generated_template").row(0, named=True)
    assert template["flops"] == 2 * 2048 * 4096 * 1024
    assert template["dtype"] == "float16"


@pytest.mark.parametrize("run", ["gpu-pointwise", "gpu-transformer_training", "gpu-mem_peak_up"])
def test_nothing_is_faster_than_memory_but_what_fits_the_cache(tables_of, run):
    fast = tables_of(run)["kernel_limits"].filter(pl.col("gb_s") > PEAK_GB_S)
    # A tensor read right after it was written: at most what the cache holds, and its like.
    assert fast.filter(pl.col("bytes") > 2 * L2_BYTES).is_empty()


@pytest.mark.parametrize(
    "run",
    ["bad-ind_scalar_loop", "healthy-large_gemm", "healthy-pointwise", "gpu-transformer_training"],
)
def test_no_kernel_is_above_its_limit_and_no_step_below_its_own(tables_of, run):
    tables = tables_of(run)
    known = tables["kernel_limits"].drop_nulls("floor_ms")
    assert (known["floor_ms"] <= known["ms"]).all()
    assert tables["kernel_limits"]["of_ceiling"].max() <= 1
    steps = tables["step_limits"].drop_nulls("limit_ms")
    assert (steps["limit_ms"] <= steps["step_ms"]).all()


def test_small_tensors_of_a_processor_live_in_its_cache(tables_of):
    """A MiB each, added at 98.6 GB/s where a copy in memory reached 41.4."""
    eager = kernels(tables_of("bad-ind_scalar_loop"), "eager")
    added = eager.filter(name="aten::add").row(0, named=True)
    assert added["gb_s"] == pytest.approx(98.6, abs=0.1)
    assert (added["bound"], added["ceiling"]) == ("cache", "l2_copy")


def test_fusing_can_save_no_more_than_the_generated_kernels_take(tables_of):
    tables = tables_of("gpu-transformer_training")
    step = tables["step_limits"].filter(pl.col("stance") == "compiled").row(0, named=True)
    generated = kernels(tables, "compiled").filter(pl.col("category").str.starts_with("generated_"))
    gap = tables["ceilings"].filter(pl.col("kind") == "kernel_gap")
    gaps = 0.0 if gap.is_empty() else generated["count"].sum() * gap["value"][0] / 1e3
    assert 0 < step["fusible_ms"] < generated["ms"].sum() + gaps


def test_a_graph_of_library_kernels_alone_has_nothing_to_fuse(tables_of):
    steps = tables_of("gpu-gemm_bound")["step_limits"]
    fusible = dict(steps.select("stance", "fusible_ms").iter_rows())
    assert fusible == {"eager": None, "compiled": 0.0}


def test_sums_of_the_rows_are_the_steps_busy_time(tables_of):
    tables = tables_of("gpu-transformer_training")
    for step in tables["step_limits"].to_dicts():
        total = kernels(tables, step["stance"])["ms"].sum()
        assert total == pytest.approx(step["busy_ms"], rel=0.01)
        assert step["known_ms"] <= step["busy_ms"]


def test_the_diagnosis_has_the_dearest_kernels_and_a_sentence_a_stance(tables_of):
    tables = tables_of("gpu-transformer_training")
    focus = Focus.of(tables)
    shown = kernel_limits(tables, focus)
    assert [row.ms for row in shown] == sorted((row.ms for row in shown), reverse=True)
    assert shown[0].ms == tables["kernel_limits"]["ms"].max()
    steps = step_limits(tables, focus)
    assert [step.stance for step in steps] == ["eager", "compiled"]
    assert all("for launches" in step.sentence for step in steps)
    assert all(step.sentence.startswith(step.headline) for step in steps)
