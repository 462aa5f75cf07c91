"""Other ways to write an operator: results agree, and both are timed on the step's own calls."""

import gzip
import json
import logging
import sys
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

from traceview.collectors.child import compiles, form_trials
from traceview.collectors.child.forms import FORMS
from traceview.words.ways import WAYS

torch = pytest.importorskip("torch")

_IMAGES, _VIDEO = (2, 4, 24, 24), (2, 4, 6, 12, 12)
_ONES, _NONE = [1, 1], [0, 0]


def _convolution(size, weight, stride, padding, groups=1, transposed=False):
    n = len(size) - 2
    settings = [[stride] * n if isinstance(stride, int) else stride, padding, [1] * n]
    return "convolution", [size, weight, None, *settings, transposed, [0] * n, groups]


#: Operator, its arguments (tuples are sizes of tensors), and the ways that fit them.
_CALLS = [
    ("max_pool2d_with_indices", [_IMAGES, [7, 7], [1, 1], [3, 3]], ["one dimension at a time"]),
    ("max_pool3d_with_indices", [_VIDEO, [3, 3, 3], [2, 2, 2]], ["one dimension at a time"]),
    ("max_pool2d_with_indices", [_IMAGES, [7, 7], [1, 1], [3, 3], [2, 2]], []),
    (
        "avg_pool2d",
        [_IMAGES, [9, 9], [1, 1], [4, 4]],
        ["one dimension at a time", "differences of running sums"],
    ),
    ("avg_pool2d", [(2, 4, 1, 96), [1, 33], [1, 1], [0, 16]], ["differences of running sums"]),
    ("avg_pool3d", [_VIDEO, [3, 3, 3], [3, 3, 3]], ["one dimension at a time"]),
    ("avg_pool2d", [_IMAGES, [9, 9], [1, 1], [4, 4], False, False], []),
    ("adaptive_max_pool2d", [_IMAGES, [4, 4]], ["a fixed window"]),
    ("_adaptive_avg_pool2d", [_IMAGES, [4, 6]], ["a fixed window"]),
    ("_adaptive_avg_pool2d", [_IMAGES, [5, 5]], []),
    ("topk", [(6, 100), 20], ["sorted=False", "a sort"]),
    ("topk", [(6, 100), 1, 0], ["max or min"]),
    ("kthvalue", [(6, 100), 4, 0], ["a sort"]),
    ("median", [(6, 100), 1, True], ["a sort"]),
    ("multinomial", [(6, 100), 1], ["a search in running sums"]),
    ("multinomial", [(6, 100), 3], []),
    ("histc", [(1000,), 16, -1, 2], ["bincount"]),
    ("sort", [("i", 90), False, 0, True], ["32-bit numbers"]),
    ("sort", [(6, 90), 0], []),
    ("scatter_add", [(9, 4), 0, ("i", 40, 4), (40, 4)], ["an expanded index"]),
    (
        "scatter_reduce_",
        [(9, 4), 0, ("i", 40, 4), (40, 4), None, True],
        ["an expanded index"],
    ),
    ("linalg_inv_ex", [(3, 6, 6)], ["a solve"]),
    ("linalg_qr", [(3, 20, 6)], ["a Cholesky factor"]),
    (
        "_trilinear",
        [(6, 4), (5, 4, 3), (6, 3), [1, 3], [0], [1, 2], [2, 3]],
        ["einsum"],
    ),
    ("_trilinear", [(6, 5), (6, 4), (6, 3), [2, 3], [1, 3], [1, 2], [0]], ["einsum"]),
    ("std", [(6, 50), [0], True, False], ["two passes"]),
    ("var", [(6, 50), None, None, True], ["two passes"]),
    ("var_mean", [(6, 5, 7), [1, 2], 0, False], ["two passes"]),
    ("std_mean", [(6, 5, 7), [-1]], ["two passes"]),
    ("native_layer_norm", [(6, 5, 7), [5, 7], (5, 7), None, 1e-5], ["two passes"]),
    ("native_group_norm", [_IMAGES, (4,), (4,), 2, 4, 576, 2, 1e-5], ["two passes"]),
    ("bmm", [(9, 3, 4), (9, 4, 2)], ["multiplied and summed"]),
    ("bmm", [(9, 30, 4), (9, 4, 2)], []),
    ("_linalg_eigh", [(3, 6, 6)], []),
    ("mm", [(8, 8192), (8192, 16)], ["products of parts"]),
    ("bmm", [(2, 8, 8192), (2, 8192, 16)], ["products of parts"]),
    ("linalg_matrix_exp", [(5, 3, 3)], ["a fixed polynomial"]),
    ("linalg_matrix_exp", [(5, 9, 9)], []),
    ("prod", [(6, 20), 1, False], ["the exponential of a sum of logarithms"]),
    ("prod", [(6, 20)], []),
    ("mm", [(8, 100), (100, 1)], ["multiplied and summed"]),
    ("bmm", [(3, 1, 20), (3, 20, 8)], ["multiplied and summed"]),
    ("_upsample_bilinear2d_aa", [_IMAGES, [10, 48], False], ["two products"]),
    ("_upsample_bicubic2d_aa", [_IMAGES, [10, 7], False], ["two products"]),
    ("logcumsumexp", [(6, 50), 1], ["the logarithm of a running sum"]),
    ("cumsum", [(6, 50), -1], ["a product with a triangle of ones"]),
    ("cumsum", [(6, 50), 0], ["a product with a triangle of ones"]),
    ("_linalg_svd", [(3, 20, 6), True, True], ["full_matrices=False"]),
    ("_linalg_svd", [(3, 20, 6)], ["eigenvalues of the product with itself"]),
    ("_linalg_svd", [(3, 6, 6), False, False], ["eigenvalues of the product with itself"]),
    ("linalg_lstsq", [(3, 20, 6), (3, 20, 2)], ["normal equations"]),
    ("baddbmm", [(4, "1", 6), (4, 5, 3), (4, 3, 6), 1, 1], ["a product and an addition"]),
    ("baddbmm", [(4, 5, 6), (4, 5, 3), (4, 3, 6)], []),
    (
        "_embedding_bag_forward_only",
        [(30, 8), ("i", 40), ("i", 10), False, 2],
        ["an embedding and a reduction"],
    ),
    (*_convolution(_IMAGES, (6, 4, 7, 7), 1, [3, 3]), ["Fourier transforms"]),
    (
        *_convolution(_IMAGES, (4, 1, 7, 9), 1, [0, 4], 4),
        ["Fourier transforms", "one group with zeros"],
    ),
    (
        *_convolution((2, 4, 200), (6, 2, 65), 1, [32], 2),
        ["Fourier transforms", "one group with zeros"],
    ),
    (*_convolution(_VIDEO, (6, 4, 3, 1, 1), 1, [1, 0, 0]), ["a convolution of fewer dimensions"]),
    (
        *_convolution(_VIDEO, (6, 4, 1, 3, 3), [1, 2, 2], [0, 1, 1]),
        ["a convolution of fewer dimensions"],
    ),
    (*_convolution(_IMAGES, (6, 4, 5, 5), 5, [0, 0]), ["one matrix product"]),
    (*_convolution(_IMAGES, (6, 4, 1, 1), 1, [0, 0]), ["one matrix product"]),
    (
        *_convolution(_IMAGES, (4, 1, 3, 3), 1, [1, 1], 4),
        ["shifted products", "one group with zeros"],
    ),
    (*_convolution(_VIDEO, (6, 4, 2, 4, 4), [2, 4, 4], [0, 0, 0]), ["one matrix product"]),
    (*_convolution(_IMAGES, (4, 6, 2, 2), 2, [0, 0], 1, True), ["one matrix product"]),
    (*_convolution(_IMAGES, (6, 2, 3, 3), 2, [1, 1], 2), ["one group with zeros"]),
]


