"""A profiler that is attached some steps before its window opens, with the torch that is here."""

import gzip
import json

import pytest

from traceview.collectors.child.frames import Frames
from traceview.collectors.child.recorder import Recorder
from traceview.collectors.child.sources import Sources
from traceview.collectors.child.window import Window

pytestmark = pytest.mark.live
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


def test_one_that_never_opened_is_let_go_of(window, tmp_path):
    window.prepare("eager")
    window.stop()
    assert not (tmp_path / "profile").exists()
    window.start("eager", "time")  # the next one can be attached
    torch.cos(torch.ones(8))
    window.stop()
    assert len(list((tmp_path / "profile").iterdir())) == 1
