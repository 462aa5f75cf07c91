"""What stands behind a category: kernels by name, copies by direction, calls and Python by line."""

import polars as pl
import pytest
from step_tables import HEAD, call, kernel, mark, op, step, window

from traceview.tables import from_rows


def rows_of(tables, category):
    details = step(tables)[2]
    return {
        (row["what"], row["file"], row["line"]): round(row["profiled_ms"] * 1000, 3)
        for row in details
        if row["category"] == category
    }


def source(op_id, line, line_op_id=None):
    place = {"file": "/u/train.py", "line": line, "how": "line"}
    return {"op_id": op_id, "line_op_id": line_op_id, **place}


def line_op(op_id, name, kind, start, duration, parent=None, line=None):
    return {"op_id": op_id, "name": name, "kind": kind, "tid": "5", "start_ns": start,
            "duration_ns": duration, "parent_id": parent, "file": line and "/u/train.py",
            "line": line}  # fmt: skip


def test_kernels_by_name_and_copies_by_direction():
    kernels = [
        kernel(0, 100, 0, 1, "nvjet"), kernel(100, 100, 1, 2, "nvjet"),
        kernel(200, 50, 2, 3, "mystery", "other"),
        kernel(300, 20, 3, 4, "Memcpy HtoD (Pinned -> Device)", "copy") | {"kind": "memcpy"},
        kernel(400, 30, 4, 5, "Memcpy DtoD (Device -> Device)", "copy") | {"kind": "memcpy"},
        kernel(500, 10, 5, 6, "copy_kernel", "copy"),
    ]  # fmt: skip
    tables = window((), (), kernels)
    assert rows_of(tables, "gemm") == {("nvjet", None, None): 200}
    assert rows_of(tables, "other") == {("mystery", None, None): 50}
    assert rows_of(tables, "copy") == {
        ("copy to the device", None, None): 20, ("copy on the device", None, None): 30,
        ("copy_kernel", None, None): 10,
    }  # fmt: skip


def test_generated_foreach_kernels_are_a_category_of_the_step():
    name, category = "triton_for_fused_add_mul_0", "generated_foreach"
    kernels = [
        kernel(0, 120, 0, 1, name, category), kernel(200, 80, 150, 2, name, category),
        kernel(400, 50, 350, 3, "multi_tensor_apply_kernel", "optimizer"),
    ]  # fmt: skip
    tables = window((), (), kernels)
    row = step(tables)[0]["generated_foreach"]
    assert (row["kind"], row["profiled_ms"], row["count"]) == ("busy", pytest.approx(0.2), 2)
    assert rows_of(tables, "generated_foreach") == {(name, None, None): 200}


def test_kernels_stand_at_the_line_of_their_operator():
    kernels = [kernel(0, 100, 0, 1, "k", cpu_op_id=0), kernel(100, 60, 1, 2, "k", cpu_op_id=1)]
    tables = window((), (), kernels, op_sources=[source(0, 7), source(1, 9)])
    assert rows_of(tables, "gemm") == {("k", "/u/train.py", 7): 100, ("k", "/u/train.py", 9): 60}


def test_what_lies_beside_the_hosts_line_has_no_count():
    """Launch latency is a sum over the window: how often it came is not known."""
    kernels = [kernel(100, 50, 90, 1), kernel(300, 50, 290, 2)]
    counts = {row["what"]: row["count"] for row in step(window((), (), kernels))[2]}
    assert counts == {"k100": 1, "k300": 1, "launch latency": None, "Python": 1}


def test_a_collection_is_named():
    marks = [mark("traceview gc 2", 100, 300)]
    assert rows_of(window(marks), "gc") == {("garbage collection", None, None): 300}


def test_a_collection_stands_at_the_line_where_it_is_marked():
    seen = {"op_id": 0, "name": "traceview gc 2", "file": "/u/train.py", "line": 19, "tid": "1"}
    tables = window([mark("traceview gc 2", 100, 300)], line_ops=[seen])
    assert rows_of(tables, "gc") == {("garbage collection", "/u/train.py", 19): 300}