def test_each_way_has_words():
    assert {form.way for forms in FORMS.values() for form in forms} == set(WAYS)


def _operand(size):
    """``"1"`` is a dimension that repeats one element, ``("i", n)`` a vector of indices."""
    dtype = "int64" if size[0] == "i" else "float32"
    size = size[size[0] == "i" :]
    stride, step = [], 1
    for n in reversed(size):
        stride.append(0 if n == "1" else step)
        step *= int(n)
    sizes = tuple(5 if n == "1" else n for n in size)
    return form_trials.Operand(sizes, tuple(reversed(stride)), dtype)


def _call(name, arguments):
    made = (
        _operand(each) if isinstance(each, tuple) else "" if each is None else json.dumps(each)
        for each in arguments
    )
    return form_trials.Call(f"aten::{name}", tuple(made))


@pytest.mark.parametrize(("name", "arguments", "ways"), _CALLS)
def test_another_form_gives_the_same_result(name, arguments, ways):
    call = _call(name, arguments)
    made = form_trials._arguments(torch, call, False)
    own = form_trials.operator(torch, call)
    fit = []
    for form in FORMS[call.op]:
        with suppress(NotImplementedError):
            form.act(*made)
            fit.append(form.way)
            assert form_trials._agrees(own, form, made), form.way
    assert fit == ways


