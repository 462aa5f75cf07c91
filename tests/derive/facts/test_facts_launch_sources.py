"""What the launches of compiled steps are for."""

import pytest

from traceview.derive.facts.host_stalls import equal_work, launch_sources
from traceview.tables import Tables, from_rows
from traceview.torchtext.fx import read_graph

PLACE = "\n    # File: /u/a.py:{} in f, code: y = torch.tanh(x)\n"
RUN = {"pass": "cold", "rank": None, "stance": "compiled"}


def graph(*lines):
    """Operators at lines of the user's: (name, what it reads, line)."""
    text = 'def forward(self, x0: "f32[8]", x1: "f32[8]"):\n' + "".join(
        f'{PLACE.format(line)}    {name}: "f32[8][1]cuda:0" = torch.ops.aten.{call}\n'
        for name, call, line in lines
    )
    return text + "    return (x0,)\n"


def kernel(name, count, line, category="generated_reduction", cpu_op=None):
    return {
        **RUN, "name": name, "cpu_op": cpu_op or name, "category": category, "file": "/u/a.py",
        "line": line, "count": count, "ms": 0.01, "clock": "device", "compile_id": "0/0",
    }  # fmt: skip


def found(kernels, text="", launches=()):
    rows = [{"pass": "cold", "rank": None, "kind": "post_grad", "text": text}]
    tables = Tables(
        {
            "matched_kernels": from_rows("matched_kernels", kernels),
            "graphs": from_rows("graphs", rows if text else []),
            "kernel_launches": from_rows("kernel_launches", [{**RUN, **row} for row in launches]),
        }
    )
    return launch_sources(tables).to_dicts()


ALONE = graph(*((f"y{n}", f"tanh.default(x{n % 2})", 7) for n in range(12)))
CHAIN = graph(*((f"x{n + 2}", f"tanh.default(x{n + 1})", 7) for n in range(12)))


@pytest.mark.parametrize(("text", "times"), [(ALONE, 12), (CHAIN, 0)])
def test_equal_work_is_apart_where_none_needs_another(text, times):
    assert equal_work(read_graph(text), "/u/a.py:7") == times
    rows = found([kernel("triton_a", 12.0, 7), kernel("triton_b", 1.0, 9)], text)
    assert [(row["kind"], row["name"], row["line"]) for row in rows] == (
        [("equal", "12", 7)] if times else []
    )


def test_a_line_with_less_than_half_of_the_launches_is_not_what_they_are_for():
    assert found([kernel("triton_a", 12.0, 7), kernel("triton_b", 13.0, 9)], ALONE) == []


def test_an_operator_of_a_library_that_launches_most():
    rows = [
        kernel("gemmSN", 300.0, 4, "gemm", "aten::linalg_qr"),
        kernel("lacpy", 200.0, 4, "other", "aten::linalg_qr"),
        kernel("triton_a", 20.0, 5),
    ]
    (row,) = found(rows)
    assert (row["kind"], row["name"], row["line"]) == ("operator", "aten::linalg_qr", 4)
    assert (row["count"], row["share"]) == (500.0, pytest.approx(500 / 520))


@pytest.mark.parametrize(("waits", "graph_key", "times"), [(6, "k", 2), (1, "k", 0), (6, None, 0)])
def test_a_value_that_compiled_code_reads_in_each_step(waits, graph_key, times):
    text = graph(("gt", "gt.Scalar(x0, 0)", 3)).replace(
        "    return", "    cond = torch.ops.higher_order.cond(gt, a, b, (x0,))\n    return"
    )
    calls = [{"kind": "launch", "step": step, "graph_key": "k"} for step in range(3)]
    calls += [{"kind": "sync", "step": n % 3, "graph_key": graph_key} for n in range(waits)]
    rows = found([kernel("triton_a", 1.0, 7)], text, calls)
    expected = [("read", "torch.cond", 3, 2.0)] if times else []
    assert [(row["kind"], row["name"], row["line"], row["count"]) for row in rows] == expected
