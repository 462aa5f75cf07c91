"""A unified diff of one file: applied to its text, and to functions that are loaded."""

import importlib.util
import sys
from difflib import unified_diff
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest

from traceview.collectors.child.patches import NotPatched, applied, changed_functions, file_of

BEFORE = dedent("""\
    LIMIT = 3

    def double(x):
        return x * 2

    class Net:
        def forward(self, x):
            def inner(y):
                return y + 1
            return inner(double(x))

        def other(self):
            return LIMIT
    """)


def difference(before, after, name="net.py"):
    rows = unified_diff(before.splitlines(True), after.splitlines(True), name, name)
    return "".join(rows)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x * 2", "x * 4"),
        ("LIMIT = 3\n", "LIMIT = 3\nMORE = 4\n"),
        ("    return x * 2\n", ""),
        ("return LIMIT\n", "return LIMIT"),
        ("LIMIT = 3\n", "import os\nLIMIT = 3\nx = 1\ny = 2\n"),
    ],
)
def test_what_difflib_writes_is_applied(old, new):
    after = BEFORE.replace(old, new)
    assert after != BEFORE
    diff = difference(BEFORE, after)
    if new == "return LIMIT":
        diff = diff.replace(
            "+        return LIMIT", "+        return LIMIT\n\\ No newline at end of file"
        )
    assert file_of(diff) == "net.py"
    assert applied(BEFORE, diff) == after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\n", "a\nb\nc\n"),
        ("a\nb\n", "b\n"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("a = 1\n\x0cc = 3\nd = 4\n", "a = 1\nx = 0\n\x0cc = 33\nd = 4\n"),
        ("1\n2\n3\n4\n5\n6\n7\n8\n", "1\nx\n3\n4\n5\n6\ny\n8\n"),
    ],
)
def test_a_patch_makes_the_new_text(old, new):
    sides = [[f"{line}\n" for line in text.split("\n")[:-1]] for text in (old, new)]
    assert applied(old, "".join(unified_diff(*sides, "a", "a", n=1))) == new


def test_the_last_line_without_a_newline():
    end = "\\ No newline at end of file\n"
    patch = f"--- a\n+++ a\n@@ -1,2 +1,2 @@\n a\n-b\n{end}+c\n{end}"
    assert applied("a\nb", patch) == "a\nc"


def test_several_hunks():
    before = "".join(f"line {number}\n" for number in range(60))
    after = (
        before.replace("line 5\n", "five\n").replace("line 50\n", "").replace("line 30\n", "a\nb\n")
    )
    assert applied(before, difference(before, after)) == after


def test_another_text_is_refused():
    diff = difference(BEFORE, BEFORE.replace("x * 2", "x * 4"))
    with pytest.raises(NotPatched, match="line 4 of the file is not what"):
        applied(BEFORE.replace("x * 2", "x * 3"), diff)
    with pytest.raises(NotPatched, match="shorter"):
        applied("one\n", diff.replace("@@ -1", "@@ -90"))
    for nothing in ("", "--- a\n+++ a\n"):
        with pytest.raises(NotPatched, match="changes nothing"):
            applied(BEFORE, nothing)
    with pytest.raises(NotPatched, match="names no file"):
        file_of("hello")


@pytest.fixture
def net(tmp_path, monkeypatch):
    """The module, loaded, and a function that makes a diff of a replacement in it."""
    file = tmp_path / "net.py"
    file.write_text(BEFORE)
    spec = importlib.util.spec_from_file_location("patched_net", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "patched_net", module)
    monkeypatch.chdir(tmp_path)
    return SimpleNamespace(
        module=module, diff=lambda old, new: difference(BEFORE, BEFORE.replace(old, new))
    )


def test_a_function_takes_the_changed_code(net):
    ((function, old, new),) = changed_functions(net.diff("x * 2", "x * 4"))
    assert function is net.module.double
    assert net.module.Net().forward(1) == 3
    function.__code__ = new
    assert net.module.Net().forward(1) == 5
    function.__code__ = old
    assert net.module.Net().forward(1) == 3


def test_lines_that_move_change_nothing(net):
    changed = changed_functions(net.diff("def double(x):\n", "def double(x):\n    x += 1\n"))
    assert [function.__qualname__ for function, _, _ in changed] == ["double"]


def test_a_function_within_comes_with_its_owner(net):
    ((function, _, new),) = changed_functions(net.diff("y + 1", "y + 10"))
    assert function.__qualname__ == "Net.forward"
    function.__code__ = new
    assert net.module.Net().forward(1) == 12


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("LIMIT = 3", "LIMIT = 4", "has run already"),
        ("def double(x):", "def double(x=1):", "has run already"),
        ("class Net:", "class Net(dict):", "has run already"),
        ("LIMIT = 3", "LIMIT = 3  # three", "no code"),
    ],
)
def test_what_can_not_be_changed_any_more(net, old, new, said):
    with pytest.raises(NotPatched, match=said):
        changed_functions(net.diff(old, new))


def test_what_a_decorator_has_made_takes_the_changed_code(net):
    body = (
        "import functools\n"
        "def traced(fn):\n"
        "    @functools.wraps(fn)\n"
        "    def inner(x):\n"
        "        return fn(x) + 1\n"
        "    return inner\n"
        "@traced\n"
        "def band(x):\n"
        "    return x\n"
    )
    exec(compile(body, net.module.__file__, "exec"), vars(net.module))
    Path(net.module.__file__).write_text(body)
    changed = changed_functions(difference(body, body.replace("+ 1", "+ 10")))
    assert net.module.band(1) == 2
    for function, _, new in changed:
        function.__code__ = new
    assert net.module.band(1) == 11
    for function, old, _ in changed:
        function.__code__ = old
    with pytest.raises(NotPatched, match="what a function reads of the one around it"):
        changed_functions(difference(body, body.replace("fn(x) + 1", "x + 1")))


def test_what_makes_objects_is_left_alone(net):
    """Objects that it has made already are as they were."""
    body = "class Net:\n    def __init__(self):\n        self.x = 1\n"
    exec(compile(body, net.module.__file__, "exec"), vars(net.module))
    Path(net.module.__file__).write_text(body)
    with pytest.raises(NotPatched, match=r"Net\.__init__\(\), which has made objects"):
        changed_functions(difference(body, body.replace("1", "2")))


def test_a_running_function_is_left_alone(net):
    body = "def wait(act):\n    act()\n    return 1\n"
    file = net.module.__file__
    exec(compile(body, file, "exec"), vars(net.module))
    Path(file).write_text(body)
    diff = difference(body, body.replace("return 1", "return 2"))
    assert changed_functions(diff)
    with pytest.raises(NotPatched, match=r"wait\(\), which is running"):
        net.module.wait(lambda: changed_functions(diff))


def test_a_file_that_is_not_loaded(net):
    with pytest.raises(NotPatched, match=r"no function of other\.py is loaded"):
        changed_functions(difference(BEFORE, BEFORE.replace("x * 2", "x"), "other.py"))
