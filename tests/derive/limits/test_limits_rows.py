"""kernel_limits and step_limits of small tables made by hand: known bytes, known rates."""

import json

import polars as pl
import pytest

from traceview.derive.limits import limit_tables
from traceview.derive.limits.ceilings import Ceilings, compared
from traceview.derive.windows import windows
from traceview.diagnosis.explained import limit_sentences
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None}
STANCE = {**HEAD, "stance": "compiled"}
MEASURED = Ceilings(copy=4e12, l2_copy=8e12, cache=1 << 20, matmul={"bfloat16": 500e12}, gap_us=2.0)
#: As the collector writes them: a quarter of the cache, 4 MiB, was copied within it.
COPY = {"kind": "copy", "value": 4000.0, "unit": "GB/s", "size": "896 MiB"}
CACHED = {"kind": "l2_copy", "value": 8000.0, "unit": "GB/s", "size": "1 MiB"}
#: Seconds that twice the cache's bytes take in it.
IN_CACHE_S = 2 * (4 << 20) / 8e12


def work_row(us, moved=None, flops=None, dtype="bfloat16", count=3.0, **more):
    """One row of kernel_limits without its limits."""
    row = {
        "category": "elementwise", "bytes": moved, "bytes_kind": "exact",
        "bytes_from": "input_dims", "flops": flops, "flops_kind": "exact", "dtype": dtype,
        "count": count, "ms": count * us / 1e3,
    }  # fmt: skip
    return {**row, **more}


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
    return limit_tables(given, windows(given))


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
    rows = rows_of(derived([inside, outside, cleared], [], ceilings=[COPY, CACHED]))
    found = {row["name"][:11]: row for row in rows}
    assert found["Memcpy DtoD"]["bytes"] == 1 << 25, "read and written"
    assert found["Memcpy HtoD"]["bytes"] == 1 << 24
    assert found["Memcpy HtoD"]["floor_ms"] is None
    seconds = IN_CACHE_S + ((1 << 24) - (8 << 20)) / 4e12
    assert found["Memset (Dev"]["floor_ms"] == pytest.approx(seconds * 1e3)


def test_ceilings_of_another_pass_serve_where_this_one_has_none():
    copies = [
        {**COPY, "pass": "warm", "value": 1000.0},
        {**COPY, "pass": "cold"},
        CACHED,
    ]
    kernels, operators = [kernel(0, 100, ("tanh", 1))], [operator(1, "tanh", [[10**7]])]
    for given, rate in ((copies, 4e12), (copies[::2], 1e12)):
        (row,) = rows_of(derived(kernels, operators, ceilings=given))
        seconds = IN_CACHE_S + (8e7 - (8 << 20)) / rate
        assert row["floor_ms"] == pytest.approx(seconds * 1e3)
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


def test_the_limit_takes_known_kernels_at_their_floor_and_others_as_nothing():
    large = 1 << 26  # floats: 512 MiB read and written
    gap = {"kind": "kernel_gap", "value": 2.0, "unit": "us"}
    copied = kernel(700, 200, kind="memcpy", name="Memcpy DtoD", category="copy", bytes=1 << 28)
    found = derived(
        [kernel(0, 400, ("tanh", 1)), kernel(500, 70), kernel(600, 5, ("tanh", 2)), copied],
        [operator(1, "tanh", [[large]]), operator(2, "tanh", [[8]])],
        ceilings=[COPY, CACHED, gap],
    )
    step = found["step_limits"].row(0, named=True)
    # Kernels of unknown work take as long as empty ones, copies to another place need not be.
    least = IN_CACHE_S + (2 * 4 * large - (8 << 20)) / 4e12
    assert step["limit_ms"] == pytest.approx(least * 1e3 + 0.002 + 0.002)


def test_bytes_that_fusing_spares_are_no_part_of_the_limit():
    # Half of the bytes of both kernels is the buffer between them.
    step = fused_step(ceilings=(COPY, CACHED))["step_limits"].row(0, named=True)
    assert step["limit_ms"] == pytest.approx(2 * 2 * 4 * 1024 / 8e12 * 1e3 / 2)


@pytest.mark.parametrize(
    ("row", "ceiling", "bound"),
    [
        (work_row(12.0, 40_000_000), "copy", "memory"),
        (work_row(60.0, 40_000_000), "copy", "neither"),
        (work_row(3.0, 8_000), "l2_copy", "overhead"),
        (work_row(0.15, 800_000), "l2_copy", "cache"),
        (work_row(25.0, 40_000_000, 10**10), "matmul_bfloat16", "compute"),
        (work_row(12.0, 40_000_000, 10**8), "copy", "memory"),
    ],
)
def test_which_ceiling_decides(row, ceiling, bound):
    found = compared(row, MEASURED)
    assert (found["ceiling"], found["bound"]) == (ceiling, bound)
    assert found["of_ceiling"] == pytest.approx(found["floor_ms"] / row["ms"])


