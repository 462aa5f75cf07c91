"""Findings, frames and breaks of two runs, matched though lines have moved."""

import pytest

from traceview.compare.files import Files
from traceview.compare.matching import Site, pairs, plain_function
from traceview.compare.side import Side
from traceview.diagnosis.model import CompileTime, Diagnosis, Reading, Verdict

OLD = """\
def first(x):
    return x.item()


def second(x):
    y = x.item()
    return y
"""


def side(texts, cwd="/work"):
    diagnosis = Diagnosis(
        verdict=Verdict("not_measured", ""), break_even_steps=None,
        compile_time=CompileTime(None, None, {}, ()), accounting={}, counts={}, regions=(),
        findings=(), excerpts=(), not_checked=(), reading=Reading(0, 0), environment={"cwd": cwd},
    )  # fmt: skip
    return Side("run", "run", diagnosis, texts.get)


def matched(old, new, before, after):
    """How sites before and after are paired; a site is (what, file, line, function)."""
    one, other = side(old), side(new)
    left = [Site.of(one, *site) for site in before]
    right = [Site.of(other, *site) for site in after]
    return set(pairs(left, right, Files(one, other, old, new)))


def gb(file, line, function, what="gb-item"):
    return what, file, line, function


A, B = "/u/a.py", "/u/b.py"


def test_a_line_that_moved_is_the_same():
    found = matched(
        {A: OLD}, {A: "import os\n\n\n" + OLD}, [gb(A, 2, "first")], [gb(A, 5, "first")]
    )
    assert found == {(0, 0, "same line")}


def test_the_same_text_in_the_same_function_of_an_edited_file():
    new = OLD.replace("def first(x):", "def first(x, y):").replace("second", "third")
    found = matched({A: OLD}, {A: new}, [gb(A, 2, "first")], [gb(A, 2, "first")])
    assert {(i, j) for i, j, _ in found} == {(0, 0)}


def test_an_edited_line_is_matched_by_its_function():
    new = OLD.replace("y = x.item()", "z = x.max().item()")
    found = matched({A: OLD}, {A: new}, [gb(A, 6, "second")], [gb(A, 6, "second")])
    assert found == {(0, 0, "function, nearest line")}


def test_a_line_that_still_stands_is_not_taken_for_another_one():
    new = OLD + "\ndef third(x):\n    return x.min().item()\n"
    found = matched({A: OLD}, {A: new}, [gb(A, 2, "first")], [gb(A, 10, "third")])
    assert found == {(0, None, None), (None, 0, None)}


def test_a_new_line_in_the_same_function_is_a_new_one():
    new = OLD.replace("    return y\n", "    z = x.min().item()\n    return y + z\n")
    found = matched({A: OLD}, {A: new}, [gb(A, 6, "second")], [gb(A, 7, "second")])
    assert found == {(0, None, None), (None, 0, None)}


def test_another_rule_is_another_thing():
    found = matched({A: OLD}, {A: OLD}, [gb(A, 2, "first")], [gb(A, 2, "first", "gb-print")])
    assert found == {(0, None, None), (None, 0, None)}


def test_a_renamed_file_is_known_by_its_lines():
    found = matched({A: OLD}, {B: "# moved\n" + OLD}, [gb(A, 6, "second")], [gb(B, 7, "second")])
    assert found == {(0, 0, "same line")}


def test_a_function_that_moved_to_another_file():
    old = {A: OLD, B: "import os\nimport sys\nos.getcwd()\n"}
    new = {A: OLD.split("\n\n\n")[0], B: old[B] + OLD.split("\n\n\n")[1]}
    found = matched(old, new, [gb(A, 6, "second")], [gb(B, 5, "second")])
    assert found == {(0, 0, "function and text in another file")}


def test_the_same_file_in_another_working_directory():
    one, other = side({"/x/run1/a.py": OLD}, "/x/run1"), side({"/y/run2/a.py": OLD}, "/y/run2")
    files = Files(one, other, ["/x/run1/a.py"], ["/y/run2/a.py"])
    assert files.partner == {"/x/run1/a.py": "/y/run2/a.py"}


def test_files_of_one_name_that_have_nothing_in_common_are_two_files():
    old, new = {"/u/one/u.py": OLD}, {"/u/two/u.py": "import json\njson.dumps({})\n"}
    assert Files(side(old), side(new), old, new).partner == {}


def test_without_sources_function_and_nearness_are_left():
    before = [gb(A, 10, "first"), gb(A, 90, None)]
    after = [gb(A, 95, None), gb(A, 60, "first")]
    found = matched({A: None}, {A: None}, before, after)
    assert found == {(0, 1, "function, nearest line"), (1, 0, "nearest line")}


def test_without_a_place_the_kind_is_all_there_is():
    site = Site("bm-noise", None, None, None, None, "noisy")
    again = Site("bm-noise", None, None, None, None, "very noisy")
    one = side({})
    assert pairs([site], [again], Files(one, one, (), ())) == [(0, 0, "kind")]
    assert pairs([site], [site], Files(one, one, (), ())) == [(0, 0, "title")]


def test_nothing_is_matched_twice():
    before = [gb(A, 2, "first"), gb(A, 6, "second"), gb(A, 6, "second")]
    found = matched({A: OLD}, {A: OLD}, before, before[:2])
    assert len([i for i, j, _ in found if i is not None and j is not None]) == 2
    assert len(found) == 3


def test_many_of_one_kind_take_no_time():
    many = [gb(A, 2, "first")] * 3000
    found = matched({A: OLD}, {A: OLD}, many, many)
    assert len(found) == 3000


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("torch_dynamo_resume_in_forward_at_16", "forward (resumed)"),
        ("torch_dynamo_resume_in_torch_dynamo_resume_in_f_at_3_at_9", "f (resumed)"),
        ("forward", "forward"),
        ("<lambda>", "<lambda>"),
    ],
)
def test_a_resume_function_without_its_line_number(name, plain):
    assert plain_function(name) == plain
