"""Which compiles of one rank another rank waited for."""

import pytest

from traceview.derive.job.waits import rank_waits
from traceview.tables import Tables, from_rows

S = 1_000_000  # µs


def code(name="forward"):
    return {"co_filename": "/u/net.py", "co_firstlineno": 7, "co_name": name}


def compiled(rank, start, seconds, id_="0/0", **more):
    key = f"cold:{rank}:0:{id_}"
    return {
        "rank": rank, "pid": rank, "compile_key": key, "compile_id": id_, "is_forward": True,
        "started_us": float(start * S), "duration_us": float(seconds * S), **code(), **more,
    }  # fmt: skip


def stepped(rank, step, start, seconds, compiles=0):
    return {
        "rank": rank, "pid": rank, "step": step, "stance": "compiled", "started_us": start * S,
        "host_ms": seconds * 1e3, "compiles_inside": compiles,
    }  # fmt: skip


def waits(compiles, steps, blocks=(), events=(), ranks=(0, 1)):
    tables = {
        "runs": [{"rank": rank, "pid": rank} for rank in ranks],
        "compiles": compiles,
        "steps": steps,
        "blocks": blocks,
        "cache_events": events,
    }
    made = Tables(
        {
            name: from_rows(name, [{"pass": "cold", **r} for r in rows])
            for name, rows in tables.items()
        }
    )
    return rank_waits(made).to_dicts()


#: Rank 1 compiles for 4 s in step 2; rank 0 is in step 2 for as long.
LONE = [compiled(1, 2, 4)]
STEPS = [
    *(stepped(rank, step, step, 1) for rank in (0, 1) for step in (0, 1)),
    stepped(0, 2, 2, 5),
    stepped(1, 2, 2, 5, compiles=1),
]


def test_a_rank_that_stands_still_waits():
    (wait,) = waits(LONE, STEPS)
    assert (wait["rank"], wait["waiting_rank"], wait["step"]) == (1, 0, 2)
    assert (wait["compile_ms"], wait["wait_ms"]) == (4000.0, 4000.0)
    assert wait["found_in_cache"] is False


def test_a_rank_that_gets_on_does_not_wait():
    got_on = [stepped(0, 2 + n, 2 + n, 1) for n in range(4)]
    assert waits(LONE, [*STEPS[:4], *got_on, STEPS[5]]) == []


def test_a_rank_that_gets_on_in_a_timed_block_does_not_wait():
    block = {
        "rank": 0, "pid": 0, "stance": "compiled", "first_step": 2, "steps": 5,
        "started_us": 2.0 * S, "host_ms": 5e3,
    }  # fmt: skip
    assert waits(LONE, [*STEPS[:4], STEPS[5]], [block]) == []


def test_what_a_step_lasts_that_no_row_tells_of_is_seen_between_its_neighbours():
    around = [*STEPS[:4], stepped(0, 3, 7, 1), STEPS[5]]
    (wait,) = waits(LONE, around)
    assert wait["wait_ms"] == 4000.0


@pytest.mark.parametrize("start", [2, 2.5, 6.5])
def test_ranks_that_compile_the_same_in_the_same_step_do_not_wait(start):
    assert waits([*LONE, compiled(0, start, 0.4)], STEPS) == []


def test_what_the_other_rank_compiles_meanwhile_is_no_wait():
    other = compiled(0, 2, 2, "1/0", **code("score"))
    waited = [wait for wait in waits([*LONE, other], STEPS) if wait["rank"] == 1]
    assert [wait["compile_ms"] for wait in waited] == [2000.0]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [("miss", "hit", True), ("miss", "miss", False), ("hit", "hit", False), (None, "hit", False)],
)
def test_a_cache_that_only_one_rank_finds_filled(first, second, told):
    both = [*LONE, compiled(0, 2, 0.1)]
    events = [
        {"compile_key": f"cold:{rank}:0:0/0", "cache": "fx_graph", "event": event}
        for rank, event in ((1, first), (0, second))
        if event
    ]
    assert [wait["found_in_cache"] for wait in waits(both, STEPS, events=events)] == [True] * told


def test_of_several_ranks_the_one_that_lost_most_is_named():
    third = [stepped(2, 0, 0, 1), stepped(2, 1, 1, 1), stepped(2, 2, 2, 6)]
    late = [*STEPS[:4], stepped(0, 2, 2.2, 4.8 - 0.2), STEPS[5]]
    (wait,) = waits(LONE, [*late, *third], ranks=(0, 1, 2))
    assert wait["waiting_rank"] == 2


def test_one_rank_waits_for_nobody():
    assert waits(LONE, STEPS[1::2], ranks=(1,)) == []


def test_without_steps_nothing_is_known():
    assert waits(LONE, []) == []
