"""kernel_limits and step_limits of small tables made by hand: known bytes, known rates."""

import json

import polars as pl
import pytest

from traceview.derive.limits import limit_tables
from traceview.derive.limits.ceilings import Ceilings, compared
from traceview.derive.limits.work import Work
from traceview.derive.windows import windows
from traceview.diagnosis.explained import limit_sentences
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None}
STANCE = {**HEAD, "stance": "compiled"}
MEASURED = Ceilings(
    copy=4e12, l2_copy=8e12, l2_bytes=1 << 20, matmul={"bfloat16": 500e12}, gap_us=2.0
)


def kernel(start_us, us, op=None, *, name="kernel", category="elementwise", **more):
    return {
        **STANCE, "step": 0, "name": name, "kind": "kernel", "category": category, "device": 0,
        "stream": 7, "start_ns": start_us * 1000, "duration_ns": us * 1000, "correlation": start_us,
        "cpu_op": None if op is None else "aten::" + op[0],
        "cpu_op_id": None if op is None else op[1], "in_cudagraph": False, **more,
    }  # fmt: skip


def operator(op_id, name, dims, kind="float"):
    return {
        **STANCE, "step": 0, "op_id": op_id, "depth": 0, "name": f"aten::{name}", "kind": "cpu_op",
        "category": "other", "tid": "1", "start_ns": 1, "duration_ns": 1, "self_ns": 1,
        "input_dims": json.dumps(dims), "input_types": json.dumps([kind] * len(dims)),
    }  # fmt: skip


def derived(kernels, operators, *, ceilings=(), **tables):
    mark = {
        **STANCE, "step": 0, "op_id": 0, "depth": 0, "name": "traceview step 7", "kind":
        "user_annotation", "category": "mark", "tid": "1", "start_ns": 0, "duration_ns": 1_000_000,
        "self_ns": 0,
    }  # fmt: skip
    rows = [{**HEAD, "pid": 1, "device": "cuda:0", **row} for row in ceilings]
    given = Tables({
        "kernels": from_rows("kernels", kernels),
        "kernel_launches": from_rows("kernel_launches", []),
        "cpu_ops": from_rows("cpu_ops", [mark, *operators]),
        "ceilings": from_rows("ceilings", rows),
        **{name: from_rows(name, found) for name, found in tables.items()},
    })  # fmt: skip
    return limit_tables(given, list(windows(given)))


def rows_of(found):
    return found["kernel_limits"].to_dicts()


def test_one_row_for_every_shape_of_a_kernel():
    small, large = [[1024]], [[4096]]
    found = rows_of(
        derived(
            [kernel(0, 10, ("tanh", 1)), kernel(20, 10, ("tanh", 2)), kernel(40, 30, ("tanh", 3))],
            [operator(1, "tanh", small), operator(2, "tanh", small), operator(3, "tanh", large)],
        )
    )
    assert [(r["shapes"], r["count"], r["ms"], r["bytes"]) for r in found] == [
        ("float32[4096]", 1.0, 0.030, 2 * 4 * 4096),
        ("float32[1024]", 2.0, 0.020, 2 * 4 * 1024),
    ]
    assert found[0]["gb_s"] == pytest.approx(2 * 4 * 4096 / 30e-6 / 1e9)
    assert found[0]["bytes_from"] == "input_dims"
    ceilings = {name: found[0][name] for name in ("floor_ms", "of_ceiling", "bound", "ceiling")}
    assert set(ceilings.values()) == {None}, "nothing was measured"


def test_kernels_of_one_operator_share_its_work_once():
    found = rows_of(
        derived(
            [
                kernel(0, 30, ("mm", 1), name="nvjet", category="gemm"),
                kernel(40, 10, ("mm", 1), name="splitK_reduce", category="gemm"),
                kernel(60, 50, ("mm", 2), name="nvjet", category="gemm"),
            ],
            [operator(1, "mm", [[64, 32], [32, 16]]), operator(2, "mm", [[64, 32], [32, 16]])],
        )
    )
    (row,) = found
    assert (row["name"], row["count"], row["kernels"]) == ("nvjet", 2.0, 1.5)
    assert row["ms"] == pytest.approx(0.090)
    assert row["flops"] == 2 * 64 * 32 * 16
    assert row["tflop_s"] == pytest.approx(row["flops"] / 45e-6 / 1e12)


