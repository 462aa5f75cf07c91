"""Lines that bring values from a GPU to the host."""

import pytest

from traceview.derive.host_reads import host_reads, reads
from traceview.tables import Tables, from_rows

IN = {"pass": "cold", "stance": "compiled"}
SCALAR = ("Memcpy DtoH (Device -> Pinned)", "aten::_local_scalar_dense")
TENSOR = ("Memcpy DtoH (Device -> Pageable)", "aten::copy_")
UP = ("Memcpy HtoD (Pageable -> Device)", "aten::copy_")
SOURCE = "total = 0\nfor x in data:\n    total += f(x).item()\n    y = f(x.to(gpu)).cpu()\n"


def table(*copies, steps=2, waits=(), rank=None):
    """Rows of ``host_reads``; a copy is (kind, line, µs of its start, more)."""
    head = IN | {"rank": rank}
    made = {"kernels": [], "op_sources": [], "cpu_ops": [], "kernel_launches": []}
    for op, ((name, cpu_op), line, at, more) in enumerate(copies):
        made["kernels"].append(
            head
            | {"kind": "memcpy", "name": name, "cpu_op": cpu_op, "cpu_op_id": op}
            | {"launch_start_ns": 1000 * at, "launch_duration_ns": 3_000}
            | more
        )
        made["op_sources"].append(head | {"op_id": op, "file": "t.py", "line": line})
        inside = {"op_id": op, "start_ns": 1000 * at - 1, "duration_ns": 40_000}
        made["cpu_ops"].append(head | inside)
    for at, ns in waits:
        call = {"kind": "sync", "start_ns": 1000 * at, "duration_ns": ns}
        made["kernel_launches"].append(head | call)
    made["step_counts"] = [head | {"steps": steps}]
    tables = Tables({name: from_rows(name, rows) for name, rows in made.items()})
    return host_reads(tables, {"t.py": SOURCE}.get).to_dicts()


def at(line, kind=SCALAR, start=0, **more):
    return kind, line, start, more


@pytest.mark.parametrize("rank", [None, 0])
def test_a_line_with_its_waits(rank):
    waits = [(110, 20_000), (310, 10_000)]
    (row,) = table(at(3, start=100), at(3, start=300), waits=waits, rank=rank)
    assert (row["file"], row["line"], row["asks"]) == ("t.py", 3, ".item()")
    assert (row["scalars"], row["tensors"]) == (1.0, 0.0)
    assert row["waited_ms"] == pytest.approx(0.015)


def test_a_copy_to_pageable_memory_waits_in_its_own_call():
    (row,) = table(at(4, TENSOR, 100), steps=1)
    assert (row["asks"], row["tensors"]) == (".cpu()", 1.0)
    assert row["waited_ms"] == pytest.approx(0.003)


def test_a_wait_after_the_operator_is_not_the_copys():
    (row,) = table(at(3, start=100), waits=[(150, 20_000)])
    assert row["waited_ms"] == 0.0


def test_compiled_code_and_lines_that_copy_both_ways_are_left_out():
    assert table(at(3, region="0")) == []
    assert table(at(4, TENSOR), at(4, UP)) == []
    assert table(at(4, UP)) == []


def test_a_line_that_asks_for_nothing_by_itself():
    (row,) = table(at(1))
    assert row["asks"] is None


ASKS = {
    "losses.append(loss.item())": ".item()",
    "best = min(best, float(loss))": "float()",
    "print(loss)": "print()",
    "x = y.detach().cpu().numpy()": ".numpy()",
    "x = y.to('cpu', non_blocking=True)": '.to("cpu")',
    "x = y.to(device='cpu')": '.to("cpu")',
    "if loss < best: best = loss": "if",
    "while norm(g) > 1: g = step(g)": "while",
    "x = a if flag else b": "if",
    "assert ok": "assert",
    "name = f'{loss:.3f}'": "a format string",
    "scaler.step(optimizer)": None,
    "x = y.to(device)": None,
    "def (": None,
    "": None,
    "x = y.to(a" + ".b" * 5000 + ")": None,
}


@pytest.mark.parametrize("source", ASKS)
def test_what_a_line_asks_for(source):
    assert next(reads(source, 1), None) == ASKS[source]


def test_a_call_over_several_lines_asks_on_each():
    source = "x = (\n    model(y)\n    .sum()\n    .item()\n)\n"
    assert list(reads(source, 3)) == [".item()"]
    assert list(reads(source, 1)) == []


def test_a_body_is_not_its_condition():
    assert list(reads("if step % 10 == 0:\n    update(loss)\n", 2)) == []
