"""Counting the sizes that a region is called with: no torch is needed for it."""

from traceview.collectors.child.listener import MOST_SIZES, OTHER_SIZES, note_sizes
from traceview.collectors.child.state import Region


class Tensor:
    def __init__(self, *shape):
        self.shape = shape


def sizes_of(*calls):
    region = Region(0)
    for given in calls:
        note_sizes(region, given, Tensor)
    return region.sizes


def test_equal_sizes_are_counted_together_in_the_order_of_the_arguments():
    call = (Tensor(32, 64), 3, Tensor(), "mode")
    assert sizes_of(call, call, (Tensor(16, 64), 3, Tensor())) == {"32x64, ()": 2, "16x64, ()": 1}


def test_containers_are_looked_into_once():
    nested = [Tensor(4), (Tensor(2), [Tensor(9)])]
    assert sizes_of((nested, {"mask": Tensor(8, 8), "deep": {"x": Tensor(1)}})) == {"4, 8x8": 1}


def test_a_call_without_tensors_has_sizes_of_its_own():
    assert sizes_of((1, None), ()) == {"": 2}


def test_too_many_combinations_are_counted_as_others():
    assert sizes_of(*((Tensor(n),) for n in range(MOST_SIZES + 5)))[OTHER_SIZES] == 5
