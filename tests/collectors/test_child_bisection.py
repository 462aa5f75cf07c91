"""What is wrong, followed to its operator: the pure parts, and graphs cut into pieces."""

import contextlib
import io
import operator

import pytest

from traceview.collectors.child.bisection import least
from traceview.collectors.child.frames import Frames
from traceview.collectors.child.operators import Ran, first_unlike, undeclared, users_line
from traceview.collectors.child.pieces import (
    Pieces,
    cut_points,
    definition,
    kernel_of,
    module_name,
    operator_name,
    piece_of,
)
from traceview.collectors.child.standalone import DIFFERS, Standalone, short


@pytest.fixture(scope="module", autouse=True)
def import_torch():
    """Here, since it takes seconds of every worker that collects this module."""
    global torch
    torch = pytest.importorskip("torch")


def test_the_least_number_that_is_wrong():
    for wanted in range(1, 9):
        asked = []
        assert least(1, 8, lambda n: asked.append(n) or n >= wanted) == wanted  # noqa: B023
        assert len(asked) <= 3


def test_names_are_short_and_those_of_the_user():
    assert short("l_self_modules_gate_parameters_weight_") == "gate_weight"
    assert short("L_x_") == "L_x"
    assert short("l_self_modules_0_parameters_bias_") == "p_0_bias"
    assert module_name("L['self']._modules['0'].attn") == "0.attn"
    assert module_name("L['fn'].1") == "1"
    assert module_name("L['self']") == "self"
    assert module_name("G['model'].layers") == "model.layers"


def test_a_line_is_the_innermost_of_the_users():
    frames = Frames("/lib/torch/__init__.py", "/u")
    stack = (
        '  File "/u/train.py", line 3, in run\n    net(x)\n'
        '  File "/u/net.py", line 7, in forward\n    return relu(x)\n'
        '  File "/lib/torch/nn/functional.py", line 9, in relu\n'
    )
    assert users_line(stack, frames) == ("/u/net.py", 7)
    assert users_line(None, frames) is None


def test_a_function_is_where_its_innermost_one_is():
    def inner():
        pass

    def outer():
        pass

    outer.__wrapped__ = inner
    assert definition(outer) == (__file__, inner.__code__.co_firstlineno)
    assert definition(None) is None


def test_a_kernel_is_named_by_its_operators():
    text = "cpp_fused_add_0 = async_compile.cpp_pybinding(\ncpp_fused_erf_mul_1 = async_compile.c"
    assert kernel_of("aten.erf", [text]) == "cpp_fused_erf_mul_1"
    assert kernel_of("aten.tanh", [text]) is None
    assert kernel_of("aten.tanh", [text.partition("\n")[0]]) == "cpp_fused_add_0"


def ran(name, size=1.0, line=1):
    return Ran(name, (name, ((2,), "float32")), (size,), "net.py", line, backward=False)


def test_the_first_operator_that_is_another_or_gives_something_else():
    eager = [ran("aten.mm"), ran("aten.tanh"), ran("aten.sum", 3.0)]
    assert first_unlike(eager, eager) is None
    relu = ran("aten.relu", line=5)
    assert first_unlike(eager, [eager[0], relu, eager[2]]) is relu
    other = ran("aten.sum", 3.1, line=6)
    assert first_unlike(eager, [*eager[:2], other]) is other
    assert first_unlike(eager, eager[:2]) is eager[2]


def test_operators_have_the_names_of_torchs_own():
    aten = torch.ops.aten
    assert operator_name(aten.gelu.default, torch) == "aten.gelu"
    assert operator_name(aten.ge.Tensor, torch) == "aten.ge.Tensor"
    names = [torch.sigmoid, "clone", operator.truediv, operator.setitem, torch._C._nn.linear]
    assert [operator_name(each, torch) for each in names] == [
        "aten.sigmoid", "aten.clone", "aten.div", "aten.copy_", "aten.linear",
    ]  # fmt: skip


def traced(call, *args):
    """A graph with example values, as Dynamo's have them."""
    module = torch.fx.symbolic_trace(call)
    torch.fx.Interpreter(module)
    values = dict(zip(module.graph.find_nodes(op="placeholder"), args, strict=True))

    class Run(torch.fx.Interpreter):
        def run_node(self, node):
            node.meta["example_value"] = value = super().run_node(node)
            return value

    Run(module).run(*args)
    assert values
    return module


def example(x, y):
    a = torch.sin(x)
    b, c = torch.split(a, 2)
    d = b * y
    return d + c, a


def test_a_graph_is_cut_where_only_tensors_cross():
    x, y = torch.randn(4), torch.randn(2)
    module = traced(example, x, y)
    nodes = list(module.graph.nodes)
    cuts = [nodes[at].name for at in cut_points(nodes, torch)]
    assert cuts == ["sin", "split", "mul", "add"]
    for first in range(4):
        for last in range(first, 5):
            seen = []

            def inner(piece, _inputs, seen=seen):
                seen.append(piece)
                return piece.forward

            pieces = Pieces(torch, inner, first, last)
            found = pieces(module, [x, y])(x, y)
            assert all(map(torch.equal, found, example(x, y)))
            assert len(seen) == (last > first)
            assert pieces.operators == ["aten.sin", "aten.split", "aten.mul", "aten.add"]