def test_a_synchronisation_stands_at_the_line_of_the_operator_around_it():
    ops = [op("aten::item", 90, 300), op("aten::_local_scalar_dense", 95, 290, 0)]
    calls = [call("cudaStreamSynchronize", 100, 250, "sync")]
    kernels = [kernel(0, 200, 0, 1), kernel(900, 50, 890, 2)]
    tables = window(ops, calls, kernels, op_sources=[source(1, 12)])
    found = rows_of(tables, "idle_sync")
    # 150 µs in the call; filling the device again counts for the 100 µs that the host was held.
    assert found == {("cudaStreamSynchronize", "/u/train.py", 12): pytest.approx(150 + 50)}


def in_graph(*nodes):
    """A copy in a graph that line 30 calls; ``nodes``: lines of the graph's device_put."""
    ops = [
        op("Torch-Compiled Region: 0/0", 50, 500),
        {**mark("## Call CompiledFxGraph key ##", 80, 400, 0), "graph_key": "key"},
        {**op("aten::copy_", 90, 300, 1), "graph_key": "key"},
    ]
    text = "".join(
        f"    # File: /u/train.py:{line} in forward, code: x = x.to(device)\n"
        f'    put_{n}: "f32[4][1]cuda:0" = torch.ops.prims.device_put.default(arg{n}, device)\n\n'
        for n, line in enumerate(nodes)
    )
    tables = window(
        ops,
        [call("cudaStreamSynchronize", 100, 250, "sync")],
        [kernel(0, 200, 0, 1), kernel(900, 50, 890, 2)],
        op_sources=[source(0, 30)],
    )
    graph = {"pass": "cold", "compile_key": "cold:1:0:0/0", "aot_id": "0_inference"}
    code = {**graph, "kind": "output_code", "graph_key": "key"}
    graphs = [{**graph, "kind": "post_grad", "text": text}, code]
    tables.put("graphs", from_rows("graphs", graphs))
    return tables


@pytest.mark.parametrize(
    ("nodes", "line"), [((19, 19), 19), ((19, 22), 30), ((), 30)], ids=["one", "two", "none"]
)
def test_a_wait_in_a_graph_stands_at_its_nodes_line_or_at_the_graphs_call(nodes, line):
    details = step(in_graph(*nodes))[2]
    (row,) = (row for row in details if row["category"] == "idle_sync")
    assert (row["file"], row["line"], row["in_graph"]) == ("/u/train.py", line, True)
    rest = [row for row in details if row["category"] != "idle_sync"]
    assert not any(row["in_graph"] for row in rest if row["what"] == "launch latency")


def python_tables(**more):
    """Two operators with 300 µs of Python between them, and 600 µs around the step's edges."""
    ops = [op("aten::mul", 100, 50), op("aten::add", 450, 50)]
    sources = [source(0, 3, 11), source(1, 6, 14)]
    # In the marked step: line 3 (mul), line 4 for long, line 5 in short, line 6 (add), line 7.
    lines = [
        line_op(9, "/u/train.py:2", "line", 0, 90, None, 2),
        line_op(10, "/u/train.py:3", "line", 100, 100, None, 3),
        line_op(11, "aten::mul", "cpu_op", 150, 40, 10, 3),
        line_op(12, "/u/train.py:4", "line", 200, 5000, None, 4),
        line_op(13, "/u/train.py:6", "line", 5300, 100, None, 6),
        line_op(14, "aten::add", "cpu_op", 5310, 80, 13, 6),
        line_op(15, "/u/train.py:7", "line", 5400, 700, None, 7),
    ]
    return window(ops, **{"op_sources": sources, "line_ops": lines, **more})


def test_python_stands_at_the_line_between_the_same_two_operators():
    # Around a step's edge line 7 after the last operator is longer than line 2 before the first.
    assert rows_of(python_tables(), "python") == {
        ("Python", "/u/train.py", 4): 300, ("Python", "/u/train.py", 7): 600,
    }  # fmt: skip


def test_a_call_without_an_operator_stands_at_its_own_line():
    """``torch.cuda.synchronize()`` between two operators: line 4 is longer there, and has none."""
    tables = python_tables()
    calls = [{**HEAD, **call("cudaDeviceSynchronize", 200, 100, "sync")}]
    tables.put("kernel_launches", from_rows("kernel_launches", calls))
    tables.put("kernels", from_rows("kernels", [{**HEAD, **kernel(160, 50, 110, 1)}]))
    more = [
        line_op(16, "/u/train.py:5", "line", 5200, 90, None, 5),
        line_op(17, "cudaDeviceSynchronize", "call", 5210, 60, 16, 5),
    ]
    rows = [{**HEAD, **row} for row in more]
    tables.put("line_ops", pl.concat([tables["line_ops"], from_rows("line_ops", rows)]))
    assert list(rows_of(tables, "idle_sync")) == [("cudaDeviceSynchronize", "/u/train.py", 5)]


