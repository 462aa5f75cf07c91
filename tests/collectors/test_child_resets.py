"""torch.compiler.reset() and compiles between edges, as the collector sees them."""

import importlib
import logging
import sys
from types import SimpleNamespace

import pytest

from traceview.collectors.child import compiles
from traceview.collectors.child.compiles import Compiles
from traceview.collectors.child.driver import Driver
from traceview.collectors.child.frames import Frames


class Recorder(list):
    def write(self, event, **keys):
        self.append((event, keys))


@pytest.fixture
def parts(monkeypatch):
    """A `Compiles` and what it hears, with a torch whose reset is recorded."""
    listened = []
    dynamo = SimpleNamespace(reset=lambda: listened.append("reset"))
    monkeypatch.setitem(sys.modules, "torch._dynamo", dynamo)
    control, recorder = SimpleNamespace(off=False, compile_s=0.0), Recorder()
    sources = SimpleNamespace(keep=lambda file: None)
    heard = Compiles(control, recorder, Frames(None, None), sources, lambda: 7)
    monkeypatch.setattr(heard, "listen", lambda: listened.append("listen"))
    return SimpleNamespace(
        control=control, recorder=recorder, compiles=heard, listened=listened, dynamo=dynamo
    )


def test_a_reset_is_an_event_with_the_users_line(parts):
    parts.compiles.watch_resets()
    parts.dynamo.reset()
    ((event, keys),) = parts.recorder
    assert (event, keys["file"], keys["step"]) == ("reset", __file__, 7)
    assert keys["function"] == "test_a_reset_is_an_event_with_the_users_line"
    assert parts.listened == ["reset", "listen"], "torch has dropped our callbacks by then"


def test_many_resets_are_not_all_written(parts, monkeypatch):
    monkeypatch.setattr(compiles, "MOST_RESETS", 2)
    parts.compiles.watch_resets()
    for _ in range(5):
        parts.dynamo.reset()
    assert (len(parts.recorder), parts.listened.count("reset")) == (2, 5)


def test_where_collecting_is_over_it_is_torchs_own(parts):
    parts.compiles.watch_resets()
    parts.control.off = True
    parts.dynamo.reset()
    assert (parts.recorder, parts.listened) == ([], ["reset"])


def test_a_torch_without_it_is_left_alone(parts, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._dynamo")
    parts.compiles.watch_resets()


@pytest.mark.parametrize(
    ("granted", "left", "step"), [(1, 0, 10), (5, 4, 10), (5, 3, 11), (5, 0, 14), (5, -1, 14)]
)
def test_the_step_of_a_compile_is_counted_on_from_the_last_edge(granted, left, step):
    driver = SimpleNamespace(step=10, _granted=granted, anchor=SimpleNamespace(remaining=left))
    assert Driver.step_now.fget(driver) == step


def test_the_cudagraphs_log_has_recordings_only_once_steps_are_timed(parts):
    log = logging.getLogger(compiles._CUDAGRAPHS)
    heard = []

    def callbacks(trigger):
        about = SimpleNamespace(callback_trigger=SimpleNamespace(name=trigger), compile_id="0/0")
        parts.compiles._began(about)
        heard.append((trigger, log.isEnabledFor(logging.CRITICAL)))
        parts.compiles._ended(about)

    parts.control.compiles = 0
    try:
        callbacks("DYNAMO")
        parts.compiles.hush()
        assert not log.isEnabledFor(logging.CRITICAL)
        callbacks("DYNAMO")
        callbacks("CUDAGRAPH_RECORDING")
        assert not log.isEnabledFor(logging.CRITICAL)
    finally:
        log.disabled = False
    assert heard == [("DYNAMO", True), ("DYNAMO", False), ("CUDAGRAPH_RECORDING", True)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_it_is_the_logger_that_torch_asks():
    trees = importlib.import_module("torch._inductor.cudagraph_trees")
    assert trees.log.name == compiles._CUDAGRAPHS
