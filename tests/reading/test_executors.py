"""Executors: every item has its result, and a worker that dies costs its own item only."""

import os
import signal
import time

import pytest

from traceview.reading.executors import Processes, Serial, WorkerDied


def double(item):
    return 2 * item


def die_of_three(item):
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.01)
    return 2 * item


def fail(item):
    raise ValueError(item)


@pytest.mark.parametrize("executor", [Serial(), Processes(2)])
def test_every_item_comes_back_with_its_result(executor):
    assert sorted(executor.map(double, range(5))) == [(n, 2 * n) for n in range(5)]


def test_a_killed_worker_costs_its_own_item_only():
    results = dict(Processes(2).map(die_of_three, range(8)))
    assert isinstance(results.pop(3), WorkerDied)
    assert results == {n: 2 * n for n in range(8) if n != 3}


def test_an_error_of_ours_is_not_hidden():
    with pytest.raises(ValueError, match="7"):
        list(Processes(2).map(fail, [7, 7]))
