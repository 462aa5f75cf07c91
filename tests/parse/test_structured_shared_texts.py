"""Stack frames, graph break texts and guard texts: what both logs' parsers share."""

import pytest

from traceview.parse.frames import StackFrame, first_user_frame, parse_traceback, stack_json
from traceview.parse.graph_break_text import parse_graph_break
from traceview.parse.guard_text import parse_guard

SITE = "/venv/lib/python3.12/site-packages"


def frame(file, function="f"):
    return StackFrame(file, 7, function)


@pytest.mark.parametrize(
    "foreign",
    [
        f"{SITE}/torch/nn/modules/module.py",
        f"{SITE}/transformers/trainer.py",
        "/usr/lib/python3/dist-packages/numpy/core.py",
        "/usr/lib/python3.12/contextlib.py",
        "<frozen runpy>",
        "<eval_with_key>.4",
        "/tmp/torchinductor_me/ab/cab.py",
        "<string>",
        "/opt/x/traceview/collectors/target/hooks.py",
    ],
)
def test_the_first_user_frame_is_the_innermost_that_is_nobody_elses(foreign):
    stack = [frame("/home/me/train.py", "<module>"), frame("/home/me/model.py"), frame(foreign)]
    assert first_user_frame(stack) == frame("/home/me/model.py")


def test_a_torch_checkout_is_recognised_by_its_own_files():
    root = "/src/pytorch/torch"
    stack = [
        frame("/home/me/train.py"),
        frame(f"{root}/_dynamo/eval_frame.py"),
        frame(f"{root}/x.py"),
    ]
    assert first_user_frame(stack).file == "/home/me/train.py"
    assert first_user_frame([frame(f"{SITE}/torch/x.py")]) is None


def test_code_given_on_the_command_line_is_the_users():
    assert first_user_frame([frame("<string>", "<module>")]).file == "<string>"


def test_a_traceback_is_read_with_its_source_text_and_ends_where_it_ends():
    text = (
        '\n  File "/a b/s.py", line 4, in <module>\n    f(x)\n    ^^^^\n'
        '  File "/a b/s.py", line 2, in f\n\nTraceback (most recent call last):\n'
        '  File "/other.py", line 9, in g\n'
    )
    stack = parse_traceback(text)
    assert stack == (
        StackFrame("/a b/s.py", 4, "<module>", "f(x)"),
        StackFrame("/a b/s.py", 2, "f"),
    )
    assert stack_json(stack, with_code=False) == (
        '[{"file":"/a b/s.py","line":4,"function":"<module>"},'
        '{"file":"/a b/s.py","line":2,"function":"f"}]'
    )
    assert stack_json(()) is None


BODY = """\
Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
    with argument types ['str']
  Hint: Avoid calling builtin `print`.
  Hint: Please report an issue to PyTorch.

  Developer debug context: builtin print [<class 'X'>] False
"""
TRACE = (
    '\nUser code traceback:\n  File "/p/s.py", line 44, in <module>\n    f(x)\n'
    '  File "/p/s.py", line 14, in f\n    print(1)\n\n'
    'Traceback (most recent call last):\n  File "/t.py", line 1, in g\n'
)
LINK = "\n For more details about this graph break, please visit: https://x.io/gb/gb0059.html\n"


@pytest.mark.parametrize(
    ("reason", "version"),
    [
        (f"Graph Break Reason: {BODY}{TRACE}", "2.8"),
        (f"Graph Break Reason: {BODY}{LINK}{TRACE}", "2.10"),
        (
            "Graph Break Reason: Encountered graph break when attempting to trace CALL: a function "
            f"call, e.g. f(x, y):\n\n{BODY}{LINK}\nStack variable source attribution:\n  x\n"
            f"{TRACE}",
            "2.13",
        ),
    ],
)
def test_a_graph_break_reads_the_same_from_every_version(reason, version):
    found = parse_graph_break(f"Graph break in user code at /p/s.py:14\n{reason}")
    assert found.gb_type == "Failed to trace builtin operator", version
    assert found.gb_id == "GB0059"
    assert found.explanation.splitlines() == [
        "Dynamo does not know how to trace builtin operator `print`",
        "with argument types ['str']",
    ]
    assert found.hints == ("Avoid calling builtin `print`.", "Please report an issue to PyTorch.")
    assert found.context == "builtin print [<class 'X'>] False"
    assert (found.user_file, found.user_line) == ("/p/s.py", 14)
    assert [f.function for f in found.stack] == ["<module>", "f"]
    assert not found.frame_skipped
    assert "Traceback" not in found.reason


def test_a_skipped_frame_is_known_by_its_cause():
    text = (
        "Graph break in user code at /p/s.py:14\nGraph Break Reason: Failed to handle graph break "
        "gracefully. Skipping the function and falling back to eager. Graph break encountered:\n\n"
        f"{BODY}{LINK}\n*** While handling this graph break, another graph break occurred: ***\n\n"
        "graph break in loop\n  Explanation: no.\n  Hint: maybe.\n\n  Developer debug context: "
        "frame skipped: loop (/p/s.py line 1)\n\n For more details about this graph break, please "
        f"visit: https://x.io/gb/gb7000.html\n{TRACE}"
    )
    found = parse_graph_break(text)
    assert found.frame_skipped
    assert (found.gb_id, found.gb_type) == ("GB0059", "Failed to trace builtin operator")
    assert len(found.hints) == 2
    assert "gb7000" in found.reason


