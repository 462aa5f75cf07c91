"""Changes of a line as diffs that ``patch`` applies to the user's file, or none."""

import shutil
import subprocess

import pytest

from traceview.diagnosis.ruling import placed
from traceview.rules.finding import Cost, Evidence, Finding, Location, Snippet

FILE = "/home/user/job/pkg/model.py"
GUARDED = "if not torch.compiler.is_compiling():\n+     print(x)"


def finding(change, line=2, language="diff"):
    return Finding(
        code="TV101", rule="gb-item", severity="info", title="", explanation="", cost=Cost(),
        confidence="measured", location=Location(FILE, line), evidence=(Evidence("", "runs"),),
        what_to_do="", snippet=Snippet(language, change),
    )  # fmt: skip


def diff(text, change, line=2, folder="/home/user/job"):
    snippet = placed(finding(change, line), {FILE: text}.get, folder).snippet
    return snippet and snippet.text


@pytest.mark.skipif(shutil.which("patch") is None, reason="there is no patch(1)")
@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        ("def f(x):\n    y = x.item()\n", "- y = x.item()\n+ y = x.detach()",
         "def f(x):\n    y = x.detach()\n"),
        ("def f(x):\n\tprint(x)\n\n\treturn x", f"- print(x)\n+ {GUARDED}",
         "def f(x):\n\tif not torch.compiler.is_compiling():\n\t\tprint(x)\n\n\treturn x"),
        ("def f(x):\n    print(x)", f"- print(x)\n+ {GUARDED}",
         "def f(x):\n    if not torch.compiler.is_compiling():\n        print(x)"),
        ("größe = 'é\x0c'\nn = größe.item()\nrest = 1", "- n = größe.item()\n+ n = größe.detach()",
         "größe = 'é\x0c'\nn = größe.detach()\nrest = 1"),
    ],
)  # fmt: skip
def test_patch_applies_it(tmp_path, text, change, expected):
    file = tmp_path / "pkg" / "model.py"
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8", newline="\n")
    shown = diff(text, change) + "\n"
    subprocess.run(["patch", "-p0"], input=shown.encode(), cwd=tmp_path, check=True)
    assert file.read_text(encoding="utf-8") == expected


def test_it_names_the_file_as_seen_from_where_the_run_began():
    text, change = "a\ny = x.item()\nb\n", "- y = x.item()\n+ y = x.detach()"
    body = "@@ -1,3 +1,3 @@\n a\n-y = x.item()\n+y = x.detach()\n b"
    assert diff(text, change) == f"--- pkg/model.py\n+++ pkg/model.py\n{body}"
    assert diff(text, change, folder="/elsewhere") == f"--- model.py\n+++ model.py\n{body}"
    assert diff(text, change, folder="") == f"--- model.py\n+++ model.py\n{body}"


def test_the_line_may_stand_elsewhere_once():
    change = "- f = torch.compile(g)\n+ f = torch.compile(g, dynamic=None)"
    assert "@@ -2,2 +2,2 @@" in diff("a\nb\nf = torch.compile(g)\n", change, line=1)
    twice = "f = torch.compile(g)\n" * 2
    assert diff(f"a\nb\n{twice}", change, line=1) == change


def test_what_leaves_no_python_is_not_shown():
    assert diff("y = foo(\n    print(x)\n)\n", f"- print(x)\n+ {GUARDED}") is None


@pytest.mark.parametrize("change", ["--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b", "- a", "x = 1"])
def test_other_snippets_stay(change):
    assert diff("- a\nx = 1\n", change) == change
    given = finding(change, language="python")
    assert placed(given, {FILE: change}.get, "") is given


def test_without_a_copy_it_stays():
    given = finding("- a\n+ b")
    assert placed(given, {}.get, "") is given
