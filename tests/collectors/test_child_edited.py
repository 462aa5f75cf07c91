"""A script run as if one of its files had been edited: nothing else differs."""

import ast
import json
import subprocess
import sys
from difflib import unified_diff
from types import SimpleNamespace

import pytest
from child_runs import CHILD

from traceview.collectors.child import ticks

SCRIPT = """\
import sys
import helper

if __name__ == "__main__":
    print(__file__, sys.argv, sys.path[0], helper.value(), 1)
"""
HELPER = """\
def value():
    return 10
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(HELPER)
    return tmp_path


def run(folder, *words):
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return done.stdout


def diff_of(folder, name, old, new):
    before = (folder / name).read_text()
    rows = unified_diff(
        before.splitlines(True), before.replace(old, new).splitlines(True), name, name
    )
    path = folder / "patch.diff"
    path.write_text("".join(rows))
    return path


@pytest.mark.parametrize("words", [("script.py", "a", "--b"), ("-m", "script", "c")])
@pytest.mark.parametrize(
    ("name", "old", "new", "printed"),
    [("script.py", ", 1)", ", 2)", "10 2"), ("helper.py", "10", "20", "20 1")],
)
def test_only_the_change_differs(folder, words, name, old, new, printed):
    plain = run(folder, *words)
    assert plain.endswith(" 10 1\n")
    diff = diff_of(folder, name, old, new)
    changed = run(folder, CHILD / "edited.py", diff, folder / "ticks.json", "9", *words)
    assert changed == plain.replace(" 10 1\n", f" {printed}\n")
    assert (folder / "script.py").read_text() == SCRIPT
    assert run(folder, *words) == plain  # no bytecode of the change is left


def test_a_file_that_has_changed_since_is_refused(folder):
    diff = diff_of(folder, "helper.py", "10", "20")
    (folder / "helper.py").write_text(HELPER.replace("10", "11"))
    done = subprocess.run(
        [sys.executable, CHILD / "edited.py", diff, "ticks.json", "9", "script.py"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "line 2 of the file is not what the patch expects" in done.stderr
    assert not done.stdout


LOOPS = """
import sys, time

def inner(n):
    for i in range(n):
        time.sleep(0.001)

def main():
    for epoch in range(1000):
        for batch in range(4):
            inner(5)
        while False:
            pass

try:
    main()
finally:
    print("closed")
"""


def test_loops_of_the_main_program_are_timed_and_end_it(folder):
    (folder / "loops.py").write_text(LOOPS)
    plain = (CHILD / "edited.py", "-", folder / "ticks.json", "0.3", "loops.py")
    assert run(folder, *plain) == "closed\n"
    found = json.loads((folder / "ticks.json").read_text())
    assert found.keys() == {"for epoch in range(1000) 1", "for batch in range(4) 1"}
    outer, batch = (found[name] for name in sorted(found, reverse=True))
    assert 5 <= batch["ms"] < 50
    assert outer["ms"] == pytest.approx(4 * batch["ms"], rel=0.5)
    assert batch["count"] > outer["count"] >= 3


def test_a_loop_is_known_by_its_head_in_a_changed_file(folder):
    (folder / "loops.py").write_text(LOOPS)
    rows = unified_diff(
        LOOPS.splitlines(True), LOOPS.replace("inner(5)", "inner(2)").splitlines(True),
        "loops.py", "loops.py",
    )  # fmt: skip
    (folder / "p.diff").write_text("".join(rows))
    run(folder, CHILD / "edited.py", folder / "p.diff", folder / "t.json", "0.3", "loops.py")
    found = json.loads((folder / "t.json").read_text())
    assert found["for batch in range(4) 1"]["ms"] >= 2
    assert found.keys() == {"for epoch in range(1000) 1", "for batch in range(4) 1"}


def test_what_is_known_when_something_else_ends_it_is_kept(folder):
    (folder / "loops.py").write_text(LOOPS.replace("range(1000)", "range(40)"))
    run(folder, CHILD / "edited.py", "-", folder / "ticks.json", "1.0", "loops.py")
    found = json.loads((folder / "ticks.json").read_text())
    assert found["for batch in range(4) 1"]["count"] > 30


@pytest.mark.parametrize(
    ("compiles", "ms"),
    [
        (lambda step: step % 50 == 25, 25.0),  # 0.5 s at every fifty-th of steps of 15 ms
        (lambda step: step < 8, 15.0),
        (lambda step: False, 15.0),
    ],
)
def test_compiles_count_where_they_go_on_to_the_end(tmp_path, monkeypatch, compiles, ms):
    """And not where they come first, however much of a short script they take."""
    now, compiled = [100.0], [0]
    monkeypatch.setattr(ticks, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(ticks, "_compiles", lambda: compiled[0])
    clock = ticks.Ticks(tmp_path / "ticks.json", 9.0)
    clock.put_into(ast.parse("for step in range(400): pass"))
    for step in range(400):
        clock(0)
        now[0] += 0.015
        if compiles(step):
            now[0] += 0.5
            compiled[0] += 1
    clock.close()
    (found,) = json.loads((tmp_path / "ticks.json").read_text()).values()
    assert found["ms"] == pytest.approx(ms, rel=0.06)


def test_each_loop_is_timed_from_its_own_first_iteration_to_its_last(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(ticks, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(ticks, "_compiles", lambda: 0)
    clock = ticks.Ticks(tmp_path / "ticks.json", 9.0)
    clock.put_into(ast.parse("for filled in range(900): pass\nfor step in range(300): pass"))
    for loop, count, seconds in ((0, 900, 0.001), (1, 300, 0.020)):
        for _ in range(count):
            clock(loop)
            now[0] += seconds
    clock.close()
    found = json.loads((tmp_path / "ticks.json").read_text())
    assert found["for filled in range(900) 1"]["ms"] == pytest.approx(1.0)
    assert found["for step in range(300) 1"]["ms"] == pytest.approx(20.0)
