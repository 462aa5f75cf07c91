"""A step on a time axis: the median step, its lanes, what was innermost, what was merged."""

from __future__ import annotations

from itertools import pairwise

import pytest

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.timeline import (
    LABEL,
    MOST_SPANS,
    Event,
    fitted,
    innermost,
    kernel_label,
    timelines,
)
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None, "stance": "eager"}
FOCUS = Focus("cold", None, 1)


def op(op_id, name, start, duration, category="other", parent=None, **more):
    row = {
        **HEAD, "step": 0, "op_id": op_id, "parent_id": parent, "name": name, "kind": "cpu_op",
        "category": category, "tid": "1", "start_ns": start * 1000, "duration_ns": duration * 1000,
    }  # fmt: skip
    return row | more


def mark(op_id, step, start, duration):
    name = f"traceview step {step + 20}"
    return op(op_id, name, start, duration, "mark", step=step, kind="user_annotation")


def launch(name, kind, start, duration, **more):
    row = {**HEAD, "step": 0, "name": name, "kind": kind, "tid": "1", "kernels": 0}
    return row | {"start_ns": start * 1000, "duration_ns": duration * 1000} | more


def kernel(name, start, duration, stream=7, **more):
    row = {**HEAD, "step": 0, "name": name, "category": "elementwise", "device": 0}
    row |= {"stream": stream, "start_ns": start * 1000, "duration_ns": duration * 1000}
    return row | more


def drawn(ops, launches=(), kernels=()):
    tables = Tables({
        "cpu_ops": from_rows("cpu_ops", ops),
        "kernel_launches": from_rows("kernel_launches", launches),
        "kernels": from_rows("kernels", kernels),
    })  # fmt: skip
    (found,) = timelines(tables, FOCUS)
    return found


def spans(lane):
    return [
        (s.label, s.category, round(s.start_ms * 1000), round(s.duration_ms * 1000))
        for s in lane.spans
    ]


def test_the_step_of_median_duration_is_drawn():
    found = drawn([mark(0, 0, 0, 900), mark(1, 1, 1000, 100), mark(2, 2, 1200, 300)])
    assert (found.stance, found.step, found.duration_ms) == ("eager", 2, pytest.approx(0.3))
    assert [(lane.name, spans(lane)) for lane in found.lanes] == [
        ("host", [("Python", "python", 0, 300)])
    ]


def test_the_host_shows_outermost_operators_marks_and_calls_that_hold_it():
    found = drawn(
        [
            mark(0, 0, 0, 100),
            op(1, "traceview region 0", 5, 90, "mark", kind="user_annotation"),
            op(2, "Torch-Compiled Region: 0/0", 10, 60, "overhead", parent=1),
            op(3, "aten::linear", 20, 20, parent=2),
            op(4, "aten::addmm", 25, 10, "gemm", parent=3),
            op(5, "aten::item", 80, 10, parent=1),
        ],
        [
            launch("cudaLaunchKernel", "launch", 27, 2),
            launch("cudaStreamSynchronize", "sync", 82, 5),
        ],
    )
    assert spans(found.lanes[0]) == [
        ("Python", "python", 0, 10),
        ("Torch-Compiled Region: 0/0", "overhead_compiled_region", 10, 10),
        ("linear", "gemm", 20, 20),
        ("Torch-Compiled Region: 0/0", "overhead_compiled_region", 40, 30),
        ("Python", "python", 70, 10),
        ("item", "other", 80, 2),
        ("cudaStreamSynchronize", "sync", 82, 5),
        ("item", "other", 87, 3),
        ("Python", "python", 90, 10),
    ]


def test_marks_that_have_a_cause_of_their_own():
    marked = {"kind": "user_annotation"}
    found = drawn(
        [
            mark(0, 0, 0, 100),
            op(1, "traceview gc 2", 10, 10, "mark", **marked),
            op(
                2,
                "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                30,
                10,
                "mark",
                **marked,
            ),
            op(3, "_compile.compile_inner (dynamo_timed)", 50, 10, "mark", **marked),
            op(4, "## Call CompiledFxGraph abc ##", 70, 10, "overhead", **marked),
            op(5, "Optimizer.step#SGD.step", 90, 10, "mark", **marked),
        ]
    )
    assert [span[:3] for span in spans(found.lanes[0]) if span[0] != "Python"] == [
        ("garbage collection", "gc", 10),
        ("data loading", "data_loading", 30),
        ("_compile.compile_inner (dynamo_timed)", "compile", 50),
        ("generated wrapper", "overhead_generated_wrapper", 70),
        ("SGD.step", "python", 90),
    ]


