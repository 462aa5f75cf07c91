"""Which block pairs a figure rests on, and why the others are left out."""

import pytest

from traceview.derive.pairs import block_pairs
from traceview.tables import Tables, from_rows


def block(pair, stance, ms_per_step, steps=100, **more):
    return {
        "pass": "cold",
        "pid": 1,
        "block_index": 2 * pair + (stance == "compiled"),
        "pair_index": pair,
        "stance": stance,
        "steps": steps,
        "clock": "host",
        "duration_ms": ms_per_step * steps,
        "host_ms": ms_per_step * steps,
        "region_calls": steps,
        "compiles_inside": 0,
    } | more


def pair(index, eager=2.0, compiled=1.0, *, e=None, c=None, **both):
    return [
        block(index, "eager", eager, **both, **(e or {})),
        block(index, "compiled", compiled, **both, **(c or {})),
    ]


def pairs_of(*pairs):
    rows = [row for blocks in pairs for row in blocks]
    return block_pairs(Tables({"blocks": from_rows("blocks", rows)}))


def left_out(frame):
    return dict(frame.filter(~frame["used"]).select("pair_index", "left_out").iter_rows())


def test_a_pair_is_its_two_blocks_per_step():
    (row,) = pairs_of(pair(0, 3.0, 1.5)).to_dicts()
    assert (row["eager_ms"], row["compiled_ms"], row["speedup"]) == (3.0, 1.5, 2.0)
    assert row["used"]
    assert row["left_out"] is None


def test_a_block_without_its_partner_is_no_pair():
    frame = pairs_of(pair(0), [block(1, "eager", 2.0)])
    assert frame["pair_index"].to_list() == [0]


def test_a_compile_inside_disqualifies():
    frame = pairs_of(pair(0), pair(1, c={"compiles_inside": 2}), pair(2))
    assert left_out(frame) == {1: "2 compile(s) ended inside"}


def test_when_every_pair_holds_a_compile_that_is_the_steady_state():
    frame = pairs_of(*(pair(i, c={"compiles_inside": 1}) for i in range(4)))
    assert frame["used"].all()
    assert frame["compiles_inside"].sum() == 4


def test_where_most_steps_compile_the_first_quiet_ones_do_not_stand_for_them():
    """As with cudagraphs that are recorded again in each step, but not in the first ones."""
    busy = [pair(index, compiled=20.0, c={"compiles_inside": 100}) for index in range(1, 6)]
    frame = pairs_of(pair(0), *busy)
    assert set(left_out(frame)) == {0}
    assert left_out(pairs_of(*(pair(index) for index in range(6, 12)), *busy))[1] == (
        "100 compile(s) ended inside"
    )


def test_other_work_in_the_block_shows_by_its_time():
    usual = [pair(i, 2.0 + 0.01 * i, 1.0) for i in range(6)]
    frame = pairs_of(*usual, pair(6, 4.5, 1.0))
    assert list(left_out(frame)) == [6]
    assert "other work between the edges of the eager block" in left_out(frame)[6]


def test_noise_is_no_other_work():
    frame = pairs_of(*(pair(i, ms, 1.0) for i, ms in enumerate([2.0, 2.4, 1.8, 2.1, 2.6, 1.9])))
    assert frame["used"].all()


def test_other_work_in_the_block_shows_by_its_calls():
    usual = [pair(i) for i in range(5)]
    frame = pairs_of(*usual, pair(5, c={"region_calls": 180}))
    assert left_out(frame)[5].endswith("1.8 region calls a step, elsewhere 1")


def test_replayed_calls_of_one_callable_of_two_are_no_other_work():
    own = [pair(n, e={"region_calls": 200}, c={"region_calls": 200}) for n in range(7)]
    again = {"region_calls": 100, "replayed": True}
    replayed = [pair(n, e=again, c=again) for n in range(7, 14)]
    assert left_out(pairs_of(*own, *replayed)) == {}


def test_one_call_more_at_the_edges_is_no_other_work():
    frame = pairs_of(*(pair(i, steps=5) for i in range(5)), pair(5, steps=5, e={"region_calls": 6}))
    assert frame["used"].all()


@pytest.mark.parametrize(("full_size", "small_used"), [(5, True), (6, False)])
def test_growing_blocks_count_only_until_there_are_enough(full_size, small_used):
    frame = pairs_of(pair(0, steps=10), *(pair(1 + i) for i in range(full_size)))
    assert frame["used"][0] is small_used
    if not small_used:
        assert left_out(frame)[0] == "warming up: blocks of 10 steps, later ones of 100"


def test_the_pairs_of_each_anchor_are_judged_by_themselves():
    first = [pair(i, 9.0, 9.0, anchor_region_id=3, steps=5) for i in range(2)]
    frame = pairs_of(*first, *(pair(i, anchor_region_id=4) for i in range(2, 5)))
    assert frame["used"].all()
    assert frame["anchor_region_id"].to_list() == [3, 3, 4, 4, 4]


def test_calls_of_other_threads_are_named():
    odd = pair(5, region_calls=140, other_thread_calls=40)
    why = left_out(pairs_of(*(pair(i) for i in range(5)), odd))[5]
    assert "calls of other threads ran inside, 1.4 region calls a step" in why


def test_blocks_without_time_or_of_two_clocks_are_left_out():
    frame = pairs_of(
        pair(0), pair(1, c={"duration_ms": None}), pair(2, c={"clock": "device"}), pair(3, steps=0)
    )
    assert left_out(frame) == {
        1: "no time was recorded",
        2: "the two blocks were timed by different clocks",
        3: "no time was recorded",
    }