def test_copies_have_their_bytes_and_the_hosts_no_ceiling():
    inside = kernel(0, 10, kind="memcpy", name="Memcpy DtoD (Device -> Device)", bytes=1 << 24)
    outside = kernel(20, 10, kind="memcpy", name="Memcpy HtoD (Pinned -> Device)", bytes=1 << 24)
    cleared = kernel(40, 5, kind="memset", name="Memset (Device)", bytes=1 << 24)
    copy = {"kind": "copy", "value": 4000.0, "unit": "GB/s"}
    found = {
        r["name"][:11]: r for r in rows_of(derived([inside, outside, cleared], [], ceilings=[copy]))
    }
    assert found["Memcpy DtoD"]["bytes"] == 1 << 25, "read and written"
    assert found["Memcpy HtoD"]["bytes"] == 1 << 24
    assert found["Memcpy HtoD"]["floor_ms"] is None
    assert found["Memset (Dev"]["floor_ms"] == pytest.approx((1 << 24) / 4e12 * 1e3)


def test_ceilings_of_another_pass_serve_where_this_one_has_none():
    copies = [
        {"pass": "warm", "kind": "copy", "value": 1000.0},
        {"pass": "cold", "kind": "copy", "value": 4000.0},
    ]
    kernels, operators = [kernel(0, 100, ("tanh", 1))], [operator(1, "tanh", [[10**7]])]
    for given, rate in ((copies, 4e12), (copies[:1], 1e12)):
        (row,) = rows_of(derived(kernels, operators, ceilings=given))
        assert row["floor_ms"] == pytest.approx(8e7 / rate * 1e3)
    elsewhere = [{**copies[1], "device": "cuda:1"}]
    (row,) = rows_of(derived(kernels, operators, ceilings=elsewhere))
    assert row["floor_ms"] is None


def test_the_device_that_the_step_is_accounted_on_counts():
    other = kernel(10, 5, ("tanh", 1), device=1)
    found = derived([kernel(0, 100, ("tanh", 1)), other], [operator(1, "tanh", [[64]])])
    assert [row["ms"] for row in rows_of(found)] == [pytest.approx(0.1)]


def test_what_is_not_known_stays_null():
    found = derived([kernel(0, 10), kernel(20, 30, ("tanh", 1))], [operator(1, "tanh", [[8]])])
    unknown = next(r for r in rows_of(found) if r["shapes"] is None)
    assert {unknown[c] for c in ("bytes", "flops", "gb_s", "tflop_s", "bytes_from")} == {None}
    step = found["step_limits"].row(0, named=True)
    assert (step["busy_ms"], step["known_ms"]) == (pytest.approx(0.040), pytest.approx(0.030))
    assert (step["limit_ms"], step["fusible_ms"]) == (None, None)


def test_the_limit_takes_known_kernels_at_their_ceiling_and_others_as_they_are():
    large = 1 << 26  # floats: 512 MiB read and written
    copy = {"kind": "copy", "value": 4000.0, "unit": "GB/s"}
    gap = {"kind": "kernel_gap", "value": 2.0, "unit": "us"}
    found = derived(
        [kernel(0, 400, ("tanh", 1)), kernel(500, 70), kernel(600, 5, ("tanh", 2))],
        [operator(1, "tanh", [[large]]), operator(2, "tanh", [[8]])],
        ceilings=[copy, gap],
    )
    step = found["step_limits"].row(0, named=True)
    assert step["limit_ms"] == pytest.approx(2 * 4 * large / 4e12 * 1e3 + 0.070 + 0.002)


