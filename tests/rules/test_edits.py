"""Small changes of the user's own line: right, or none."""

import pytest

from traceview.rules._edits import added, kept, source_line, without
from traceview.rules.finding import Location


def text(snippet):
    return snippet and snippet.text


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ('  m = torch.compile(net, backend="eager")', "m = torch.compile(net)"),
        (
            "m = torch.compile(net, backend=mine.look, mode=None)",
            "m = torch.compile(net, mode=None)",
        ),
        ("@torch.compile(backend='eager')", "@torch.compile()"),
        ("@torch.compile(backend='eager', dynamic=True)", "@torch.compile(dynamic=True)"),
        ("m = torch.compile(net, backend=pick(a, b))", None),
        ('f = torch.compile(a, backend="x"); g = torch.compile(b, backend="y")', None),
        ("m = torch.compile(", None),
        (None, None),
    ],
)
def test_an_argument_less(line, new):
    expected = new and f"- {line.strip()}\n+ {new}"
    assert text(without(line, "backend")) == expected


@pytest.mark.parametrize(
    ("line", "new"),
    [
        (
            "model = torch.compile(Net(256, 6).eval())",
            "model = torch.compile(Net(256, 6).eval(), X)",
        ),
        ("@torch.compile", "@torch.compile(X)"),
        ("@torch.compile()", "@torch.compile(X)"),
        ("return torch.compile(f,)", "return torch.compile(f, X)"),
        ("model = torch.compile(", None),
        ('m = torch.compile(nets["a)"])', None),
        ("m = compile(net)", None),
        (None, None),
    ],
)
def test_an_argument_more(line, new):
    assert text(added(line, "X")) == (new and f"- {line}\n+ {new}")


def test_an_argument_for_another():
    line = "model = torch.compile(net, dynamic=False)"
    assert text(added(line, "X", dropped="dynamic")) == f"- {line}\n+ model = torch.compile(net, X)"
    assert text(added(line, "X", dropped="mode")).endswith("(net, dynamic=False, X)")


@pytest.mark.parametrize(
    ("line", "in_place", "new"),
    [
        ("torch.compile(model)", True, "model.compile()"),
        ('torch.compile(self.net, mode="default")', True, 'self.net.compile(mode="default")'),
        ("torch.compile(step)", False, "step = torch.compile(step)"),
        ("torch.compile(Net())", True, None),
        ("model = torch.compile(model)", True, "model.compile()"),
        ("net = torch.compile(model)", True, None),
        ("step = torch.compile(step)", False, None),
        (None, True, None),
    ],
)
def test_a_result_that_is_kept(line, in_place, new):
    assert text(kept(line, in_place=in_place)) == (new and f"- {line}\n+ {new}")


def test_the_line_is_the_runs_own(make):
    tables = make(source_lines=[{"file": "/u/a.py", "line": 3, "text": "f = torch.compile(g)"}])
    assert source_line(tables, Location("/u/a.py", 3)) == "f = torch.compile(g)"
    assert source_line(tables, Location("/u/a.py", 4)) is None
    assert source_line(tables, None) is None
