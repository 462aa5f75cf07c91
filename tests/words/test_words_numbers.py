import math

import pytest

from traceview.words import numbers as fmt


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0152, "15.2 µs"),
        (0.794, "0.794 ms"),
        (4.5512, "4.55 ms"),
        (123.4, "123 ms"),
        (1270.0, "1.27 s"),
        (0.0, "0 ms"),
        (-0.25, "−0.250 ms"),
        (None, "not recorded"),
        (math.nan, "not recorded"),
        (math.inf, "not recorded"),
    ],
)
def test_milliseconds_pick_the_unit_that_reads_best(value, words):
    assert fmt.milliseconds(value) == words


def test_seconds_below_one_are_milliseconds():
    assert [fmt.seconds(v) for v in (0.35, 1.27, 212.4, None)] == [
        "350 ms", "1.27 s", "212 s", "not recorded",
    ]  # fmt: skip


def test_bytes_are_binary():
    assert [fmt.size(v) for v in (0, 1023, 1024, 1.27 * 2**30, None)] == [
        "0 B", "1,023 B".replace(",", ""), "1.00 KiB", "1.27 GiB", "not recorded",
    ]  # fmt: skip


def test_ratios_and_their_interval():
    assert fmt.ratio(5.756) == "5.76×"
    assert fmt.ratio_interval((5.71, 5.8)) == "5.71–5.80×"
    assert fmt.ratio_interval((5.71, math.nan)) == fmt.ratio_interval(None) == "not recorded"


def test_difference_has_a_sign_and_needs_both_ends():
    assert fmt.difference(1.0, 0.25) == "−0.750"
    assert fmt.difference(0.25, 1.0) == "+0.750"
    assert fmt.difference(None, 1.0) == "not recorded"


def test_counts_keep_a_decimal_only_where_there_is_one():
    assert [fmt.count(v) for v in (1234, 12.5, 3.01, None)] == [
        "1,234",
        "12.5",
        "3",
        "not recorded",
    ]


def test_a_change_has_a_sign_unless_it_rounds_to_zero():
    changes = [fmt.change(ratio) for ratio in (0.78, 1.05, 0.996, 21.0)]
    assert changes == ["−22", "+5", "0", "+2,000"]


def test_plural():
    assert fmt.plural(1, "step") == "1 step"
    assert fmt.plural(1206, "step") == "1,206 steps"
