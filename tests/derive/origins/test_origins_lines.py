"""Operators of a timing window with the lines that another, marked step of the script shows."""

from types import SimpleNamespace

import pytest

from traceview.derive.origins.lines import moved_lines, op_sources
from traceview.derive.origins.tree import forward_rows, with_context
from traceview.tables import from_rows
from traceview.torchtext import marks

WINDOW = SimpleNamespace(stance="eager", main_tid="1")


def timed(*rows, steps=1):
    """cpu_ops of ``steps`` equal steps; a row is (name, parent row or None, more columns)."""
    made = [
        {"pass": "cold", "stance": "eager", "step": step, "op_id": n + step * len(rows), "tid": "1",
         "name": name, "kind": "cpu_op", "category": "other", "start_ns": n + 1000 * step,
         "parent_id": None if parent is None else parent + step * len(rows), **more}
        for step in range(steps)
        for n, (name, parent, more) in enumerate(rows)
    ]  # fmt: skip
    ops = with_context(from_rows("cpu_ops", made))
    return ops.with_columns(forward_row=forward_rows(ops))


def marked(*rows):
    """line_ops of one step; a row is (name, parent row or None, line or None, more columns)."""
    return from_rows("line_ops", [
        {"pass": "cold", "stance": "eager", "op_id": n, "parent_id": parent, "name": name,
         "tid": "1", "kind": "line" if name.startswith("/s.py") else "cpu_op", "start_ns": n * 50,
         "file": "/s.py" if line else None, "line": line, **more}
        for n, (name, parent, line, more) in enumerate(rows)
    ])  # fmt: skip


LINES = marked(
    ("/s.py:3", None, 3, {}),
    ("aten::linear", 0, 3, {}),
    ("aten::addmm", 1, 3, {}),
    ("/s.py:4", None, 4, {}),
    ("aten::linear", 3, 4, {}),
    ("aten::addmm", 4, 4, {}),
    ("aten::gelu", 3, 4, {}),
)


def found(ops, lines=LINES):
    rows = op_sources(WINDOW, ops, lines, from_rows("compiles", ())).to_dicts()
    return {row["op_id"]: (row["line"], row["how"], row["line_op_id"]) for row in rows}


def test_the_nth_operator_of_a_name_and_parent_has_the_nth_ones_line():
    ops = timed(
        ("aten::linear", None, {}),
        ("aten::addmm", 0, {}),
        ("aten::linear", None, {}),
        ("aten::addmm", 2, {}),
        ("aten::gelu", None, {}),
        steps=2,
    )
    first = {
        0: (3, "line", 1), 1: (3, "line", 2), 2: (4, "line", 4), 3: (4, "line", 5),
        4: (4, "line", 6),
    }  # fmt: skip
    assert found(ops) == first | {n + 5: seen for n, seen in first.items()}


def test_where_the_steps_differ_nothing_is_said():
    ops = timed(("aten::linear", None, {}), ("aten::addmm", 0, {}), ("aten::gelu", None, {}))
    assert found(ops) == {2: (4, "line", 6)}


def test_the_same_name_below_another_operator_is_another_one():
    ops = timed(("aten::mlp", None, {}), ("aten::gelu", 0, {}))
    assert found(ops) == {}


def test_a_backward_has_the_line_of_its_forward():
    ops = timed(
        ("aten::gelu", None, {"sequence": 5}),
        (marks.AUTOGRAD + "GeluBackward0", None, {"sequence": 5, "tid": "2"}),
        ("aten::gelu_backward", 1, {"tid": "2"}),
    )
    assert found(ops) == {0: (4, "line", 6), 1: (4, "forward", None), 2: (4, "forward", None)}


@pytest.mark.parametrize("lines", [marked(), marked(("aten::gelu", None, None, {}))])
def test_without_marked_lines_there_are_none(lines):
    assert found(timed(("aten::gelu", None, {})), lines) == {}


def test_a_compiled_frames_first_line_is_no_line():
    compiles = from_rows(
        "compiles", [{"pass": "cold", "co_filename": "/s.py", "co_firstlineno": 3}]
    )
    ops = timed(("aten::linear", None, {}), ("aten::linear", None, {}))
    lines = {
        stance: [
            row["line"]
            for row in op_sources(
                SimpleNamespace(stance=stance, main_tid="1"), ops, LINES, compiles
            ).iter_rows(named=True)
        ]
        for stance in ("eager", "compiled")
    }
    assert lines == {"eager": [3, 4], "compiled": [None, 4]}


@pytest.mark.parametrize(("lines", "moved"), [((22,), "/u/net.py:22"), ((22, 23), None)])
def test_copies_between_devices_stand_at_the_one_line_of_their_nodes(lines, moved):
    text = "".join(
        f"        # File: /u/net.py:{line} in forward, code: x.to(device)\n"
        f'        put_{line}: "f32[8][1]cuda:0" = torch.ops.prims.device_put.default(a, device)\n\n'
        for line in lines
    )
    of = {"compile_key": "k", "aot_id": "0_inference"}
    graphs = from_rows(
        "graphs",
        [
            {**of, "kind": "post_grad", "text": text},
            {**of, "kind": "output_code", "graph_key": "f"},
        ],
    )
    window = SimpleNamespace(own=lambda table: table)
    found = moved_lines({"graphs": graphs}, window)
    assert found.rows() == ([("f", moved)] if moved else [])