def test_what_fits_in_the_cache_may_come_from_memory_all_the_same():
    no_gap = Ceilings(copy=4e10, l2_copy=18e10, cache=1 << 25)
    row = work_row(100.0, 3_000_000)
    assert compared(row, no_gap)["bound"] == "memory_or_cache"
    assert compared({**row, "ms": 0.6}, no_gap)["bound"] == "neither"
    # A third of the cache's rate, and more than memory has.
    assert compared({**row, "ms": 0.15}, no_gap)["bound"] == "cache"
    assert compared({**row, "ms": 0.09}, no_gap)["bound"] == "cache"


def test_what_a_kernel_reached_is_the_ceiling_of_all():
    fast, slow = work_row(10.0, 3_000_000), work_row(40.0, 3_000_000)
    product = work_row(10.0, 1000, 10**10, category="gemm")
    convolution = work_row(5.0, 1000, 10**10, category="convolution")
    rows = (fast, slow, product, convolution)
    raised = Ceilings(copy=4e10, l2_copy=18e10, cache=1 << 25, matmul={"bfloat16": 500e12})
    raised = raised.raised_by(rows)
    found = [compared(row, raised) for row in rows]
    assert [one["of_ceiling"] for one in found] == pytest.approx([1.0, 0.25, 1.0, 1.0])
    assert {one["ceiling_from"] for one in found} == {"kernel"}
    # A convolution may be allowed another precision than products.
    other = compared({**product, "ms": 0.06}, raised)
    assert other["of_ceiling"] == pytest.approx(0.5)
    indexed = {**fast, "bytes_kind": "at_most", "ms": 0.003}
    assert MEASURED.raised_by([indexed]).raised == {}, "it may have moved less"


def test_a_convolution_that_may_need_fewer_operations_has_the_floor_of_its_bytes():
    row = work_row(20.0, 800_000, 10**10, flops_kind="at_most", category="convolution")
    assert MEASURED.raised_by([row]).raised == {}
    found = compared(row, MEASURED)
    assert found["floor_ms"] == pytest.approx(3 * 800_000 / 8e12 * 1e3)
    assert found["tflop_s"] == pytest.approx(500)
    assert "bound" not in found


def test_operations_in_a_dtype_that_was_not_measured_leave_the_bound_open():
    row = compared(work_row(10.0, 1000, 1000, dtype="float64"), MEASURED)
    assert "bound" not in row
    assert row["floor_ms"] == pytest.approx(3 * 1000 / 8e12 * 1e3)
    assert row["tflop_s"] is not None
    assert compared(work_row(10.0, 1000, count=0.0), MEASURED) == {}
    assert set(compared(work_row(10.0), MEASURED).values()) == {None}
    assert "floor_ms" not in compared(work_row(10.0, 1000), Ceilings(copy=4e12))


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


def fused_step(returned="", code=CALL, ceilings=()):
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
        ceilings=ceilings or [{"kind": "kernel_gap", "value": 2.0, "unit": "us"}],
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
        "However fused, this compiled step needs at least 4.10 ms of device time; it takes 10.5 ms "
        "(bytes and operations are known for 95 % of the busy time; what the rest needs is not). "
        "Fusing all that is left could save at most 0.300 ms. The device waits 2.20 ms for "
        "launches."
    )
    bare = step_row(busy_ms=8.0, known_ms=8.0)
    assert " ".join(limit_sentences(bare, "host")) == (
        "No limit of this compiled step is known. What fusing could still save is not known: there "
        "is no generated code."
    )
    done = step_row(busy_ms=8.0, known_ms=8.0, limit_ms=7.0, fusible_ms=0.0, launch_idle_ms=0.0)
    assert " ".join(limit_sentences(done, "device")) == (
        "However fused, this compiled step needs at least 7.00 ms of device time. Nothing "
        "is left to fuse. The device never waits for launches."
    )
    eager = step_row(stance="eager", busy_ms=8.0, known_ms=0.0)
    assert (
        " ".join(limit_sentences(eager, "device"))
        == "No limit is known: the bytes and operations of the kernels are not."
    )


def test_a_limit_above_the_step_itself_is_none():
    counts = {**STANCE, "step_ms": 0.4, "timed_step_ms": 0.05}
    found = derived(
        [kernel(0, 400, ("tanh", 1))],
        [operator(1, "tanh", [[1 << 26]])],
        ceilings=[COPY, CACHED],
        step_counts=[counts],
    )
    assert found["step_limits"]["limit_ms"].to_list() == [None]


def test_a_cache_that_is_slower_than_memory_was_held_up():
    held_up = Ceilings(copy=9.4e9, l2_copy=2.3e9, cache=1 << 20)
    assert held_up.memory(work_row(1.0, 9400)).seconds == pytest.approx(1e-6)
    assert MEASURED.memory(work_row(1.0, 8000)).seconds == pytest.approx(1e-9)


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