def test_a_break_of_2_6_has_no_type_but_an_id_where_its_words_are_known():
    text = (
        "Graph break in user code at /p/s.py:14\nReason: Unsupported: Tensor.item\n"
        'User code traceback:\n  File "/p/s.py", line 14, in f\n    x.item()\n'
    )
    found = parse_graph_break(text)
    assert (found.gb_id, found.reason) == ("GB0124", "Unsupported: Tensor.item")
    assert found.stack[-1].code == "x.item()"


def test_a_duplicate_and_nonsense_are_read_as_far_as_they_go():
    head = "Graph break (user stack suppressed due to duplicate graph break) in user code at "
    found = parse_graph_break(f"{head}/p:1/s.py:14\nGraph Break Reason: {BODY}")
    assert (found.user_file, found.user_line, found.stack) == ("/p:1/s.py", 14, ())
    assert parse_graph_break("").reason == ""
    assert parse_graph_break("what\never").user_file is None


HINT = " (HINT: torch.compile considers integer attributes of the nn.Module to be static. If so)"
SOURCE = "  # return x + k  # ork/s.py:53 in g"


@pytest.mark.parametrize(
    ("text", "kind", "source", "dim", "old", "new"),
    [
        ("tensor 'x' size mismatch at index 0. expected 4, actual 7", "size", "x", 0, "4", "7"),
        ("tensor 'L['x']' size mismatch at index 1. expected 4, actual 7", "size", "x", 1, *"47"),
        ("tensor 'x' stride mismatch at index 0. expected 3, actual 1", "stride", "x", 0, "3", "1"),
        ("tensor 'x' dtype mismatch. expected Int, actual Half", "dtype", "x", None, "Int", "Half"),
        ("tensor 'x' rank mismatch. expected 1, actual 2", "rank", "x", None, "1", "2"),
        (
            "tensor 'x' Tensor device index mismatch. Expected device index to be 0, actual 1",
            "device", "x", None, "0", "1",
        ),
        (
            "tensor 'x' dispatch key set mismatch. expected DispatchKeySet(CPU, BackendSelect), "
            "actual DispatchKeySet(CPU, Python)",
            "dispatch_keys", "x", None, "DispatchKeySet(CPU, BackendSelect)",
            "DispatchKeySet(CPU, Python)",
        ),
        (
            "tensor 'x' requires_grad mismatch. expected requires_grad=0",
            "requires_grad", "x", None, "False", "True",
        ),
        (f"k == 1      {SOURCE}", "value", "k", None, "1", None),
        (f"L['k'] == 1      {SOURCE}", "value", "k", None, "1", None),
        (f"mode == 'a == b'{SOURCE}", "value", "mode", None, "'a == b'", None),
        (f"self.step == 0  {SOURCE}{HINT}", "module_int", "self.step", None, "0", None),
        (f"bias is None {SOURCE}", "value", "bias", None, "None", None),
        (
            f"___check_type_id(k, 139), type=<class 'int'>  {SOURCE} (HINT: type int)",
            "type_id", "k", None, "<class 'int'>", None,
        ),
        (f"___check_obj_id(f, 13), type=<class 'f'>{SOURCE}", "obj_id", "f", None, "id 13", None),
        (f"len(items) == 2 {SOURCE}", "length", "items", None, "2", None),
        ("len(table) != 1", "length", "table", None, "1", None),
        ("GLOBAL_STATE changed: grad_mode ", "global_state", "grad_mode", None, None, None),
        ("___check_global_state()", "global_state", None, None, None, None),
        (f"6 <= x.size()[0]{SOURCE} (_dynamo/v.py:2 in e)", "shape_guard", "x", 0, None, None),
        ("Eq(L['x'].size()[1], L['y'].size()[0])", "shape_guard", "x", 1, None, None),
        (
            "BACKEND_MATCH failure: torch.compile detected different backend callables. Cached "
            "backend: f. New backend: g. If this is unexpected, wrap",
            "backend", None, None, "f", "g",
        ),
        ("Cache line invalidated because x got deallocated", "obj_id", "x", None, None, None),
        (
            "___as_tensor(___stack0).item() == 8.5  # (unknown source ___as_tensor(___stack0)"
            ".item(), please file a bug)",
            "value", "___stack0", None, "8.5", None,
        ),
    ],
)  # fmt: skip
def test_every_kind_of_guard(text, kind, source, dim, old, new):
    found = parse_guard(f"5/0: {text}")
    assert (found.kind, found.source_name, found.dim) == (kind, source, dim)
    assert (found.old, found.new) == (old, new)
    assert found.failed_compile_id == "5/0"
    if SOURCE in text:
        assert (found.user_file, found.user_line) == ("ork/s.py", 53)
        assert found.user_code == "return x + k"
        assert "#" not in found.guard


def test_the_user_stack_of_a_guard_names_the_whole_file():
    text = f"!0/5/1: k == 1{SOURCE}\nUser stack trace:\n"
    text += '  File "/u/s.py", line 54, in g\n    return k'
    found = parse_guard(text)
    assert (found.user_file, found.user_line, found.user_code) == (
        "/u/s.py",
        54,
        "return k",
    )
    assert found.failed_compile_id == "!0/5/1"


@pytest.mark.parametrize("text", ["", "- ", "0/0: ", "x" * 10_000, "((((", "0/0: == "])
def test_nonsense_is_of_kind_other(text):
    assert parse_guard(text).kind == "other"