def test_python_around_a_steps_edge_lies_between_its_last_and_first_operator():
    marks = [("traceview step 1", 0), ("traceview step 2", 1000), ("traceview step 3", 2000)]
    head = {**HEAD, "tid": "1", "category": "other", "kind": "cpu_op"}
    rows = [
        {**head, "op_id": 90 + n, "name": name, "kind": "user_annotation", "category": "mark",
         "step": n, "start_ns": at * 1000, "duration_ns": 1_000_000}
        for n, (name, at) in enumerate(marks)
    ]  # fmt: skip
    rows += [
        {**head, "op_id": 2 * n + k, "name": name, "step": n,
         "start_ns": (n * 1000 + at) * 1000, "duration_ns": 50_000}
        for n in range(3) for k, (name, at) in enumerate([("aten::mul", 100), ("aten::add", 450)])
    ]  # fmt: skip
    tables = python_tables()
    tables.put("cpu_ops", from_rows("cpu_ops", rows))
    sources = [{**HEAD, **source(n, 3, 11 + 3 * (n % 2))} for n in range(6)]
    tables.put("op_sources", from_rows("op_sources", sources))
    assert rows_of(tables, "python") == {
        ("Python", "/u/train.py", 4): 300, ("Python", "/u/train.py", 7): 600,
    }  # fmt: skip


@pytest.mark.parametrize("missing", ["op_sources", "line_ops"])
def test_without_lines_python_is_just_python(missing):
    found = rows_of(python_tables(**{missing: []}), "python")
    assert found == {("Python", None, None): 900}


def test_an_operator_that_the_marked_step_lacks_hides_its_neighbours():
    ops = [op("aten::mul", 100, 50), op("aten::sub", 200, 50), op("aten::add", 450, 50)]
    sources = [source(0, 3, 11), source(2, 6, 14)]
    tables = python_tables()
    rows = [{**HEAD, **row, "op_id": n} for n, row in enumerate(ops)]
    others = tables["cpu_ops"].filter(pl.col("op_id") == 900)
    tables.put("cpu_ops", pl.concat([others, from_rows("cpu_ops", rows)]))
    tables.put("op_sources", from_rows("op_sources", [{**HEAD, **row} for row in sources]))
    assert rows_of(tables, "python") == {
        ("Python", None, None): 50 + 200, ("Python", "/u/train.py", 7): 600,
    }  # fmt: skip


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def loader_tables(*lines):
    """500 µs in a loader's mark; the marked step has it at each of ``lines``."""
    marked = [
        row
        for n, at in enumerate(lines)
        for row in (
            line_op(2 * n, f"/u/train.py:{at}", "line", 1000 * n, 900, None, at),
            line_op(2 * n + 1, LOADER, "user_annotation", 1000 * n + 10, 800, 2 * n, at),
        )
    ]
    return window([mark(LOADER, 100, 500), op("aten::cat", 700, 50)], line_ops=marked)


def test_data_loading_stands_at_the_line_that_asks_for_a_batch():
    assert rows_of(loader_tables(12), "data_loading") == {(LOADER, "/u/train.py", 12): 500}
    assert rows_of(loader_tables(12, 12), "data_loading") == {(LOADER, "/u/train.py", 12): 500}


def test_two_loaders_of_one_name_have_no_line():
    assert rows_of(loader_tables(12, 40), "data_loading") == {(LOADER, None, None): 500}


def test_python_that_a_mark_cuts_counts_once_and_an_operator_as_often_as_it_ran():
    ops = [
        op("aten::mm", 0, 100, category="gemm"), op("aten::t", 40, 10, parent=0),
        mark("traceview call 0", 300, 100), op("aten::mm", 900, 100, category="gemm"),
    ]  # fmt: skip
    counts = {row["what"]: row["count"] for row in step(window(ops))[2]}
    assert counts == {"aten::mm": 2, "aten::t": 1, "Python": 1}
