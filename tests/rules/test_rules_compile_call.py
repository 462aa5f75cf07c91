"""What is said of a script that does not call torch.compile, and of what --compile named."""

from __future__ import annotations

import pytest

from traceview.derive.user_sources import lines_to_add
from traceview.rules import cap_no_compile_call
from traceview.tables import Tables, from_rows

HEAD = {"pass": "cold", "rank": None, "pid": 1}
SOURCE = """import torch

model = Net(
    4,
)
self.net = pick(Net(3))

@decorated
def step(x):
    return x
"""


def found(*targets, regions=(), **speedup):
    measured = {"pass": "cold", "rank": None, "outcome": "helped", "basis": "paired_blocks"}
    rows = {
        "runs": [{"pass": "cold", "exit_kind": "stopped"}],
        "compile_targets": [HEAD | row for row in targets],
        "regions": [HEAD | row for row in regions],
        "speedups": [measured | speedup] if speedup else [],
    }
    tables = Tables({name: from_rows(name, each) for name, each in rows.items()})
    return list(cap_no_compile_call.check(tables))


SEEN = {"status": "seen", "name": "Net", "target": "__main__:net", "forward_ms": 6.0}


def test_the_command_names_the_module_that_takes_most():
    other = {**SEEN, "name": "Loss", "forward_ms": 1.0}
    (finding,) = found({**SEEN, "period_ms": 10.0}, other)
    assert finding.snippet.text == "traceview diagnose --compile __main__:net SCRIPT"
    assert finding.title.startswith("Net takes most")
    assert "60 % of the time from call to call" in finding.explanation


def test_a_script_that_compiles_later_is_offered_nothing():
    assert not found(SEEN, regions=[{"region_id": 0}])


def test_nothing_was_seen():
    assert not found()


@pytest.mark.parametrize(
    ("status", "title", "remedy"),
    [
        ({"status": "not_found", "near": ["model"]}, "no module, class or", "alike: model."),
        ({"status": "not_found"}, "no module, class or", "not variables of a function"),
        ({"status": "not_called", "name": "Net"}, "Net is never called", "a module must be called"),
        ({"status": "compiled_already", "name": "Net"}, "compiles Net itself", "without --compile"),
        ({"status": "unsupported", "why": "of int"}, "it is of int", "Name a torch.nn.Module"),
        ({"status": "refused", "why": "TypeError: no"}, "raised TypeError", "--compile-options"),
        ({"status": "too_few_calls", "calls": 6}, "called 6 times", "Name the module"),
        ({"status": "script_compiles"}, "calls torch.compile itself", "without --compile"),
    ],
)
def test_why_nothing_was_compiled(status, title, remedy):
    asked = "auto" if status["status"] in ("too_few_calls", "script_compiles") else "m:modle"
    (finding,) = found({"asked": asked, **status})
    assert finding.severity == "error"
    assert finding.title.startswith(f"--compile {asked}: ")
    assert title in finding.title
    assert remedy in finding.what_to_do


FUNCTION = {"made_line": 8, "kind": "function"}
COMPILED = {"status": "compiled", "asked": "m.Net", "name": "Net", "region_id": 0, "instances": 1}


def test_what_did_not_help_stays_in_eager():
    target = {**COMPILED, "kind": "module", "made_file": "/w/t.py", "made_line": 3}
    figures = {"eager_ms": 1.0, "compiled_ms": 1.2, "speedup": 0.83, "outcome": "hurt"}
    (finding,) = found(target, **figures)
    assert (finding.severity, finding.location.line, finding.snippet) == ("info", 3, None)
    assert "traceview compiled Net" in finding.explanation


@pytest.mark.parametrize(
    ("kind", "instances", "text"),
    [
        ("class", 3, "if isinstance(part, Net):\n        part.compile()"),
        ("function", 1, "Net = torch.compile(Net)"),
        ("module", 1, "model.compile()"),
    ],
)
def test_what_helped_and_has_no_line_of_its_own(kind, instances, text):
    figures = {"eager_ms": 2.0, "compiled_ms": 1.0, "speedup": 2.0}
    (finding,) = found({**COMPILED, "kind": kind, "instances": instances}, **figures)
    assert finding.cost.ms_per_step == 1.0
    assert finding.snippet.text.endswith(text)


@pytest.mark.parametrize(
    ("target", "region", "line"),
    [
        ({"made_line": 3}, {}, (5, False, "model.compile()")),
        ({"made_line": 4}, {"mode": "fast"}, (5, False, "model.compile(mode='fast')")),
        ({"made_line": 6}, {"dynamic": "True"}, (6, False, "self.net.compile(dynamic=True)")),
        (FUNCTION, {}, (8, True, "@torch.compile")),
        (FUNCTION, {"fullgraph": True}, (8, True, "@torch.compile(fullgraph=True)")),
        ({"made_line": 3, "instances": 2}, {}, None),
        ({"made_line": 1}, {}, None),
        ({"made_line": None}, {}, None),
    ],
)
def test_the_line_to_add(target, region, line):
    target = {**COMPILED, "kind": "module", "made_file": "/w/t.py", **target}
    plain = {"region_id": 0, "backend": "inductor", "dynamic": "None", "fullgraph": False}
    rows = {"compile_targets": [HEAD | target], "regions": [HEAD | plain | region]}
    tables = Tables({name: from_rows(name, each) for name, each in rows.items()})
    added = lines_to_add(tables, {"/w/t.py": SOURCE}.get)
    assert added.select("line", "before", "added").rows() == ([line] if line else [])