def test_a_piece_that_is_wrong_makes_the_whole_wrong():
    x, y = torch.randn(4), torch.randn(2)
    module = traced(example, x, y)

    def wrong(piece, _inputs):
        return lambda *args: tuple(each * 2 for each in piece(*args))

    kept = []
    pieces = Pieces(torch, wrong, 2, 3, keep=lambda piece, given: kept.append((piece, given)))
    found = pieces(module, [x, y])(x, y)
    assert torch.equal(found[0], torch.sin(x)[:2] * y * 2 + torch.sin(x)[2:])
    ((piece, given),) = kept
    assert [node.name for node in piece.operators] == ["mul"]
    assert torch.equal(piece.module(*given)[0], torch.sin(x)[:2] * y)


def test_a_piece_is_entered_in_the_autocast_around_it():
    def cast(x):
        context = torch.amp.autocast_mode._enter_autocast("cpu", torch.bfloat16, True, None)
        y = x @ x
        z = y @ x
        torch.amp.autocast_mode._exit_autocast(context)
        return z

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    enter = torch.amp.autocast_mode._enter_autocast
    context = graph.call_function(enter, ("cpu", torch.bfloat16, True, None))
    y = graph.call_function(torch.matmul, (x, x))
    z = graph.call_function(torch.matmul, (y, x))
    graph.call_function(torch.amp.autocast_mode._exit_autocast, (context,))
    graph.output((z,))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    given = torch.randn(3, 3)
    for node in (x, y, z):
        node.meta["example_value"] = given
    nodes = list(graph.nodes)
    last = cut_points(nodes, torch)[1]
    piece = piece_of(module, nodes, last, len(nodes) - 1, (), torch)
    assert piece.module(given.bfloat16(), given)[0].dtype is torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")
    run = Pieces(torch, lambda piece, _: piece.forward, 1, 2)(module, [given])
    assert torch.equal(run(given)[0], cast(given))


def test_what_an_operator_does_not_declare_is_seen():
    @torch.library.custom_op("bisection_test::marks", mutates_args=())
    def marks(x: torch.Tensor) -> torch.Tensor:
        x[0] = 7
        return (x * 2).t().contiguous().t()

    @marks.register_fake
    def _(x):
        return torch.empty_like(x)

    @torch.library.custom_op("bisection_test::right", mutates_args=("x",))
    def right(x: torch.Tensor) -> torch.Tensor:
        x[0] = 7
        return x * 2

    @right.register_fake
    def _(x):
        return torch.empty_like(x)

    given = [torch.randn(3, 4)]
    name = "bisection_test.marks"
    assert undeclared(torch, lambda x: marks(x), given) == [
        (name, "mutates", "it writes into its argument x and doesn't declare that"),
        (name, "fake", "its fake gives stride (4, 1), the operator (1, 3)"),
    ]
    assert undeclared(torch, lambda x: right(x), given) == []


def alone(module, *given, **more):
    how = {"grad": True, "fallback_random": False, **more}
    return Standalone(torch, module, given, lambda piece, _: piece, "inductor", {}, **how)


def piece_alone():
    x, y = torch.randn(4, requires_grad=True), torch.randn(2)
    module = traced(example, x, y)
    return piece_of(module, list(module.graph.nodes), 3, 6, (), torch).module, x, y


def test_a_script_has_the_settings_of_inductor_that_are_not_its_defaults():
    config = pytest.importorskip("torch._inductor.config")
    module, x, _ = piece_alone()
    with config.patch({"cpp.simdlen": 256, "epilogue_fusion": config.epilogue_fusion}):
        text = alone(module, x, fallback_random=True)._settings()
    assert text.splitlines() == [
        "torch._inductor.config.cpp.simdlen = 256",
        "torch._inductor.config.fallback_random = True",
    ]
    assert alone(module, x)._settings() == ""


def test_a_script_shows_what_differs(monkeypatch, tmp_path):
    module, x, _ = piece_alone()
    made = alone(module, x)
    text = made._text("A title.", made._code(), made._random_inputs())
    assert len(text.splitlines()) < 100
    assert "torch.sin" not in text
    assert "torch.functional.split" in text or "torch.split" in text

    def shown(compile_fn):
        monkeypatch.setattr(torch, "compile", compile_fn)
        out = io.StringIO()
        grad = torch.is_grad_enabled()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(text, "script.py", "exec"), {"__file__": str(tmp_path / "script.py")})
        finally:
            torch.set_grad_enabled(grad)
        return out.getvalue()

    right = shown(lambda graph, backend: graph)
    assert "agree" in right.splitlines()[-1]
    assert "gradient 0: relative error" in right
    wrong = shown(lambda graph, backend: lambda x: tuple(part * 1.1 for part in graph(x)))
    assert wrong.splitlines()[-1] == DIFFERS


def test_what_torch_alone_has_not_got_is_said(tmp_path):
    @torch.library.custom_op("bisection_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(torch.ops.bisection_test.twice.default, (x,)),))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    found = alone(module, torch.randn(2)).script(tmp_path, "script", "T.", lambda: 60.0)
    why = "a script with torch alone hasn't got the operator bisection_test.twice"
    assert found == (None, None, why)
    assert list(tmp_path.iterdir()) == []
    assert twice(torch.ones(1)) == 2


def test_random_inputs_are_like_the_given_ones():
    made = alone(*piece_alone())
    for value in (
        torch.rand(3, 4).t(), torch.randn(2, 3) + 5, torch.tensor([3, 9]),
        torch.tensor([True, False]), torch.zeros(0, 2), torch.randn(2).bfloat16().requires_grad_(),
    ):  # fmt: skip
        text = made._random(value)
        assert f"{tuple(value.shape)}, {value.dtype}" in text
        assert ("stride" in text) is (not value.is_contiguous())
        assert ("requires_grad" in text) is value.requires_grad
    assert made._random(3) == "3"