def test_other_launching_threads_and_every_stream_have_their_lane():
    name = "autograd::engine::evaluate_function: MulBackward0"
    product = "void at::native::mul_kernel<float>(int)"
    found = drawn(
        [
            mark(0, 0, -200, 100),
            mark(1, 1, -100, 100),
            mark(2, 2, 0, 100),
            op(3, name, 30, 20, tid="2", step=2),
            op(4, "aten::mul", 35, 10, "elementwise", parent=3, tid="2", step=2),
            op(5, "aten::rand", 30, 20, tid="3", step=2),
        ],
        [launch("cudaLaunchKernel", "launch", 36, 2, tid="2", kernels=1, step=2)],
        [
            kernel(product, 50, 80, cpu_op="aten::mul", step=2),
            kernel("triton_poi_fused_0", 10, 5, 20, category="generated_pointwise", step=1),
        ],
    )
    assert found.duration_ms == pytest.approx(0.130)  # to the end of the step's last kernel
    assert {lane.name: spans(lane) for lane in found.lanes} == {
        "host": [("Python", "python", 0, 100)],
        "autograd thread": [("MulBackward0", "elementwise", 30, 20)],
        "stream 7": [("mul: mul_kernel", "elementwise", 50, 80)],
        "stream 20": [("another step's triton_poi_fused_0", "generated_pointwise", 10, 5)],
    }


def test_without_marked_steps_there_is_no_timeline():
    assert (
        timelines(Tables({"cpu_ops": from_rows("cpu_ops", [op(0, "aten::mul", 0, 5)])}), FOCUS)
        == ()
    )
    assert timelines(Tables({}), FOCUS) == ()


def test_a_child_that_ends_after_its_parent_is_cut_to_it():
    found = innermost([Event(0, 10, "a", "x"), Event(5, 12, "b", "y"), Event(20, 21, "c", "z")])
    assert [(e.start, e.end, e.label) for e in found] == [(0, 5, "a"), (5, 10, "b"), (20, 21, "c")]


def test_a_lane_that_has_too_many_spans_keeps_its_busy_time():
    events = [
        Event(n * 100, n * 100 + 30, f"kernel {n}", "gemm" if n % 3 else "copy")
        for n in range(5000)
    ]
    found = fitted(events, 500_000)
    assert 100 < len(found) <= MOST_SPANS
    assert sum(e.end - e.start for e in found) == 5000 * 30
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert {e.category for e in found} == {"gemm"}  # what took longest in each
    assert found[0].label.startswith("31: kernel 0, kernel 1")
    assert len(found[0].label) == LABEL


def test_long_spans_are_not_merged_away():
    events = [Event(n * 10, n * 10 + 5, "short", "copy") for n in range(1000)]
    events += [Event(20_000, 60_000, "long", "gemm")]
    found = fitted(events, 100_000)
    assert len(found) <= MOST_SPANS
    assert found[-1] == events[-1]


@pytest.mark.parametrize(
    ("name", "cpu_op", "category", "label"),
    [
        ("void at::native::(anonymous namespace)::softmax<float, 8>(int)", "aten::_softmax",
         "reduction", "_softmax: softmax"),
        ("triton_per_fused_add_0", "triton_per_fused_add_0", "generated_persistent_reduction",
         "triton_per_fused_add_0"),
        ("Memcpy DtoH (Device -> Pinned)", None, "copy", "Memcpy DtoH"),
        ("nvjet_sm90", "Torch-Compiled Region: 0/0", "gemm", "nvjet_sm90"),
    ],
)  # fmt: skip
def test_labels_of_kernels(name, cpu_op, category, label):
    assert kernel_label(name, cpu_op, category) == label


@pytest.mark.parametrize("name", ["gpu-transformer_training", "gpu-reduce_overhead"])
def test_recorded_lanes_are_in_order_and_inside_the_step(name, tables_of):
    tables = tables_of(name)
    found = timelines(tables, Focus.of(tables))
    assert [line.stance for line in found] == ["eager", "compiled"]
    for line in found:
        assert {"host", "stream 7"} <= {lane.name for lane in line.lanes}
        assert ("autograd thread" in {lane.name for lane in line.lanes}) == ("training" in name)
        for lane in line.lanes:
            assert 0 < len(lane.spans) <= MOST_SPANS
            ends = [span.start_ms + span.duration_ms for span in lane.spans]
            starts = [span.start_ms for span in lane.spans]
            assert starts == sorted(starts)
            assert max(ends) <= line.duration_ms + 1e-9
