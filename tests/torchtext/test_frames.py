"""Stack frames, whose code they are, and the names of resume functions."""

import pytest

from traceview.torchtext.frames import (
    StackFrame,
    first_user_frame,
    parse_traceback,
    resumed,
    stack_json,
    written_name,
)

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


@pytest.mark.parametrize(
    ("name", "written", "line"),
    [
        ("torch_dynamo_resume_in_go_at_16", "go", 16),
        ("torch_dynamo_resume_in_f_at_3_at_9", "f_at_3", 9),
        (
            "torch_dynamo_resume_in_torch_dynamo_resume_in_f_at_3_at_9",
            "f", 9,
        ),
        ("forward", "forward", None),
        (None, None, None),
    ],
)  # fmt: skip
def test_a_resume_function_is_named_after_the_function_it_resumes(name, written, line):
    found = resumed(name)
    assert (found and found.line) == line
    assert written_name(name) == written
