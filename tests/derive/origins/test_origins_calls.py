"""Executions in a compiled graph → the calls in the generated code."""

import pytest

from traceview.derive.origins.calls import with_calls
from traceview.derive.origins.work import executions, operators
from traceview.derive.windows import windows
from traceview.tables import Tables, from_rows
from traceview.torchtext.marks import GRAPH

POI, MM, ADDMM = "triton_poi_fused_add_0", "extern_kernels.mm", "extern_kernels.addmm"
SDPA = "torch.ops.aten._scaled_dot_product_flash_attention.default"


def category(name):
    if "." in name:
        return "extern"
    return "pointwise" if name.startswith("triton_") else "user_triton"


def kernel_calls(*names, compile_id="0/0", graph_key="f1", origin="provenance"):
    """Calls in order, the n-th at line n + 1."""
    return [
        {"pass": "cold", "compile_key": "k", "compile_id": compile_id, "graph_key": graph_key,
         "aot_id": "0_inference", "order": n, "kernel_name": name, "ops": ["aten.add"],
         "category": category(name), "source_nodes": [f"node_{n}"],
         "user_lines": [f"/s.py:{n + 1}"], "line_origin": origin}
        for n, name in enumerate(names)
    ]  # fmt: skip


def found(launched, calls, replayed=False, key="f1"):
    """[(kernel, line or lines, how)]; ``launched`` are (kernel, category, operator) in order.

    A graph is called twice; with ``replayed``, one launch brings all its kernels.
    """
    head = {"pass": "cold", "stance": "compiled", "step": 0, "region": "0"}
    graph = {**head, "graph_key": key, "compile_id": "0/0"}
    ops, kernels = [], []

    def op(name, kind, start, duration, parent=None, **more):
        ops.append(
            {**head, "op_id": len(ops), "name": name, "kind": kind, "tid": "1", "start_ns": start,
             "duration_ns": duration, "self_ns": 1, "parent_id": parent, **more}
        )  # fmt: skip
        return len(ops) - 1

    op("traceview step 1", "user_annotation", 0, 10_000, category="mark")
    for start in (1000, 5000):
        mark = op(f"{GRAPH}{key} ##", "user_annotation", start, 3000, category="overhead", **graph)
        for n, (name, category, operator) in enumerate(launched):
            at = start + 10 * n
            alone = replayed or operator is None
            inside = mark if alone else op(operator, "cpu_op", at, 5, mark, category=category)
            kernels.append(
                {**graph, "name": name, "kind": "kernel", "category": category, "start_ns": at + 9,
                 "duration_ns": 1, "cpu_op_id": inside, "cpu_op": operator,
                 "launch_start_ns": start + 1 if replayed else at, "in_cudagraph": replayed}
            )  # fmt: skip
    tables = Tables({
        "cpu_ops": from_rows("cpu_ops", ops), "kernels": from_rows("kernels", kernels),
        "kernel_launches": from_rows("kernel_launches", []),
    })  # fmt: skip
    (window,) = windows(tables)
    known = operators(window)
    work = executions(window, known).with_columns(is_backward=False)
    rows = with_calls(work, known, from_rows("kernel_calls", calls)).to_dicts()
    assert [row["name"] for row in rows] == [name for name, *_ in launched] * 2
    half = len(rows) // 2
    told = [(row["name"], row["user_lines"] and [int(line.rpartition(":")[2])
             for line in row["user_lines"]], row["how"]) for row in rows]  # fmt: skip
    assert told[:half] == told[half:]
    return told[:half]


def test_the_nth_launch_is_the_nth_call():
    launched = [
        (POI, "generated_pointwise", POI),
        ("nvjet_1", "gemm", "aten::mm"),
        (POI, "generated_pointwise", POI),
        ("nvjet_1", "gemm", "aten::mm"),
        ("nvjet_2", "gemm", "aten::addmm"),
    ]
    assert found(launched, kernel_calls(POI, MM, POI, MM, "extern_kernels.bias_addmm")) == [
        (POI, [1], "provenance"),
        ("nvjet_1", [2], "provenance"),
        (POI, [3], "provenance"),
        ("nvjet_1", [4], "provenance"),
        ("nvjet_2", [5], "provenance"),
    ]


