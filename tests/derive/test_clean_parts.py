"""Parts of a callable with graph breaks that have none: what they take, how to compile them."""

from __future__ import annotations

import json

import pytest

from traceview.derive.facts.clean_parts import clean_parts
from traceview.tables import Tables, from_rows

SOURCE = """import torch

def score(x):
    return x.sum()

class Other:
    def __init__(self):
        self.layers = None

class Net:
    def __init__(self):
        self.layers = List(
            4)

    def forward(self, x):
        print(x)
        for layer in self.layers:
            x = layer(x)
        y = self.layers[0](x)
        return score(x)

model(x)
"""
HEAD = {"pass": "cold", "rank": 0, "stance": "eager", "file": "/w/t.py"}
#: op, the line that it is below, its line; below each an operator that takes 10 ns.
LINES = [(1, None, 22), (2, 1, 16), (3, 1, 18), (4, 3, 40), (5, 1, 18), (6, 5, 40), (7, 1, 20)]


def tables(*broken, lines=LINES):
    ops = [{**HEAD, "op_id": 0, "name": "traceview step 9", "kind": "user_annotation"}]
    for op, above, line in lines:
        region = None if above is None else "0"
        mark = {"op_id": op, "parent_id": above, "kind": "line", "line": line, "region": region}
        ops.append({**HEAD, **mark, "name": f"/w/t.py:{line}", "duration_ns": 99})
        own = {"op_id": op + 100, "parent_id": op, "kind": "cpu_op", "duration_ns": 10}
        ops.append({**HEAD, **own, "name": "aten::add"})
    ms = {16: 1.0, 18: 2.0, 40: 6.0, 20: 1.0}
    kernels = [{**HEAD, "line": line, "ms": value} for line, value in ms.items()]
    kernels += [{**HEAD, "stance": "compiled", "line": 16, "ms": 0.5}]
    stack = [{"file": "/w/t.py", "line": line, "function": "forward"} for line in broken]
    breaks = [{"pass": "cold", "rank": 0, "user_stack": json.dumps(stack)}] if broken else []
    return Tables(
        {
            "line_ops": from_rows("line_ops", ops),
            "matched_kernels": from_rows("matched_kernels", kernels),
            "graph_breaks": from_rows("graph_breaks", breaks),
        }
    )


def parts(*broken, **keys):
    return clean_parts(tables(*broken, **keys), {"/w/t.py": SOURCE}.get)


def test_the_largest_part_and_the_line_that_compiles_it():
    first, second = parts(16).to_dicts()
    assert (first["line"], first["calls"], first["eager_ms"], first["share"]) == (18, 2, 8.0, 0.8)
    assert (first["rest_eager_ms"], first["rest_compiled_ms"]) == (2.0, 0.5)
    assert (first["callee"], first["edit_line"], first["before"]) == ("layer", 13, False)
    assert first["added"] == "for layer in self.layers: layer.compile()"
    assert (second["line"], second["edit_line"], second["before"]) == (20, 3, True)
    assert second["added"] == "@torch.compile"


def test_a_line_below_that_breaks_takes_the_lines_above_with_it():
    assert parts(40)["line"].to_list() == [16, 20]


@pytest.mark.parametrize("broken", [(), (99,)])
def test_without_a_break_in_these_lines_there_is_no_part(broken):
    assert parts(*broken).is_empty()


def test_it_is_not_known_without_lines():
    assert clean_parts(Tables({"graph_breaks": from_rows("graph_breaks", [])}), {}.get) is None


def test_what_no_line_of_the_file_makes_has_no_line_to_add():
    found = parts(18, 20)
    assert found.select("line", "callee").rows() == [(40, None), (16, None)]
