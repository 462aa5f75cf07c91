"""Table ``promotions``: what makes a graph's results float64."""

import pytest

from traceview.derive.facts.promotions import promoted
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