def test_processes_do_not_mix():
    frame = pairs_of(pair(0), pair(0, 8.0, 1.0, pid=2))
    assert sorted(frame["speedup"].to_list()) == [2.0, 8.0]


def test_no_blocks_no_pairs():
    assert pairs_of().is_empty()


def test_a_pair_weighs_by_its_length_up_to_half_of_the_longest():
    sizes = (4, 20, 50, 100)
    frame = pairs_of(*(pair(i, steps=n) for i, n in enumerate(sizes)))
    assert frame["weight"].to_list() == [4.0, 20.0, 50.0, 50.0]
    uneven = pairs_of(pair(0, e={"steps": 10, "duration_ms": 20.0}, c={"steps": 30}))
    assert uneven["weight"].to_list() == [7.5]


def test_small_pairs_that_hold_much_of_the_steps_are_used():
    sizes = (3, 3, 6, 8, 10, 13, 16, 20)
    frame = pairs_of(*(pair(i, steps=n) for i, n in enumerate(sizes)))
    assert frame["used"].all()


def replay(index, eager, compiled, **both):
    return pair(index, eager, compiled, e={"replayed": True}, c={"replayed": True}, **both)


def test_replayed_calls_of_the_same_length_count_with_the_scripts_own():
    own = [pair(i, 2.0 + i / 10, 1.0 + i / 20) for i in range(4)]
    frame = pairs_of(*own, *(replay(4 + i, 2.1, 1.05) for i in range(8)))
    assert frame["used"].all()
    assert frame["replayed"].to_list() == [None] * 4 + [True] * 8


def test_replayed_calls_that_are_less_than_a_step_do_not_count_beside_enough_steps():
    own = [pair(i, 3.0, 2.0) for i in range(3)]
    frame = pairs_of(*own, *(replay(3 + i, 2.0, 1.0) for i in range(8)))
    assert frame["used"].to_list() == [True] * 3 + [False] * 8
    assert frame["left_out"][5] == (
        "replayed calls are less than a step: 2 ms a call (eager), 3 ms a step"
    )


def test_two_steps_give_way_to_replayed_calls():
    own = [pair(i, 3.0, 2.0) for i in range(2)]
    frame = pairs_of(*own, *(replay(2 + i, 2.0, 1.0) for i in range(8)))
    assert frame["used"].to_list() == [False] * 2 + [True] * 8
    assert frame["left_out"][0].startswith("replayed calls count: ")


def test_the_pairs_of_each_callable_are_judged_alone():
    own = [pair(i, 3.0, 2.0, anchor_region_id=1) for i in range(3)]
    others = [replay(3 + i, 9.0, 9.0, anchor_region_id=2, steps=900) for i in range(8)]
    frame = pairs_of(*own, *others)
    used = frame.filter("used").group_by("anchor_region_id").len().sort("anchor_region_id")
    assert used.rows() == [(1, 3), (2, 8)]


def test_small_blocks_do_not_make_others_look_odd():
    noisy = [pair(i, ms, 1.0, steps=2) for i, ms in enumerate([0.4, 9.0, 3.0])]
    frame = pairs_of(*noisy, *(pair(3 + i, 2.0 + i / 50, 1.0) for i in range(5)))
    assert frame["used"].all()
    frame = pairs_of(*noisy, *(pair(3 + i, 2.0 + i / 50, 1.0) for i in range(6)))
    assert all(reason.startswith("warming up") for reason in left_out(frame).values())
    assert frame["used"].sum() == 6


def restless(*pairs, compiling=None):
    """Pairs of a script that never went quiet; or of one that ended before, by its last steps."""
    rows = [row for blocks in pairs for row in blocks]
    head = {"pass": "cold", "pid": 1}
    tables = {"blocks": from_rows("blocks", rows)}
    tables["runs"] = from_rows("runs", [{**head, "never_quiet": compiling is None or None}])
    steps = [
        {**head, "step": step, "phase": "cold", "compiles_inside": int(step < (compiling or 0))}
        for step in range(10)
    ]
    tables["steps"] = from_rows("steps", steps)
    return block_pairs(Tables(tables))


def recording(index):
    return pair(index, 1.6, 7.0, c={"compiles_inside": 5})


@pytest.mark.parametrize("own", [2, 3, 12])
def test_replayed_calls_do_not_stand_for_steps_that_never_stop_recording(own):
    frame = restless(
        *(recording(index) for index in range(own)),
        *(replay(index, 1.5, 0.9) for index in range(own, own + 8)),
    )
    used = frame.filter("used")
    assert used["speedup"].to_list() == [pytest.approx(1.6 / 7.0)] * own
    assert frame["left_out"][-1].startswith("a replayed call compiles and records nothing")


@pytest.mark.parametrize(("compiling", "used"), [(5, 0), (4, 8)])
def test_replayed_calls_do_not_stand_for_a_short_script_that_compiles_in_most_steps(
    compiling, used
):
    frame = restless(*(replay(index, 1.5, 0.9) for index in range(8)), compiling=compiling)
    assert frame["used"].sum() == used


def test_quiet_pairs_of_its_own_count_where_a_script_calms_down_late():
    frame = restless(recording(0), *(pair(index) for index in range(1, 5)))
    assert left_out(frame) == {0: "5 compile(s) ended inside"}