@pytest.mark.parametrize(
    ("work", "us", "ceiling", "bound"),
    [
        (Work(40_000_000), 12.0, "copy", "memory"),
        (Work(40_000_000), 60.0, "copy", "neither"),
        (Work(8_000), 3.0, "l2_copy", "overhead"),
        (Work(800_000), 0.15, "l2_copy", "memory"),
        (Work(40_000_000, flops=10**10, dtype="bfloat16"), 25.0, "matmul_bfloat16", "compute"),
        (Work(40_000_000, flops=10**8, dtype="bfloat16"), 12.0, "copy", "memory"),
    ],
)
def test_which_ceiling_decides(work, us, ceiling, bound):
    row = compared(work, count=3.0, ms=3 * us / 1e3, ceilings=MEASURED)
    assert (row["ceiling"], row["bound"]) == (ceiling, bound)
    assert row["of_ceiling"] == pytest.approx(row["floor_ms"] / (3 * us / 1e3))


def test_operations_in_a_dtype_that_was_not_measured_give_no_floor():
    row = compared(Work(1000, flops=1000, dtype="float64"), 1.0, 0.01, MEASURED)
    assert "floor_ms" not in row
    assert row["tflop_s"] is not None
    assert compared(Work(1000), 0.0, 0.01, MEASURED) == {}
    assert compared(None, 1.0, 0.01, MEASURED) == {}


SOURCE = """
@triton_heuristics.pointwise(triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32'}})
@triton.jit
def NAME(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 1024
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tl.store(out_ptr0 + (x0), tmp1, xmask)
"""
CALL = """
def call(args):
    arg0_1, = args
    assert_size_stride(arg0_1, (1024, ), (1, ))
    buf0 = empty_strided_cuda((1024, ), (1, ), torch.float32)
    triton_poi_fused_a_0.run(arg0_1, buf0, 1024, stream=stream0)
    buf1 = empty_strided_cuda((1024, ), (1, ), torch.float32)
    triton_poi_fused_b_1.run(buf0, buf1, 1024, stream=stream0)
    return (buf1, RETURNED)
"""


def fused_step(returned="", code=CALL):
    names = ("triton_poi_fused_a_0", "triton_poi_fused_b_1")
    kernels = [
        kernel(
            100 * n, 40, name=name, category="generated_pointwise", graph_key="g", compile_id="0/0"
        )
        for n, name in enumerate(names)
    ]
    found = derived(
        kernels,
        [],
        ceilings=[{"kind": "kernel_gap", "value": 2.0, "unit": "us"}],
        graphs=[{**HEAD, "kind": "output_code", "graph_key": "g", "compile_id": "0/0",
                 "text": code.replace("RETURNED", returned)}],
        generated_kernels=[
            {**HEAD, "kernel_name": name, "graph_key": "g", "compile_id": "0/0",
             "source_code": SOURCE.replace("NAME", name)}
            for name in names
        ],
    )  # fmt: skip
    return found


def test_generated_kernels_without_a_launch_of_their_own_take_the_codes_shapes():
    (first, second) = rows_of(fused_step())
    assert {first["bytes"], second["bytes"]} == {2 * 4 * 1024}
    assert first["bytes_from"] == "generated_code"
    assert first["shapes"] == "float32[1024], float32[1024]"


def test_what_goes_from_kernel_to_kernel_is_what_fusing_could_save():
    # Half of each kernel's bytes is the buffer between them; one launch, 2 µs, goes too.
    step = fused_step()["step_limits"].row(0, named=True)
    assert step["fusible_ms"] == pytest.approx(0.020 + 0.020 + 0.002)
    # Returned, it has to be written all the same.
    step = fused_step("buf0")["step_limits"].row(0, named=True)
    assert step["fusible_ms"] == pytest.approx(0.020 + 0.002)


MIXED = """
def call(args):
    arg0_1, = args
    assert_size_stride(arg0_1, (1024, ), (1, ))
    buf0 = torch.ops.aten.special.default(arg0_1)
    buf1 = buf0[0]
    buf2 = empty_strided_cuda((1024, ), (1, ), torch.float32)
    triton_poi_fused_a_0.run(buf1, buf2, 1024, stream=stream0)
    buf3 = empty_strided_cuda((1024, ), (1, ), torch.float32)
    triton_poi_fused_b_1.run(arg0_1, buf3, 1024, stream=stream0)
    buf4 = reinterpret_tensor(buf3, (32, 32), (32, 1), 0); del buf3  # reuse
    buf5 = empty_strided_cuda((32, 32), (32, 1), torch.float32)
    extern_kernels.mm(buf4, buf4, out=buf5)
    return (buf2, buf5, )
"""


