"""Looks at other threads: what they run, and how long Python's lock is away."""

import sys
import threading
import time

import pytest

from traceview.collectors.child.frames import Frames
from traceview.collectors.child.threads import MOST_LOOKS, Threads


class Heard:
    def __init__(self):
        self.events = []

    def write(self, event, **keys):
        self.events.append({"event": event, **keys})

    def keep(self, file):
        self.kept = file


@pytest.fixture
def looks(monkeypatch):
    """A function: makes looks until ``enough`` of the rows; what they wrote about one thread.

    Threads that other tests of this process have left running are not there.
    """
    left, every = set(threading.enumerate()), threading.enumerate
    monkeypatch.setattr(threading, "enumerate", lambda: [t for t in every() if t not in left])

    def look(name, count=5):
        heard = Heard()
        threads = Threads(heard, Frames(None, None), heard)
        for step in range(count):
            threads.look(step)
            time.sleep(0.02)
        return [row for row in heard.events if row["name"] == name], heard

    return look


@pytest.fixture
def thread():
    """A function: runs ``target`` in a thread of that name until the test ends."""
    stop, started = threading.Event(), []

    def start(name, target):
        started.append(threading.Thread(target=target, args=(stop,), name=name, daemon=True))
        started[-1].start()

    yield start
    stop.set()
    for each in started:
        each.join()


def spin(stop):
    while not stop.is_set():
        sum(range(50))


def wait(stop):
    stop.wait()


def test_a_thread_that_runs_python_keeps_the_lock_for_its_interval(looks, thread):
    thread("spinning", spin)
    rows, heard = looks("spinning")
    # Not in each look: a busy machine may take the processor from it meanwhile.
    assert max(row["waited_ms"] for row in rows) >= rows[0]["interval_ms"] / 2
    assert {row["function"] for row in rows} == {"spin"}
    assert heard.kept == __file__
    assert any(row["ran_ms"] is None or row["ran_ms"] > 0 for row in rows)


def test_a_thread_that_waits_does_not(looks, thread):
    thread("waiting", wait)
    rows, _ = looks("waiting")
    assert min(row["waited_ms"] for row in rows) < sys.getswitchinterval() * 1e3 / 2
    assert not rows[-1]["ran_ms"]
    assert {(row["function"], row["inside"]) for row in rows} == {("wait", "wait")}


def test_that_there_is_no_other_thread_is_written_once(looks):
    rows, heard = looks(None)
    assert rows == heard.events == [{"event": "thread_look", "look": 0, "step": 0, "name": None}]


def test_looks_come_to_an_end(looks, thread):
    thread("waiting", wait)
    rows, _ = looks("waiting", MOST_LOOKS + 3)
    assert [row["look"] for row in rows] == list(range(MOST_LOOKS))


def test_what_other_threads_have_of_a_block_is_written_and_where_they_are(thread):
    thread("busy", spin)
    heard = Heard()
    threads = Threads(heard, Frames(None, None), heard)
    threads.block_opens()
    time.sleep(0.1)
    threads.block_closed("compiled")
    (block,) = [row for row in heard.events if row["name"] == "busy"]
    assert (block["event"], block["stance"]) == ("thread_block", "compiled")
    assert block["ran_ms"] > 10.0
    threads.look(0)  # is watched from here on, until the next block
    time.sleep(0.1)
    threads.block_opens()
    seen = [row for row in heard.events if row["event"] == "thread_seen"]
    assert {(row["name"], row["function"]) for row in seen} == {("busy", "spin")}
    assert not any(each.name == "traceview" for each in threading.enumerate())