def test_fallbacks_are_found_by_their_operator():
    launched = [
        ("memset", "memset", "aten::_scaled_dot_product_flash_attention"),
        ("mine", "other", "mylib::shift"),
    ]
    calls = kernel_calls(SDPA, "torch.ops.mylib.shift.default", origin=None)
    assert found(launched, calls) == [("memset", [1], "comment"), ("mine", [2], "comment")]


def test_a_users_own_triton_kernel_is_launched_by_its_own_name():
    launched = [("add_kernel", "other", None), ("add_kernel", "other", None)]
    assert found(launched, kernel_calls("add_kernel_0", "add_kernel_1")) == [
        ("add_kernel", [1], "provenance"),
        ("add_kernel", [2], "provenance"),
    ]


def test_what_the_code_does_not_call_leads_nowhere():
    launched = [("multi_tensor", "copy", "aten::_foreach_copy_"), (POI, "generated_pointwise", POI)]
    assert found(launched, kernel_calls(POI)) == [
        ("multi_tensor", None, None),
        (POI, [1], "provenance"),
    ]


def test_where_the_numbers_differ_all_calls_of_the_name_are_meant():
    launched = [(POI, "generated_pointwise", POI)]
    assert found(launched, kernel_calls(POI, MM, POI)) == [(POI, [1, 3], "name")]


def test_code_of_another_compile_is_not_taken():
    calls = kernel_calls(POI, compile_id="1/0") + kernel_calls(MM, POI, compile_id="2/0")
    assert found([(POI, "generated_pointwise", POI)], calls) == [(POI, [1, 2], "name")]
    of_one = kernel_calls(POI, compile_id="1/0") + kernel_calls(MM, POI, compile_id="0/0")
    assert found([(POI, "generated_pointwise", POI)], of_one) == [(POI, [2], "provenance")]


@pytest.mark.parametrize(
    ("library", "calls", "lines"),
    [
        (["gemm"], [ADDMM], [[2]]),
        (["gemm", "gemm"], [ADDMM], [[2], [2]]),  # a split product and its sum
        (["gemm", "attention"], [ADDMM, SDPA], [[2], [3]]),
        (["gemm", "memset", "attention"], [ADDMM, SDPA], [[2], None, [3]]),
        (["gemm", "gemm", "attention"], [ADDMM, ADDMM, MM, SDPA], [None, None, [5]]),
    ],
)
def test_inside_a_cudagraph_a_librarys_kernels_lie_between_generated_ones(library, calls, lines):
    region = "Torch-Compiled Region: 0/0"
    launched = [(POI, "generated_pointwise", region)]
    launched += [(f"lib_{n}", category, region) for n, category in enumerate(library)]
    launched += [(POI, "generated_pointwise", region), ("lib_last", "gemm", region)]
    rows = found(launched, kernel_calls(POI, *calls, POI, MM), replayed=True)
    assert rows[0] == (POI, [1], "provenance")
    assert [line for _, line, _ in rows[1:-2]] == lines
    assert {how for _, line, how in rows[1:-2] if line} <= {"order"}
    assert rows[-2:] == [
        (POI, [len(calls) + 2], "provenance"),
        ("lib_last", [len(calls) + 3], "order"),
    ]


def test_a_graph_that_no_cache_holds_is_known_by_its_compile():
    forward = kernel_calls(POI, MM, graph_key=None)
    backward = [row | {"aot_id": "0_backward"} for row in kernel_calls(MM, POI, graph_key=None)]
    other = kernel_calls(MM, MM, POI, graph_key=None, compile_id="1/0")
    launched = [(POI, "generated_pointwise", POI)]
    assert found(launched, [*forward, *backward, *other], key="None") == [(POI, [1], "provenance")]


def test_without_generated_code_there_are_no_calls():
    assert found([(POI, "generated_pointwise", POI)], []) == [(POI, None, None)]
