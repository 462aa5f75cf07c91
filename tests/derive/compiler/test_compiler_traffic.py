"""Bytes that the operations of a graph move: by hand and on recorded graphs."""

import polars as pl

from traceview.derive.compiler.traffic import Shared, apart, traffic
from traceview.torchtext.fx import read_graph

GRAPH = """
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[8, 4][4, 1]cpu", arg1_1: "bf16[4][1]cpu", s0: "Sym(s77)"):
        # File: /home/me/train.py:7 in forward, code: y = x.t() + 1
        permute: "f32[4, 8][1, 4]cpu" = torch.ops.aten.permute.default(arg0_1, [1, 0])
        add: "f32[4, 8][1, 4]cpu" = torch.ops.aten.add.Tensor(permute, 1);  permute = None
        select: "f32[8][1]cpu" = torch.ops.aten.select.int(add, 0, 0)

        var_mean = torch.ops.aten.var_mean.correction(add, [0], correction = 0)
        getitem: "f32[8][1]cpu" = var_mean[0]
        getitem_1: "f32[8][1]cpu" = var_mean[1];  var_mean = None
        mul: "f32[8][1]cpu" = torch.ops.aten.mul.Tensor(select, getitem_1)
        return (mul, getitem)
"""


def test_a_view_is_read_where_it_points_and_never_beyond_what_it_holds():
    graph = read_graph(GRAPH)
    assert traffic(graph, ["permute"]) == 0
    assert traffic(graph, ["add"]) == 128 + 128  # reads arg0_1 through permute, writes its result
    assert traffic(graph, ["var_mean"]) == 128 + 32 + 32  # both results are picked out and used
    assert traffic(graph, ["mul"]) == 32 + 32 + 32  # 8 of add's 32 elements, by select
    assert apart(graph) == 256 + 192 + 96


def test_one_kernel_writes_nothing_that_only_it_reads():
    graph = read_graph(GRAPH)
    everything = ["permute", "add", "select", "var_mean", "getitem", "getitem_1", "mul"]
    assert traffic(graph, everything) == 128 + 32 + 32  # arg0_1 in; mul and getitem out


def test_in_place_operations_write_what_they_are_given_and_look_ups_read_what_they_find():
    graph = read_graph(
        """
    def forward(self, x: "f32[8][1]cpu", table: "f32[99, 4][4, 1]cpu", at: "i64[2][1]cpu"):
        copy_: "f32[8][1]cpu" = torch.ops.aten.copy_.default(x, x)
        embedding: "f32[2, 4][4, 1]cpu" = torch.ops.aten.embedding.default(table, at)
        return (embedding,)
"""
    )
    assert traffic(graph, ["embedding"]) == 32 + 16 + 32  # two rows, their numbers, the result
    overwritten = GRAPH.replace("return (mul, getitem)", "return (mul,)").replace(
        "        return",
        '        c: "f32[8]" = torch.ops.aten.copy_.default(getitem, mul)\n        return',
    )
    graph = read_graph(overwritten)
    assert traffic(graph, ["c"]) == 32 + 32  # reads mul, overwrites getitem
    assert traffic(graph, ["mul", "c"]) == 32 + 32 + 32 + 32  # two in; mul, and what c overwrites


def test_what_another_kernel_computed_is_read_and_what_it_computes_anew_is_not_written():
    graph = read_graph(GRAPH)
    reduced = Shared(elsewhere=frozenset(["var_mean"]))
    assert traffic(graph, ["var_mean", "mul"], reduced) == 32 + 32 + 32
    held = dict.fromkeys(["add", "mul", "var_mean"], 1)
    inlined = Shared(again=frozenset(["add"]), holders=held)
    assert traffic(graph, ["add"], inlined) == 128  # its only users compute it for themselves


def test_an_unknown_size_makes_the_sum_unknown():
    graph = read_graph(GRAPH.replace("f32[8][1]cpu", "f32[s0][1]cpu"))
    assert traffic(graph, ["add"]) == 256
    assert traffic(graph, ["mul"]) is None
    assert apart(graph) is None


def test_recorded_graph_against_a_sum_by_hand(tables_of):
    """12 addmm of 16x256 by 256x256, 12 tanh, 14 add, one mul and one copy_, all in float16."""
    tables = tables_of("gpu-cg_skip_mutation")
    text = tables["graphs"].filter(pl.col("kind") == "post_grad")["text"][0]
    state, weight, bias = 16 * 256 * 2, 256 * 256 * 2, 256 * 2
    addmm = weight + bias + state + state
    assert apart(read_graph(text)) == 12 * addmm + (12 * 2 + 14 * 3 + 2 + 2) * state


def test_a_text_made_to_mislead_ends_all_the_same():
    """A node made of itself, and a chain of views longer than Python's stack."""
    itself = '    def f(self, x: "f32[2]"):\n        x: "f32[2]" = torch.ops.aten.view.default(x)\n'
    assert apart(read_graph(itself)) == 0
    chain = ['        v0: "f32[2]" = torch.ops.aten.ones.default([2])']
    for at in range(5000):
        chain.append(f'        v{at + 1}: "f32[2]" = torch.ops.aten.view.default(v{at}, [2])')
    graph = read_graph("\n".join([*chain, "        return (v5000,)"]))
    assert graph.uses("v0") == {"return"}
    assert graph.base("v5000") == ("v0", 8)
