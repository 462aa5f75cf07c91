"""Table ``promotions``: what makes a graph's results float64."""

import pytest

from traceview.derive.facts.promotions import promoted, promotions
from traceview.tables import Tables, from_rows
from traceview.torchtext.fx import read_graph

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8, 4][4, 1]cpu", L_rate_: "{rate}", L_n_: "f64[][]cpu"):
        l_x_ = L_x_
        l_rate_ = L_rate_
        l_n_ = L_n_

        # File: /u/net.py:7 in forward, code: first = rate[:4]
        first: "f64[4][1]cpu" = l_rate_[slice(0, 4, None)];  l_rate_ = None

        # File: /u/net.py:8 in forward, code: y = x * first
        {line}
        z: "f64[8, 4][4, 1]cpu" = torch.sin(y);  y = None
        return (z,)
"""
TABLE = "f64[9][1]cpu"


def found(rate=TABLE, line='y: "f64[8, 4][4, 1]cpu" = l_x_ * first;  first = None'):
    return promoted(read_graph(GRAPH.format(rate=rate, line=line)))


def test_a_table_next_to_a_narrower_tensor_and_all_that_follows():
    assert found() == (["L_rate_"], {"y", "z"})


@pytest.mark.parametrize(
    "line",
    [
        'y: "f64[8, 4][4, 1]cpu" = l_x_.double()',  # the user's own cast
        'y: "f64[8, 4][4, 1]cpu" = first + first',  # nothing narrower is in it
        'y: "f32[8, 4][4, 1]cpu" = l_x_ * l_n_',  # without dimensions it changes no dtype
    ],
)
def test_what_is_no_promotion(line):
    assert found(line=line) == ([], set())


def test_a_tensor_that_the_graph_makes():
    made = 'made: "f64[4][1]cpu" = torch.linspace(0, 1, 4, dtype = torch.float64)\n        '
    assert found(line=made + 'y: "f64[8, 4][4, 1]cpu" = l_x_ * made')[0] == ["made"]


FILE = {"pass": "cold", "co_filename": "/u/net.py"}
CODES = [("forward", 3), ("forward", 20), ("torch_dynamo_resume_in_forward_at_9", 9)]


@pytest.mark.parametrize(("returned", "ms"), [("z", 3.0), ("l_x_", 1.0)])
def test_the_code_behind_a_break_takes_what_is_float64_on(returned, ms):
    """``forward`` at line 3 breaks at line 9; the other one has a kernel of its own."""
    text = GRAPH.format(rate=TABLE, line='y: "f64[8, 4][4, 1]cpu" = l_x_ * first')
    keys = [f"cold:1:0:{number}/0" for number in range(3)]
    kernels = [f"cpp_fused_{number}" for number in range(3)]
    compiles = [
        {**FILE, "compile_key": key, "co_name": name, "co_firstlineno": line}
        for key, (name, line) in zip(keys, CODES, strict=True)
    ]
    graph = {"pass": "cold", "compile_key": keys[0], "compile_id": "0/0", "attempt": 0}
    graph |= {"kind": "dynamo_output", "text": text.replace("(z,)", f"({returned},)")}
    made = [
        {"pass": "cold", "kernel_name": name, "compile_key": key, "source_code": "double* out"}
        for name, key in zip(kernels, keys, strict=True)
    ]
    ran = [
        {"pass": "cold", "stance": "compiled", "category": "generated_pointwise", "clock": "host"}
        | {"name": name, "ms": each}
        for name, each in zip(kernels, (1.0, 8.0, 2.0), strict=True)
    ]
    given = {"compiles": compiles, "graphs": [graph], "generated_kernels": made}
    given |= {"matched_kernels": ran, "guards": []}
    tables = Tables({name: from_rows(name, rows) for name, rows in given.items()})
    (row,) = promotions(tables).to_dicts()
    assert (row["ms"], row["returned"]) == (ms, returned == "z")
