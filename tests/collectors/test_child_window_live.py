"""A profiler that is attached some steps before its window opens, with the torch that is here."""

import gzip
import json

import pytest

from traceview.collectors.child.frames import Frames, Sources
from traceview.collectors.child.memory import Pile
from traceview.collectors.child.recorder import Recorder
from traceview.collectors.child.window import Window

pytestmark = pytest.mark.live


@pytest.fixture(scope="module", autouse=True)
def import_torch():
    """Here, since it takes seconds of every worker that collects this module."""
    global torch
    torch = pytest.importorskip("torch")


@pytest.fixture
def window(tmp_path):
    recorder = Recorder(tmp_path)
    frames = Frames(torch.__file__, None)
    return Window(torch, recorder, frames, Sources(tmp_path, recorder, frames))


def test_what_runs_before_the_window_is_not_in_it(window, tmp_path):
    window.prepare("compiled")
    torch.sin(torch.ones(8))
    assert not window.open
    window.start("compiled", "time")
    window.mark_step(7)
    torch.cos(torch.ones(8))
    window.stop()
    (file,) = (tmp_path / "profile").iterdir()
    trace = json.loads(gzip.decompress(file.read_bytes()))
    names = {event["name"] for event in trace["traceEvents"]}
    assert {"aten::cos", "traceview step 7"} <= names
    assert "aten::sin" not in names


def test_torch_makes_no_object_of_each_event(window, tmp_path, monkeypatch):
    made = []
    profile = torch.autograd.profiler.profile
    monkeypatch.setattr(profile, "_parse_kineto_results", lambda *_: made.append(1) or [])
    steps_run(window, 7)
    window.stop()
    (event,), _ = told(tmp_path)
    assert (event["error"], made) == (None, [])


def steps_run(window, *numbers):
    window.start("compiled", "time")
    for number in numbers:
        window.mark_step(number)
        torch.cos(torch.ones(8))


def told(folder):
    """The ``profile`` events, and the names in the traces."""
    (events,) = folder.glob("events-*.jsonl")
    rows = [json.loads(line) for line in events.read_text().splitlines()]
    files = [path.read_bytes() for path in folder.glob("profile/*.json.gz")]
    traces = [json.loads(gzip.decompress(data)) for data in files]
    names = [{event["name"] for event in trace["traceEvents"]} for trace in traces]
    return [row for row in rows if row["event"] == "profile"], names


def test_a_step_in_which_the_script_ends_is_none(window, tmp_path):
    steps_run(window, 7, 8, 9)
    window.stop(step_ended=False)
    (event,), (names,) = told(tmp_path)
    assert (event["steps"], event["page_faults"], event["error"]) == (2, None, None)
    assert {"traceview step 7", "traceview step 8"} <= names
    assert "traceview step 9" not in names


def test_a_window_without_one_whole_step_is_none(window, tmp_path):
    steps_run(window, 7)
    window.stop(step_ended=False)
    (event,), traces = told(tmp_path)
    assert (event["file"], traces) == (None, [])
    assert "the script ended in the first step" in event["error"]


def test_a_window_that_is_cut_short_does_not_replace_a_whole_one(window, tmp_path):
    steps_run(window, 7, 8)
    window.stop()
    steps_run(window, 90, 91)
    window.stop(step_ended=False)
    (event,), (names,) = told(tmp_path)
    assert event["steps"] == 2
    assert {"traceview step 7", "traceview step 8"} <= names


def test_one_that_never_opened_is_let_go_of(window, tmp_path):
    window.prepare("eager")
    window.stop()
    assert not (tmp_path / "profile").exists()
    window.start("eager", "time")  # the next one can be attached
    torch.cos(torch.ones(8))
    window.stop()
    assert len(list((tmp_path / "profile").iterdir())) == 1


def test_a_window_that_fills_the_memory_ends_with_fewer_steps(window, tmp_path, monkeypatch):
    monkeypatch.setattr(Pile, "most_steps", lambda pile, steps: 3.5)
    steps_run(window, 7, 8, 9, 10, 11, 12)
    assert not window.open
    window.stop()
    (event,), (names,) = told(tmp_path)
    assert (event["steps"], event["error"], window.most_steps) == (4, None, {"compiled": 3.5})
    assert "traceview step 10" in names
    assert "traceview step 11" not in names
