"""Failed guards as both logs write them."""

import re
import time

import pytest

from traceview.torchtext.frames import parse_traceback
from traceview.torchtext.fx import COMMENT_LINES, called_operators
from traceview.torchtext.graph_breaks import parse_graph_break
from traceview.torchtext.guards import parse_guard
from traceview.torchtext.kernel_source import instructions, read_kernel

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


@pytest.mark.parametrize(
    "repeated",
    [*"\n\r \t-#'[", "# ", " # x  # y:", "L['", "tensor '' ", "expected ", "x == ", "a.b[0]."],
)
def test_a_guard_of_what_repeats_is_bounded_work(repeated):
    many = repeated * (16_000 // len(repeated))
    began = time.process_time()
    for text in (many, f"tensor 'x' {many}", f"L['x']{many} == 3{many}", f"0/0: {many}"):
        parse_guard(text)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("repeated", ["\n", " ", "\t", "\n ", " \n", "^", "~ "])
def test_blank_lines_and_marks_in_other_texts_are_bounded_work(repeated):
    many = repeated * (400_000 // len(repeated))
    began = time.process_time()
    parse_graph_break(f"Graph break in user code at /a.py:1\nReason: x{many}y")
    parse_traceback(f'  File "/a.py", line 1, in f\n  {many}y')
    assert not re.search(COMMENT_LINES, many)
    called_operators(many)
    read_kernel(f"@triton.jit\ndef f(in_ptr0, out_ptr0, xnumel):{many}y")
    instructions(many)
    assert time.process_time() - began < 1
