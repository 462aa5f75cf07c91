"""What the script had of its processors, and what Python's garbage collector took of it."""

import gc
import time

import pytest

from traceview.collectors.child import clock, environment
from traceview.collectors.child.clock import ThreadTime, thread_time
from traceview.collectors.child.environment import usable
from traceview.collectors.child.frames import Frames


def test_a_thread_that_sleeps_runs_nowhere():
    before = thread_time()
    time.sleep(0.02)
    used = thread_time().since(before)
    assert 0 <= used.running < 20


def test_what_linux_does_not_tell_is_not_known(monkeypatch):
    monkeypatch.setattr(clock, "_SCHEDSTAT", "/nowhere")
    assert thread_time().queued is None
    assert ThreadTime(5.0, 3.0).since(ThreadTime(1.0, None)) == ThreadTime(4.0, None)
    assert ThreadTime(5.0, 3.0).since(ThreadTime(1.0, 1.0)) == ThreadTime(4.0, 2.0)


def test_collections_are_counted_at_the_line_that_asks_for_the_full_ones(tmp_path):
    def tidy():
        gc.collect()

    counted = clock.Collected(Frames(None, str(tmp_path)))
    counted.start()
    tidy()
    gc.collect(0)
    keys = counted.found()
    assert (keys["collections"] >= 2, keys["full_collections"]) == (True, 1)
    assert keys["collection_ms"] > 0
    line = tidy.__code__.co_firstlineno + 1
    assert (keys["collection_file"], keys["collection_line"]) == (__file__, line)
    counted.start()
    assert counted.found()["full_collections"] == 0
    tidy()  # in a block or not
    counted.stop()
    tidy()
    assert [(call["file"], call["line"]) for call in counted.asked] == [(__file__, line)] * 2
    assert all(call["host_ms"] > 0 for call in counted.asked)
    assert counted.asked[0]["started_us"] < counted.asked[1]["started_us"]


@pytest.mark.parametrize(
    ("files", "processors_left"),
    [
        ({}, 4),
        ({"cpu.max": "max 100000"}, 4),
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "5000 100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ({"cpu.max": "nonsense"}, 4),
    ],
)
def test_a_quota_lowers_the_number_of_processors(monkeypatch, tmp_path, files, processors_left):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(environment, "_CGROUP", tmp_path)
    monkeypatch.setattr(environment.os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert usable() == processors_left
