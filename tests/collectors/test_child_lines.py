"""The user's lines as ranges: whatever the interpreter does, they nest and all of them end."""

import gc
import sys
import threading

import pytest
from child_runs import write_script

from traceview.collectors.child import marks as marks_module
from traceview.collectors.child.frames import Frames
from traceview.collectors.child.marks import Collections, LineMarks

SUBJECT = """
import asyncio, sys
left = []
def run(marks, work):
    marks.start(sys._getframe())
    op("begun")                       # 6
    try:
        work()                        # 8
    except KeyError:
        op("caught")                  # 10
    marks.stop()
def items(n):
    for i in range(n):
        op(f"item {i}")               # 14
        try:
            yield i
        except ValueError:
            op("thrown")              # 18
            yield 9
def loop():
    for i in items(2):
        op(f"body {i}")               # 22
def throw():
    it = items(2)
    next(it)
    it.throw(ValueError())
    op("after throw")                 # 27
def leave():
    it = items(2)
    next(it)
    left.append(it)
    op("left")                        # 32
def fail():
    def deep():
        op("deep")                    # 35
        raise KeyError
    try:
        deep()
    finally:
        op("finally")                 # 40
def deeper(n=2):
    op(f"down {n}")                   # 42
    if n:
        deeper(n - 1)
    op(f"up {n}")                     # 45
async def part(n):
    op(f"begin {n}")                  # 47
    await asyncio.sleep(0)
    op(f"end {n}")                    # 49
async def parts():
    await asyncio.gather(part(1), part(2))
    op("gathered")                    # 52
def together():
    asyncio.run(parts())
def called():
    sorted([1], key=lambda x: op("key") or x)   # 56
    op("one"); op("two")              # 57
def small(n):
    m = n + 1                         # 59
    return m
def busy(n):
    op("before")                      # 62
    for i in range(n):
        small(i)                      # 64
    op("after")                       # 65
"""


class Ranges:
    """Ranges that must end in the order in which they nest."""

    def __init__(self):
        self.open = []
        self.names = []

    def begin(self, name):
        self.open.append(name)
        self.names.append(name)
        owner = self

        class Range:
            def __exit__(self, *_):
                assert owner.open.pop() == name

        return Range()

    @property
    def line(self):
        return int(self.open[-1].rpartition(":")[2]) if self.open else None


@pytest.fixture
def ranges():
    return Ranges()


@pytest.fixture
def subject(tmp_path, ranges):
    """The user's module; ``op`` there notes the innermost line that is marked."""
    path = write_script(tmp_path, SUBJECT, "subject.py")
    namespace = {"seen": [], "__name__": "subject"}
    namespace["op"] = lambda what: namespace["seen"].append((what, ranges.line))
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    return namespace


def marks_for(tmp_path, begin):
    marks = LineMarks(Frames(None, str(tmp_path)), begin)
    marks._frames.is_user = lambda file: file.endswith("subject.py")  # not this test
    return marks


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        ("loop", [("item 0", 14), ("body 0", 22), ("item 1", 14), ("body 1", 22)]),
        ("throw", [("item 0", 14), ("thrown", 18), ("after throw", 27)]),
        ("leave", [("item 0", 14), ("left", 32)]),
        ("fail", [("deep", 35), ("finally", 40), ("caught", 10)]),
        (
            "deeper",
            [(f"down {n}", 42) for n in (2, 1, 0)] + [(f"up {n}", 45) for n in (0, 1, 2)],
        ),
        (
            "together",
            [("begin 1", 47), ("begin 2", 47), ("end 1", 49), ("end 2", 49), ("gathered", 52)],
        ),
        ("called", [("key", 56), ("one", 57), ("two", 57)]),
    ],
)  # fmt: skip
def test_every_operator_lies_in_the_line_that_runs_it(tmp_path, subject, ranges, work, expected):
    marks = marks_for(tmp_path, ranges.begin)
    before = sys.gettrace()
    sys.settrace(None)
    try:
        subject["run"](marks, subject[work])
        assert sys.gettrace() is None
    finally:
        sys.settrace(before)
    assert subject["seen"] == [("begun", 6), *expected]
    assert ranges.open == []
    assert str(tmp_path / "subject.py") in marks.files  # another one's generator may end meanwhile
    assert (marks.why_ended, marks.lines > len(expected)) == (None, True)
    assert all(each.gi_frame.f_trace is None for each in subject["left"])


@pytest.fixture
def untraced():
    before = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(before)


