"""Which lines with torch.compile can still run, read from the source and the stack."""

import ast
import builtins
import sys
import textwrap
import types

import pytest

from traceview.collectors.child import reach
from traceview.collectors.child.frames import Frames
from traceview.collectors.child.reach import CompileLines, Loops


def seen(tmp_path, monkeypatch, text, then=None):
    """Run a script that calls ``look()``; what it saw there: ahead or not, and all lines."""
    path = tmp_path / "script.py"
    source = textwrap.dedent(text)
    path.write_text(source)
    module = types.ModuleType("script_of_test")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "script_of_test", module)
    lines = CompileLines(Frames(None, str(tmp_path)))
    monkeypatch.setattr(lines._frames, "is_user", lambda file: file == str(path))
    reached, looks = set(), []

    def compile(fn=None, **how):
        reached.add((str(path), sys._getframe(1).f_lineno))
        return fn

    def look():
        looks.append(lines.ahead(reached, sys._getframe(1)))

    torch = types.SimpleNamespace(compile=compile)
    names = {"torch": torch, "look": look, "__name__": "__main__"}
    exec(builtins.compile(source, str(path), "exec"), names)
    if then:
        then(names)
    return looks, [(each["line"], each["reached"]) for each in lines.found(reached)]


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        ("f = torch.compile(abs)\nlook()", [False]),
        ("f = torch.compile(abs)\nlook()\ng = torch.compile(len)\nlook()", [True, False]),
        ("for n in (1, 2):\n    f = torch.compile(abs, dynamic=n)\n    look()", [True, True]),
        ("if len('ab') > 5:\n    torch.compile(abs)\nlook()", [False]),
        (
            "def bench(f):\n    g = torch.compile(f)\n    look()\nbench(abs)\nbench(len)",
            [True, False],
        ),
        ("def main():\n    g = torch.compile(abs)\n    look()\nmain()", [False]),
        (
            "def run(n):\n    g = torch.compile(abs)\n    look()\nfor n in (1, 2):\n    run(n)",
            [True, True],
        ),
        ("@torch.compile\ndef f():\n    pass\nlook()", [False]),
        ("def later():\n    return torch.compile(abs)\nlook()", [True]),
        ("def make():\n    return torch.compile(abs)\nf = make()\nlook()", [False]),
        ("def make():\n    return torch.compile(abs)\nf = make()\nlook()\nmake()", [True]),
        ("import re\nlook()\np = re.compile('a')\n", [False]),
        ("m = torch\nlook()\nm.compile(mode='default')\n", [True]),
        ("m = torch\nlook()\nm.compile(optimizer='adam')\n", [False]),
    ],
)
def test_what_is_ahead(tmp_path, monkeypatch, text, looks):
    assert seen(tmp_path, monkeypatch, text)[0] == looks


def test_every_line_is_found_with_whether_it_ran(tmp_path, monkeypatch):
    text = """
        f = torch.compile(
            abs,
        )
        look()

        class Net:
            def build(self):
                return torch.compile(self)
    """
    assert seen(tmp_path, monkeypatch, text)[1] == [(2, True), (9, False)]


def test_the_condition_that_a_call_stands_under_is_known():
    text = """
        if __name__ == "__main__":
            if len("ab") > 5:
                torch.compile(abs)
            torch.compile(len)
    """
    (scope,) = reach._scopes(ast.parse("import torch\n" + textwrap.dedent(text)))
    assert scope.compiles == [(5, 5), (6, 6)]
    assert scope.branches == {5: 4}


def test_what_a_library_called_may_be_called_again(tmp_path, monkeypatch):
    """As pytest calls a test once for each of its parameters."""
    text = "def test():\n    torch.compile(abs)\n    look()\n"
    looks, _ = seen(tmp_path, monkeypatch, text, then=lambda names: names["test"]())
    assert looks == [True]


def test_a_file_that_is_no_python_says_nothing(tmp_path, monkeypatch):
    path = tmp_path / "odd.py"
    path.write_bytes(b"torch.compile(\xff\n")
    module = types.ModuleType("odd_of_test")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "odd_of_test", module)
    lines = CompileLines(Frames(None, str(tmp_path)))
    monkeypatch.setattr(lines._frames, "is_user", lambda file: file == str(path))
    assert list(lines.found(set())) == []
    assert list(lines._files) == [str(path)]


def lengths(tmp_path, text, looks):
    """What ``look()`` found in the steps numbered ``looks`` of a script that calls ``step()``."""
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(text))
    loops, found, calls = Loops(Frames(None, str(tmp_path))), [], iter(range(10**6))

    def step():
        number = next(calls)
        if number in looks:
            found.append(loops.look(number))

    args = types.SimpleNamespace(epochs=5)
    exec(builtins.compile(path.read_text(), str(path), "exec"), {"step": step, "args": args})
    return [each and each["steps"] for each in found]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("for n in range(300):\n    step()", 300),
        ("N = 100\nfor n in range(10, 3 * N + 10):\n    step()", 300),
        ("for n in range(600, 0, -2):\n    step()", 300),
        ("for n in range(150):\n    step()\n    step()", 300),
        ("for e in range(args.epochs):\n    for n in range(60):\n        step()", 300),
        ("for e in range(args.epochs):\n    for x in [0] * 60:\n        step()", None),
        ("x = [0] * 60\nfor e in range(args.epochs):\n    for y in x:\n        step()", 300),
        ("x = [0] * 300\nfor i, y in enumerate(x):\n    if i % 2 == 0:\n        step()", 150),
        ("def f():\n    step()\nfor e in range(3):\n    for n in range(100):\n        f()", 300),
        ("n = 0\nwhile n < 300:\n    n += 1\n    step()", None),
        ("def g():\n    yield from range(300)\nfor n in g():\n    step()", None),
        ("[step() for n in range(300)]", None),
        ("for n in range(300):\n    pass\nelse:\n    [step() for n in range(300)]", None),
    ],
)
def test_the_loops_around_a_step_say_how_many_there_are(tmp_path, text, steps):
    assert lengths(tmp_path, text, looks=(10, 50)) == [None, steps]


def test_only_looks_from_the_same_loops_are_compared(tmp_path):
    text = "for n in range(20):\n    step()\nfor n in range(20):\n    step()"
    assert lengths(tmp_path, text, looks=(10, 30)) == [None, None]