def _event(op, start, us, arguments):
    """As Kineto writes it: sizes, strides and types of tensors, values of what else there is."""
    columns = {"Input Dims": [], "Input Strides": [], "Input type": [], "Concrete Inputs": []}
    for each in arguments:
        tensor = isinstance(each, form_trials.Operand)
        text = "" if tensor or each is None else str(each)
        kind = "float" if tensor else "ScalarList" if isinstance(each, list) else "Scalar"
        columns["Input Dims"].append(list(each.size) if tensor else [])
        columns["Input Strides"].append(list(each.stride) if tensor else [])
        columns["Input type"].append("" if each is None else kind)
        columns["Concrete Inputs"].append(text)
    return {
        **{"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1, "ts": start, "dur": us},
        "args": {"External id": 1, **columns},
    }


@pytest.fixture
def raw(tmp_path):
    """A step with a pooling, which has a backward, and a topk that calls itself."""
    image, row = _operand((1, 2, 32, 32)), _operand((4, 64))
    events = [
        _event("aten::avg_pool2d", 1.5, 90.0, [image, [15, 15], [1, 1], [7, 7], False, True, None]),
        _event("aten::avg_pool2d_backward", 100.0, 90.0, [image, image, [15, 15]]),
        _event("aten::topk", 200.5, 40.0, [row, 20, -1, True, True]),
        _event("aten::topk", 201.0, 30.0, [row, 20, -1, True, True, row]),
        _event("aten::topk", 300.0, 2.0, [row, 30, -1, True, True]),  # no part of a step
    ]
    marks = [
        {"ph": "X", "name": f"traceview step {n}", "ts": 1.0, "dur": 400.0, "args": {}}
        for n in (1, 2)
    ]
    text = json.dumps({"traceEvents": [*marks, *events]}, indent=2)
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "compiled-7.json.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_calls_are_read_with_their_arguments_the_longest_first(raw):
    text = gzip.decompress((raw / "profile" / "compiled-7.json.gz").read_bytes())
    backwards = form_trials._backwards(text + b'"name": "evaluate_function: ProdBackward1"')
    assert backwards == {"avgpool2d", "prod"}
    pool, topk = form_trials.calls_of(text, backwards, device=False)
    assert (pool.call.op, pool.per_step, pool.host_us, pool.backward) == (
        "aten::avg_pool2d", 0.5, 90.0, True
    )  # fmt: skip
    assert pool.call.arguments[1:] == ("[15, 15]", "[1, 1]", "[7, 7]", "false", "true")
    assert (topk.call.op, topk.per_step, topk.backward) == ("aten::topk", 0.5, False)


def test_each_way_is_timed_next_to_the_call_as_it_is(raw, monkeypatch):
    monkeypatch.setattr(form_trials, "BUDGET_S", 60.0)
    events = []
    recorder = SimpleNamespace(
        raw=raw, pid=7, note=events.append, write=lambda _, **row: events.append(row)
    )
    form_trials.write_form_trials(torch, recorder, device=False)
    assert [(row["op"], row["way"], row["backward"]) for row in events] == [
        ("aten::avg_pool2d", "one dimension at a time", True),
        ("aten::avg_pool2d", "differences of running sums", True),
        ("aten::topk", "sorted=False", False),
        ("aten::topk", "a sort", False),
    ]
    first = events[0]
    assert first["shape"] == "1x2x32x32"
    assert first["settings"] == "[15, 15], [1, 1], [7, 7], false, true"
    assert all(row["base"] > 0 and row["value"] > 0 and row["clock"] == "host" for row in events)


def test_a_way_that_gives_something_else_is_not_timed():
    made = [torch.rand(4, 8), 3]
    wrong = form_trials.Form("half", lambda x, k: x.topk(k)[0] / 2, 0, torch.Tensor.double)
    assert not form_trials._agrees(torch.ops.aten.topk, wrong, made)


def test_arguments_of_another_kind_are_not_rebuilt():
    event = {
        **{"Input Dims": [[2], []], "Input Strides": [[1], []]},
        **{"Input type": ["float", "TensorList"], "Concrete Inputs": ["", ""]},
    }
    assert form_trials._call("aten::topk", json.dumps(event).encode()) is None


def test_nothing_hears_of_what_is_compiled_meanwhile(monkeypatch):
    """Without torch's compiler: importing that sets variables of the process."""
    in_force = {}

    @contextmanager
    def patch(changes=None, **more):
        changed = {**(changes or {}), **more}
        in_force.update(changed)
        yield
        for name in changed:
            del in_force[name]

    config = SimpleNamespace(config=SimpleNamespace(patch=patch))
    handler = SimpleNamespace(start_callbacks=[print], end_callbacks=[])
    module = SimpleNamespace(callback_handler=handler)
    monkeypatch.setitem(sys.modules, "torch._dynamo.callback", module)
    trace, heard = logging.getLogger("torch.__trace"), logging.NullHandler()
    trace.addHandler(heard)
    try:
        with compiles.unheard(SimpleNamespace(_inductor=config, _functorch=config)):
            assert not trace.handlers
            assert not handler.start_callbacks
            assert not logging.getLogger("torch._dynamo").isEnabledFor(logging.ERROR)
            assert in_force["force_disable_caches"]
            assert not in_force["enable_autograd_cache"]
        assert heard in trace.handlers
        assert handler.start_callbacks == [print]
        assert logging.getLogger("torch._dynamo").isEnabledFor(logging.ERROR)
        assert in_force == {}
    finally:
        trace.removeHandler(heard)
