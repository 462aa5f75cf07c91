"""FX graphs' texts: nodes, what they read, their lines and their operators."""

import polars as pl
import pytest

from traceview.torchtext import fx
from traceview.torchtext.dtypes import dtype_of
from traceview.torchtext.fx import (
    VIEWS,
    lowered_operators,
    node_lines,
    operator_lines,
    operator_word,
    read_graph,
    read_nodes,
    stored_lines,
    tensor_bytes,
)

TORCH = "/x/lib/python3.11/site-packages/torch"
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
# As Dynamo and the post-grad passes print them (torch/fx/graph.py), shortened.
COMMENTED = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8]"):
        l_x_ = L_x_

         # File: /home/me/train.py:7 in step, code: y = x.sin()
        sin: "f32[8]" = l_x_.sin();  l_x_ = None
        y = sin + 1;  sin = None

        late: "f32[8]" = y * 2

         # File: {TORCH}/nn/functional.py:9 in relu, code: return torch.relu(x)
        relu = torch.relu(late)

        # File: /home/me/train.py:8 in step, code: y += 1  # File: /home/me/other.py:1 in f
        y += relu;  iadd: "f32[8]" = y;  y = relu = None
        return (iadd,)
"""
POST = """\
        sin: "f32[8]" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
        getitem = native_dropout[0]
        add: "f32[8]" = torch.ops.aten.add.Tensor(sin, 1);  sin = None
"""
TRACED = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8][1]cpu", L_w_: "f32[8][1]cpu"):
        l_x_ = L_x_

        # File: /home/me/s.py:3 in forward, code: y = 1 - x * w
        mul: "f32[8][1]cpu" = l_x_ * L_w_
        y: "f32[8][1]cpu" = 1 - mul;  mul = None

        # File: /home/me/s.py:4 in forward, code: y += x
        y += l_x_;  iadd: "f32[8][1]cpu" = y;  y = None
        linear = torch._C._nn.linear(iadd, L_w_, None)
        b = torch.ops.mylib.shift.default(linear)
        n = -b
        eps = 1e-05 + n
        half = n.half()

        # File: /x/site-packages/torch/nn/modules/normalization.py:9 in forward, code: return F.x()
        h = torch.nn.functional.layer_norm(half, (8,))
        getitem = h[0]
        return (getitem,)
"""


@pytest.mark.parametrize(
    ("meta", "size"),
    [
        ("f32[8, 4][4, 1]cpu", 128),
        ("bf16[3][1]cuda:0", 6),
        ("f32[][]cpu", 4),
        ("b8[5][1]cpu", 5),
        ("f8e4m3fn[16][1]cuda:0", 16),
        ("f32[s77, 4][4, 1]cpu", None),
        ("Sym(s77)", None),
        ("q99[4][1]cpu", None),
        ("f32[²][1]cpu", None),
        (f"f32[{'9' * 5000}][1]cpu", None),
        (f"f32[{'9' * 18}, 999][1]cpu", None),
        ("", None),
    ],
)
def test_bytes_of_a_tensor_are_known_only_with_its_sizes_and_dtype(meta, size):
    assert tensor_bytes(meta) == size


def test_nodes_know_what_they_read_and_where_they_come_from():
    graph = read_graph(GRAPH)
    assert [node.op for node in graph.operations] == [
        "aten.permute", "aten.add", "aten.select", "aten.var_mean", "getitem", "getitem",
        "aten.mul",
    ]  # fmt: skip
    assert graph.nodes["mul"].inputs == ("select", "getitem_1")
    assert graph.nodes["add"].user_line == "/home/me/train.py:7"
    assert graph.nodes["mul"].user_line is None  # a blank line ends what a comment is about
    assert graph.outputs == {"mul", "getitem"}


@pytest.mark.parametrize("name", ["healthy-mlp_training", "gpu-transformer_training"])
def test_every_recorded_graph_is_parsed_to_its_last_node(tables_of, name):
    graphs = tables_of(name)["graphs"].filter(pl.col("node_count").is_not_null())
    assert graphs.height >= 10
    for kind, text, nodes in graphs.select("kind", "text", "node_count").iter_rows():
        graph = read_graph(text)
        assert len(graph.operations) == nodes, kind
        assert graph.outputs, kind


def test_text_that_is_no_graph_gives_an_empty_one():
    assert not read_graph('x = 1\n  return: "f32[2]"\n\x00{').operations


def test_nodes_have_the_line_of_the_comment_above_them():
    found = node_lines(COMMENTED)
    assert {name: found[name] for name in ("sin", "y", "iadd")} == {
        "sin": "/home/me/train.py:7",
        "y": "/home/me/train.py:7",
        "iadd": "/home/me/train.py:8",
    }


def test_a_node_behind_an_empty_line_or_of_a_package_has_no_line_of_the_user():
    found = node_lines(COMMENTED)
    assert [found.get(name) for name in ("l_x_", "late", "relu", "unknown")] == [None] * 4
    assert list(dict.fromkeys(found.values())) == ["/home/me/train.py:7", "/home/me/train.py:8"]


def test_a_value_leads_to_the_line_that_stores_it():
    text = """
        # File: /u/a.py:7 in forward, code: h = h * 2
        h: "f32[4][1]cpu" = l_x_ * 2;  l_x_ = None

        # File: /u/a.py:8 in forward, code: out[i] = h
        out[0] = h;  setitem = out;  setitem = None

        # File: /u/a.py:9 in forward, code: g = h + 1
        g: "f32[4][1]cpu" = h + 1

        # File: /u/a.py:10 in forward, code: out[1] = g
        out[(1, slice(None, 2, None))] = g;  setitem_1 = out;  setitem_1 = None

        # File: /u/a.py:11 in forward, code: out[2] = g
        out[2] = g;  setitem_2 = out;  setitem_2 = None
"""
    assert stored_lines(text) == {"/u/a.py:7": "/u/a.py:8"}


