"""Executors: every item has its result, and a worker that dies costs its own item only."""

import time

import pytest
from work import die_of_three, double, double_and_die_soon, fail_of_three, refuse

from traceview.errors import UsageError
from traceview.reading.executors import Processes, Serial, WorkerDied

pytestmark = pytest.mark.live


@pytest.mark.parametrize("executor", [Serial(), Processes(2)])
def test_every_item_comes_back_with_its_result(executor):
    assert sorted(executor.map(double, range(5))) == [(n, 2 * n) for n in range(5)]


def test_a_killed_worker_costs_its_own_item_only():
    results = dict(Processes(2).map(die_of_three, range(8)))
    assert isinstance(results.pop(3), WorkerDied)
    assert results == {n: 2 * n for n in range(8) if n != 3}


def test_a_worker_that_dies_while_it_has_nothing_to_do_is_replaced():
    results = []
    for result in Processes(1).map(double_and_die_soon, range(3)):
        results.append(result)
        time.sleep(0.5)  # until it is dead
    assert results == [(n, 2 * n) for n in range(3)]


@pytest.mark.parametrize("executor", [Serial(), Processes(2)])
def test_an_error_costs_its_own_item_and_is_its_result(executor):
    results = list(executor.map(fail_of_three, range(5)))
    assert [repr(result) for item, result in results if item == 3] == ["ValueError(3)"]
    assert sorted(pair for pair in results if pair[0] != 3) == [(n, 2 * n) for n in (0, 1, 2, 4)]


def test_what_the_user_has_to_solve_ends_the_map():
    with pytest.raises(UsageError):
        list(Processes(2).map(refuse, [1, 2]))
