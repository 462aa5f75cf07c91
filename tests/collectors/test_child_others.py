"""Calls that a trial replays: with the sizes and values that the script's calls had."""

from importlib.util import find_spec
from itertools import islice

import pytest

from traceview.collectors.child.taken import MOST_OTHERS, Others

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")


@pytest.fixture
def torch():
    import torch

    return torch


def replayed(torch, calls, count):
    """Arguments of ``count`` replayed calls where the script made ``calls``."""
    others = Others(torch, *calls[0])
    for args, kwargs in calls[1:]:
        others.look(args, kwargs)
    return list(islice(others.turns(others.copies()), count))


def test_a_count_goes_on(torch):
    x = torch.ones(3)
    calls = [((x, {"at": 2 * n}), {"left": 9 - n}) for n in (1, 1, 2, 2, 3)]
    made = replayed(torch, calls, 3)
    assert [(args[1]["at"], kwargs["left"]) for args, kwargs in made] == [(8, 5), (10, 4), (12, 3)]
    assert all(torch.equal(args[0], x) and args[0] is not x for args, _ in made)


def test_what_comes_again_is_no_count(torch):
    calls = [((layer,), {}) for layer in (0, 1, 2, 0, 1, 2)]
    assert [args for args, _ in replayed(torch, calls, 4)] == [(0,), (1,), (2,), (0,)]


@pytest.mark.parametrize("values", [(0, 1), (1, 2, 4), (True, False), (0.0, 0.5, 1.0), ("a", "b")])
def test_other_values_take_turns(torch, values):
    calls = [((value,), {}) for value in values]
    made = replayed(torch, calls, len(values) + 1)
    assert [args[0] for args, _ in made] == [*values, values[0]]


def test_other_sizes_take_turns_and_share_what_is_the_same(torch):
    weight = torch.ones(2)
    calls = [((torch.ones(n), weight), {}) for n in (3, 4, 3)]
    made = replayed(torch, calls, 2)
    assert [args[0].shape[0] for args, _ in made] == [3, 4]
    assert made[0][0][1] is made[1][0][1] is not weight


def test_no_more_than_some(torch):
    calls = [((torch.ones(n),), {}) for n in range(2, 2 * MOST_OTHERS)]
    sizes = {args[0].shape[0] for args, _ in replayed(torch, calls, 3 * MOST_OTHERS)}
    assert sizes == set(range(2, 2 + MOST_OTHERS))


def test_calls_of_another_form_are_left_out(torch):
    calls = [((1,), {}), ((1,), {"more": 2}), ((1, 2), {})]
    assert replayed(torch, calls, 2) == [((1,), {})] * 2
