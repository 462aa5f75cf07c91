"""A script run as if one of its files had been edited: nothing else differs."""

import subprocess
import sys
from difflib import unified_diff

import pytest
from child_runs import CHILD

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
    changed = run(folder, CHILD / "edited.py", diff, *words)
    assert changed == plain.replace(" 10 1\n", f" {printed}\n")
    assert (folder / "script.py").read_text() == SCRIPT
    assert run(folder, *words) == plain  # no bytecode of the change is left


def test_a_file_that_has_changed_since_is_refused(folder):
    diff = diff_of(folder, "helper.py", "10", "20")
    (folder / "helper.py").write_text(HELPER.replace("10", "11"))
    done = subprocess.run(
        [sys.executable, CHILD / "edited.py", diff, "script.py"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "line 2 of the file is not what the patch expects" in done.stderr
    assert not done.stdout
