"""A step played again without the values that a place reads from the GPU."""

import pytest
from step_tables import call, kernel, op, window

from traceview.derive.profile import profile_tables
from traceview.derive.time.read_replays import Place, places

COPY = "Memcpy DtoH (Device -> Pinned)"
ITEM = {"kind": "memcpy", "cpu_op": "aten::_local_scalar_dense"}


def read(ops, calls, kernels, at, free, line):
    """``.item()`` at ``at`` while the device works until ``free``: when the host goes on."""
    back = max(at + 4, free) + 6
    ops.append(op("aten::_local_scalar_dense", at, back - at + 1))
    number, correlation = len(ops) - 1, 100 + len(ops)
    calls.append(call("cudaMemcpyAsync", at + 1, 2, "copy", correlation))
    copy = kernel(max(at + 4, free), 2, at + 1, correlation, COPY, "copy", cpu_op_id=number)
    kernels.append(copy | ITEM)
    calls.append(call("cudaStreamSynchronize", at + 3, back - at - 3, "sync"))
    return back + 1, {"op_id": number, "file": "/u/train.py", "line": line, "how": "line"}


def replays(ops, calls, kernels, sources, end):
    tables = window(ops, calls, kernels, end=end, op_sources=sources)
    return profile_tables(tables)["read_replays"].to_dicts()


def test_a_host_that_is_not_held_leaves_the_gpu_the_longer_way():
    """400 µs of work, its value is read, then 300 µs of host time before 300 µs of work."""
    ops, calls = [op("aten::mm", 0, 8)], [call("cuLaunchKernel", 2, 2, correlation=1, kernels=1)]
    kernels = [kernel(10, 400, 2, 1, cpu_op_id=0)]
    on, source = read(ops, calls, kernels, 20, 410, 7)
    ops.append(op("aten::mm", on, 304))
    calls.append(call("cuLaunchKernel", on + 300, 2, correlation=2, kernels=1))
    kernels.append(kernel(on + 308, 300, on + 300, 2, cpu_op_id=2))
    (row,) = replays(ops, calls, kernels, [source], on + 608)
    assert (row["file"], row["line"], row["last_line"]) == ("/u/train.py", 7, 7)
    assert row["step_ms"] == pytest.approx(1.025, abs=0.01)
    # The GPU works 702 µs and goes from one kernel to the next; the host would take 330.
    assert row["without_ms"] == pytest.approx(0.705, abs=0.01)


def test_of_a_place_that_reads_several_values_all_goes():
    """Ten times 20 µs of launching for a kernel of 5 µs and its value, and 100 µs of other work."""
    ops, calls = [op("aten::mm", 0, 8)], [call("cuLaunchKernel", 2, 2, correlation=1, kernels=1)]
    kernels, sources, on = [kernel(10, 100, 2, 1, cpu_op_id=0)], [], 10
    for _ in range(10):
        ops.append(op("aten::norm", on, 20))
        number = len(ops) - 1
        calls.append(call("cuLaunchKernel", on + 15, 2, correlation=10 + number, kernels=1))
        begun = max(on + 21, 112)
        kernels.append(kernel(begun, 5, on + 15, 10 + number, "norm", cpu_op_id=number))
        sources.append({"op_id": number, "file": "/u/train.py", "line": 7, "how": "line"})
        on, source = read(ops, calls, kernels, on + 20, begun + 5, 7)
        sources.append(source)
    (row,) = replays(ops, calls, kernels, sources, on)
    assert row["step_ms"] > 0.4
    assert row["without_ms"] == pytest.approx(0.1, abs=0.01)


def test_neighbours_that_read_equally_many_values_are_one_place():
    def line(number, scalars, file="a.py"):
        return {"file": file, "line": number, "scalars": scalars}

    rows = [line(9, 4.0), line(7, 4.0), line(8, 4.0, "b.py"), line(30, 4.0), line(31, 3.0)]
    assert places([*rows, line(40, 1.0), line(41, 1.0)]) == [
        Place("a.py", [7, 9], 4.0), Place("a.py", [30], 4.0), Place("a.py", [31], 3.0),
        Place("a.py", [40], 1.0), Place("a.py", [41], 1.0), Place("b.py", [8], 4.0),
    ]  # fmt: skip