def test_operators_of_a_post_grad_graph_are_in_its_order():
    assert list(lowered_operators(POST).items()) == [("sin", "aten.sin"), ("add", "aten.add")]


def test_every_node_has_the_word_of_its_operator_and_the_users_line():
    three, four = "/home/me/s.py:3", "/home/me/s.py:4"
    assert operator_lines(TRACED) == [
        ("mul", three), ("sub", three), ("add", four), ("linear", four), ("shift", four),
        ("neg", four), ("add", four), ("to", four), ("layer_norm", None),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "    x = \n" * 999, "    a += ;  b = \n", "(" * 10_000])
def test_other_text_is_no_graph(text):
    assert operator_lines(text) == []


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("aten::add_", "add"), ("aten.add.Tensor", "add"), ("aten::rsub", "sub"),
        ("torch.ops.aten.mm.default", "mm"), ("mylib::shift_rows", "shift_rows"), ("gelu", "gelu"),
        ("aten::_to_copy", "_to_copy"), ("", ""),
    ],
)  # fmt: skip
def test_one_word_for_all_spellings_of_an_operator(name, word):
    assert operator_word(name) == word


def test_signs_are_pythons_operators_as_they_are_in_fx():
    nodes = {node.name: (node.target, node.args) for node in read_nodes(TRACED)}
    assert nodes["mul"] == ("operator.mul", "l_x_ * L_w_")
    assert nodes["iadd"] == ("operator.iadd", "y += l_x_")
    assert nodes["n"] == ("operator.neg", "-b")
    assert nodes["getitem"] == ("operator.getitem", "h[0]")
    assert nodes["half"] == ("n.half", "()")
    assert nodes["l_x_"] == ("", "L_x_")


def test_inputs_are_known_with_or_without_annotation_and_outputs_over_several_lines():
    text = """
    def forward(self, x: "f32[8][1]cpu", y):
        add: "f32[8][1]cpu" = torch.ops.aten.add.Tensor(x, y);  x = y = None
        return pytree.tree_unflatten([
            add,  # PlainAOTOutput(idx=0)
        ], self._out_spec)

    class body(torch.nn.Module):
        def forward(self, mul):
            return (mul,)
"""
    graph = read_graph(text)
    assert [node.name for node in graph.inputs] == ["x", "y"]
    assert graph.nodes["add"].inputs == ("x", "y")
    assert graph.outputs == {"add"}
    assert fx.signature(text) == 'def forward(self, x: "f32[8][1]cpu", y):'


def test_statements_are_the_same_whatever_is_annotated_and_freed():
    one, other = '  y: "f32[8]" = x + 1;  x = None', '  y: "f32[9]" = x + 1'
    assert fx.statement(one) == fx.statement(other) == "y = x + 1"


def test_collectives_are_named_with_their_arguments_and_what_they_give():
    text = """
        out: "f32[16]" = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0')
        done: "f32[16]" = torch.ops._c10d_functional.wait_tensor.default(out);  out = None
"""
    assert fx.collectives(text) == ["all_reduce(x, 'sum', '0') f32[16]"]
    assert fx.collectives(text.replace("c10d", "d01c")) == []
    gather = "_c10d_functional.all_gather_into_tensor.default(x, 4, '0')"
    assert (fx.default_group_size(gather), fx.default_group_size(text)) == (4, None)


#: Their schema returns an alias, but they copy where the memory is not as it has to be; passes
#: write what they become: ``_to_copy``, ``clone``.
MAY_COPY = {"as_tensor", "contiguous", "to", "cpu", "cuda", "pin_memory", "coalesce"}
MAY_COPY |= {"resolve_conj", "resolve_neg"}
#: Parts of sparse tensors, and what a view's backward calls: in no graph that Inductor lowers.
NOT_LOWERED = {"indices", "values", "slice_inverse"}
NOT_LOWERED |= {f"{side}_indices" for side in ("ccol", "col", "crow", "row")}


def test_views_are_what_torchs_schemas_say():
    torch = pytest.importorskip("torch")
    known = set()
    for schema in torch._C._jit_get_all_schemas():
        given = schema.arguments[0].type if schema.arguments else None
        alias = [result.alias_info for result in schema.returns]
        if (
            schema.name.startswith("aten::")
            and isinstance(given, torch.TensorType)
            and any(one is not None and not one.is_write for one in alias)
        ):
            known.add(schema.name.removeprefix("aten::"))
    mine = {view.removeprefix("aten.") for view in VIEWS} - {"_unsafe_view"}
    assert mine - known == set()
    others = {name for name in known - mine if not name.startswith("_")}
    assert others - MAY_COPY - NOT_LOWERED == set()


def test_dtypes_have_torchs_names_abbreviations_and_sizes():
    pytest.importorskip("torch")
    abbreviations = pytest.importorskip("torch.utils._dtype_abbrs").dtype_abbrs
    for dtype, short in abbreviations.items():
        name = dtype_of(short)
        assert name in (None, str(dtype).removeprefix("torch."))
        if name is None:
            assert not (dtype.is_floating_point or dtype.is_complex) or "float4" in str(dtype)
        else:
            assert tensor_bytes(f"{short}[3][1]cpu") == 3 * dtype.itemsize