def test_the_line_that_opens_the_window_is_marked_and_its_frame_is_left_as_it_was(
    tmp_path, subject, ranges, untraced
):
    subject["run"](marks_for(tmp_path, ranges.begin), lambda: subject["op"]("in another's frame"))
    assert ranges.names[0] == "traceview line 0:5"
    assert subject["seen"] == [("begun", 6), ("in another's frame", 8)]


def test_a_step_in_pure_python_is_marked_up_to_the_limit(
    tmp_path, subject, ranges, untraced, monkeypatch
):
    monkeypatch.setattr(marks_module, "MAX_LINES", 8)
    marks = marks_for(tmp_path, ranges.begin)
    subject["run"](marks, subject["deeper"])
    assert subject["seen"][-1] == ("up 2", None)
    assert ranges.open == []
    assert "more than 8 ranges" in marks.why_ended


def test_lines_of_a_long_loop_take_turns_in_one_range(
    tmp_path, subject, ranges, untraced, monkeypatch
):
    monkeypatch.setattr(marks_module, "HOT", 3)
    marks = marks_for(tmp_path, ranges.begin)
    subject["run"](marks, lambda: subject["busy"](50))
    assert subject["seen"] == [("begun", 6), ("before", 62), ("after", 65)]
    of_loop = [name for name in ranges.names if name.endswith((":63", ":64", ":59", ":60"))]
    assert 6 <= len(of_loop) <= 20, "of more than 200 lines"
    assert (ranges.open, marks.why_ended) == ([], None)


def test_a_step_that_runs_too_many_lines_is_marked_no_further(
    tmp_path, subject, ranges, untraced, monkeypatch
):
    monkeypatch.setattr(marks_module, "MAX_EVENTS", 30)
    marks = marks_for(tmp_path, ranges.begin)
    subject["run"](marks, lambda: subject["busy"](50))
    assert subject["seen"][-1] == ("after", None)
    assert "more than 30 lines" in marks.why_ended


def test_a_range_that_fails_does_not_reach_the_user(tmp_path, subject, ranges, untraced):
    def begin(name):
        if name.endswith(":42"):
            raise RuntimeError("no more ranges")
        return ranges.begin(name)

    marks = marks_for(tmp_path, begin)
    subject["run"](marks, subject["deeper"])
    assert [what for what, _ in subject["seen"]][-1] == "up 2"
    assert ranges.open == []
    assert marks.why_ended == "RuntimeError: no more ranges"


def test_marking_that_cannot_begin_is_no_error(tmp_path, subject, ranges, untraced):
    def begin(name):
        raise RuntimeError("no ranges at all")

    marks = marks_for(tmp_path, begin)
    subject["run"](marks, subject["loop"])
    assert {line for _, line in subject["seen"]} == {None}
    assert marks.why_ended == "RuntimeError: no ranges at all"


def test_other_threads_are_not_marked(tmp_path, subject, ranges, untraced):
    def elsewhere():
        thread = threading.Thread(target=subject["loop"])
        thread.start()
        thread.join()

    subject["run"](marks_for(tmp_path, ranges.begin), elsewhere)
    assert not any(name.endswith((":14", ":22")) for name in ranges.names)


def test_a_tracer_that_the_script_sets_meanwhile_stays(tmp_path, subject, ranges, untraced):
    def theirs(*_):
        return None

    subject["run"](marks_for(tmp_path, ranges.begin), lambda: sys.settrace(theirs))
    assert sys.gettrace() is theirs
    assert ranges.open == []


def test_generated_code_and_code_without_a_file_are_not_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    marks = LineMarks(Frames(None, str(tmp_path)), lambda name: name)
    found = {}
    for file in (str(tmp_path / "cache" / "ab" / "c.py"), "<string>", str(tmp_path / "t.py")):
        exec(compile("import sys; frame = sys._getframe()", file, "exec"), found)
        found[file] = marks._index(found["frame"])
    assert list(found.values())[-3:] == [None, None, 0]


def test_collections_are_marked_with_their_generation_while_a_window_is_open(ranges):
    before = list(gc.callbacks)
    collections = Collections(ranges.begin)
    collections.start()
    gc.collect(1)
    gc.collect()
    collections.stop()
    gc.collect()
    named = [name for name in ranges.names if name in ("traceview gc 1", "traceview gc 2")]
    assert named == ["traceview gc 1", "traceview gc 2"]
    assert ranges.open == []
    assert gc.callbacks == before
