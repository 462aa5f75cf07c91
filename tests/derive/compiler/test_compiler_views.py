"""Views that compiled code returns, from Dynamo's graphs."""

from traceview.torchtext.fx import read_graph

GRAPH = """
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4, 8][8, 1]cpu"):
        l_x_ = L_x_

        # File: /u/train.py:7 in parts, code: first, *_ = x.unbind(0)
        unbind = l_x_.unbind(0)
        first: "f32[8][1]cpu" = unbind[0];  unbind = None
        part: "f32[8][1]cpu" = l_x_[1]
        flat: "f32[2, 4][4, 1]cpu" = first.view(2, 4)

        # File: /u/train.py:8 in parts, code: top = x.max(0)
        max_1 = l_x_.max(0)
        top: "f32[8][1]cpu" = max_1[0];  max_1 = None
        y: "f32[4, 8][8, 1]cpu" = l_x_ + 1
        return (first, part, flat, top, y, l_x_)
"""


def test_views_are_told_from_results_and_from_the_input_itself():
    graph = read_graph(GRAPH)
    views = {name for name in graph.outputs if graph.gives_view(name)}
    assert views == {"first", "part", "flat"}