def test_what_lies_between_a_library_kernel_and_a_generated_one_counts_for_the_latter():
    # The first reads a result of the library's, half of its bytes; the second writes a factor under
    # an older name, which is half of its own.
    found = fused_step(code=MIXED)["step_limits"].row(0, named=True)
    assert found["fusible_ms"] == pytest.approx(0.020 + 0.020 + 0.002)


def step_row(**more):
    row = dict.fromkeys(
        ("step_ms", "busy_ms", "known_ms", "limit_ms", "fusible_ms", "idle_ms", "launch_idle_ms")
    )
    return {"stance": "compiled", **row, **more}


def test_the_sentence_says_what_is_known_and_no_more():
    full = step_row(
        step_ms=10.5, busy_ms=8.0, known_ms=7.6, limit_ms=4.1, fusible_ms=0.3, launch_idle_ms=2.2
    )
    assert " ".join(limit_sentences(full, "device")) == (
        "At the limit this compiled step would take 4.10 ms of device time, without idle; it takes "
        "10.5 ms (bytes or operations are known for 95 % of the busy time; the rest counts as it "
        "is). Fusing all that is left could save at most 0.300 ms. The device waits 2.20 ms for "
        "launches."
    )
    bare = step_row(busy_ms=8.0, known_ms=8.0)
    assert " ".join(limit_sentences(bare, "host")) == (
        "The limits of the processor were not measured. What fusing could still save is not "
        "known: there is no generated code."
    )
    done = step_row(busy_ms=8.0, known_ms=8.0, limit_ms=7.0, fusible_ms=0.0, launch_idle_ms=0.0)
    assert " ".join(limit_sentences(done, "device")) == (
        "At the limit this compiled step would take 7.00 ms of device time, without idle. Nothing "
        "is left to fuse. The device never waits for launches."
    )
    eager = step_row(stance="eager", busy_ms=8.0, known_ms=0.0)
    assert (
        " ".join(limit_sentences(eager, "device"))
        == "No limit is known: the bytes and operations of the kernels are not."
    )


def test_a_limit_above_the_step_itself_is_none():
    slow = step_row(step_ms=0.091, busy_ms=0.09, known_ms=0.09, limit_ms=0.897, fusible_ms=0.5)
    assert " ".join(limit_sentences(slow, "host")) == (
        "This compiled step takes 91.0 µs, less than the 897 µs of the limit: the machine was "
        "slower when that was measured, so no limit is known."
    )


def test_a_cache_that_is_slower_than_memory_was_held_up():
    held_up = Ceilings(copy=9.4e9, l2_copy=2.3e9, l2_bytes=1 << 20)
    assert held_up.memory(9400) == (1e-6, "copy")
    assert Ceilings(copy=9.4e9, l2_copy=94e9, l2_bytes=1 << 20).memory(9400) == (1e-7, "l2_copy")


def test_nothing_profiled_gives_no_tables():
    assert limit_tables(Tables({}), []) == {}
    assert isinstance(derived([], [])["kernel_limits"], pl.DataFrame)


@pytest.mark.parametrize(("unexplained_ms", "told"), [(-0.1, 1.4), (-5.2, None), (None, 1.4)])
def test_idle_time_of_other_steps_than_the_timed_ones_is_not_told(unexplained_ms, told):
    idle = {"category": "idle_launch_bound", "kind": "idle", "ms": 1.4, "clock": "device"}
    counts = {"step_ms": 6.6, "timed_step_ms": 0.2, "unexplained_ms": unexplained_ms}
    found = derived(
        [kernel(0, 10)], [], accounting=[{**STANCE, **idle}], step_counts=[{**STANCE, **counts}]
    )
    assert found["step_limits"]["launch_idle_ms"].to_list() == [told]
