"""Which lines with torch.compile can still run, read from the source and the stack."""

import builtins
import sys
import textwrap
import types

import pytest

from traceview.collectors.child.frames import Frames
from traceview.collectors.child.reach import CompileLines


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
    return looks, [(line, ran) for _, line, ran in lines.found(reached)]


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
    assert list(lines.found(set())) == []
