"""Calls in generated code with the nodes and lines that provenance, comments and graphs give."""

import json

import pytest
from structured_log_tools import artifact, at, kinds_of, read, record, recorded

CODE = """\
# AOT ID: ['0_backward']
def call(args):
    # Topologically Sorted Source Nodes: [view, mm_1], Original ATen: [aten.view, aten.mm]
    # [Provenance debug handles] extern_kernels.mm:1
    extern_kernels.mm(a, b, out=buf0)
    # Topologically Sorted Source Nodes: [sum_1], Original ATen: [aten.sum]
    # [Provenance debug handles] torch.ops.aten.sum.default:2
    buf1 = torch.ops.aten.sum.default(buf0)
"""
GRAPH = """\
    def forward(self, tangents_1):
        # File: /home/me/s.py:3 in forward, code: y = x.view(8)
        view: "f32[8]" = torch.ops.aten.reshape.default(tangents_1, [8]);  tangents_1 = None

        # File: /home/me/s.py:4 in forward, code: return self.head(y)
        mm_1: "f32[8]" = torch.ops.aten.mm.default(view, b)
        sum_1: "f32[]" = torch.ops.aten.sum.default(mm_1)
"""
STACKS = {
    "extern_kernels.mm:1": [
        '  File "/home/me/s.py", line 9, in run\n    f(x)\n  File "/home/me/s.py", line 3, in g\n',
        '  File "/home/me/s.py", line 9, in run\n    f(x)\n  File "/home/me/s.py", line 4, in g\n',
    ],
    "torch.ops.aten.sum.default:2": ['  File "/home/me/s.py", line 4, in forward\n'],
}


def calls(tmp_path, *parts):
    log = record("inductor_post_grad_graph", {}, payload=GRAPH, **at(0))
    log += record("inductor_output_code", {"filename": "c.py"}, payload=CODE, **at(0))
    tables, damage = read(tmp_path, log + b"".join(parts))
    assert kinds_of(damage) == {}
    return tables["kernel_calls"].sort("order").to_dicts()


def provenance(what, payload):
    name = f"inductor_provenance_tracking_{what}"
    return artifact(name, json.dumps(payload), "json", **at(0))


def test_a_library_call_has_its_own_line_not_those_of_the_views_before_it(tmp_path):
    mm, total = calls(tmp_path, provenance("kernel_stack_traces", STACKS))
    assert (mm["user_lines"], mm["line_origin"]) == (["/home/me/s.py:4"], "provenance")
    assert (total["user_lines"], total["handle"]) == (["/home/me/s.py:4"], 2)
    assert (mm["aot_id"], mm["source_nodes"]) == ("0_backward", ["view", "mm_1"])


def test_without_provenance_the_graphs_comments_give_the_lines(tmp_path):
    mm, total = calls(tmp_path)
    assert (mm["user_lines"], mm["line_origin"]) == (["/home/me/s.py:4"], "comment")
    assert (total["user_lines"], total["line_origin"]) == (["/home/me/s.py:4"], "comment")


def test_node_mappings_name_the_post_grad_nodes(tmp_path):
    mapping = {"cppCodeToPost": {"extern_kernels.mm:1": ["mm_1"]}, "postToPre": {}, "version": 2}
    mm, total = calls(tmp_path, provenance("node_mappings", mapping))
    assert (mm["post_nodes"], total["post_nodes"]) == (["mm_1"], None)


IN_PLACE = """\
# AOT ID: ['0_backward']
def call(args):
    stream0 = get_raw_stream(0)
    aten.index_put_(buf3, [arg3_1], buf2, True)
    del arg3_1
    aten.index_put_(buf3, [arg4_1], buf5, True)
"""
PUTS = """\
    def forward(self, total, i, j, q):
        # File: /home/me/s.py:3 in forward, code: total.index_add_(0, i, q)
        put: "i64[8]" = torch.ops.aten.index_put_.default(total, [i], q, True)

        # File: /home/me/s.py:4 in forward, code: total.index_add_(0, j, q)
        put_1: "i64[8]" = torch.ops.aten.index_put_.default(put, [j], q, True)
"""


def test_calls_without_a_comment_are_the_nodes_of_their_operator_in_order(tmp_path):
    for graph, lines in ((PUTS, [["/home/me/s.py:3"], ["/home/me/s.py:4"]]), (GRAPH, [[], []])):
        log = record("inductor_post_grad_graph", {}, payload=graph, **at(0))
        log += record("inductor_output_code", {"filename": "c.py"}, payload=IN_PLACE, **at(0))
        log += provenance("node_mappings", {"cppCodeToPost": {}, "postToPre": {}, "version": 2})
        folder = tmp_path / str(len(graph))
        folder.mkdir()
        rows = read(folder, log)[0]["kernel_calls"].sort("order").to_dicts()
        assert [row["user_lines"] for row in rows] == lines


@pytest.mark.parametrize(
    "payload", [{}, {"version": 2.0}, {"cppCodeToPost": [1]}, {"cppCodeToPost": {"a:1": 3}}]
)
def test_other_shapes_of_provenance_name_nothing(tmp_path, payload):
    parts = provenance("node_mappings", payload), provenance("kernel_stack_traces", payload)
    assert [row["post_nodes"] for row in calls(tmp_path, *parts)] == [None, None]


def test_recorded_calls_carry_the_key_of_their_code_and_a_line_each(tmp_path):
    tables, _ = read(tmp_path, recorded("inductor"))
    rows, codes = tables["kernel_calls"], tables["graphs"].filter(kind="output_code")
    assert set(rows["graph_key"]) == set(codes["graph_key"])
    sites = tables["generated_kernels"]["launch_sites"].sum()
    assert rows.height == sites > 0
    assert set(rows["line_origin"]) == {"provenance"}
    assert rows["user_lines"].list.len().min() >= 1
    gelu = rows.filter(kernel_name="cpp_fused_gelu_0").row(0, named=True)
    assert gelu["source_nodes"] == ["hidden"]  # by way of post-grad nodes: C++ code names none
    assert set(gelu["ops"]) == {"aten.mul", "aten.erf", "aten.add"}
