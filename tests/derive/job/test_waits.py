"""When a rank may be said to have waited for another one's compile."""

from job_rows import ZERO, S, compiled, job

from traceview.derive.job.attempts import attempt
from traceview.derive.job.waits import wait_rows
from traceview.tables import from_rows


def waits(*compiles, **more):
    tables = job(compiles=compiles, **more)
    return from_rows("job_waits", wait_rows(tables, attempt(tables, "logs"))).to_dicts()


SLOW = compiled(17, 0, 300)
QUICK = [compiled(0, 0, 10), compiled(0, 300.4, 5, "1/0")]


def test_a_gap_that_anothers_compile_fills_and_ends_is_a_wait():
    (row,) = waits(SLOW, *QUICK)
    assert (row["member"], row["waiting_member"], row["basis"]) == ("17", "0", "heuristic")
    assert (row["seconds"], row["started_us"]) == (290, ZERO + 10 * S)
    assert round(row["resumed_s"], 3) == 0.4


def test_a_rank_that_never_compiles_again_shows_no_wait():
    assert waits(SLOW, compiled(0, 0, 10)) == []


def test_a_rank_that_goes_on_much_later_was_not_waiting():
    assert waits(SLOW, compiled(0, 0, 10), compiled(0, 400, 5, "1/0")) == []


def test_a_short_compile_at_the_end_of_a_long_gap_explains_nothing():
    late = compiled(17, 290, 10, "3/0")
    assert waits(compiled(17, 0, 10), late, *QUICK) == []


def test_a_gap_of_less_than_a_second_says_nothing():
    assert waits(compiled(1, 0, 10.9), compiled(0, 0, 10), compiled(0, 10.9, 1, "1/0")) == []


def test_a_rank_alone_waits_for_nobody():
    assert waits(*QUICK) == []


def test_the_rank_that_was_slow_may_go_on_compiling_with_the_others():
    (row,) = waits(SLOW, compiled(17, 300.3, 5, "1/0"), *QUICK)
    assert (row["member"], row["compile_id"], row["seconds"]) == ("17", "0/0", 290.1)


def test_a_forward_and_its_backward_are_one_wait_named_by_the_longer():
    slow = [compiled(2, 0, 100), compiled(2, 100.2, 190, is_forward=False, co_name="longer")]
    (row,) = waits(*slow, compiled(0, 0, 10), compiled(0, 290.5, 5, "1/0"))
    assert (row["co_name"], round(row["seconds"], 1)) == ("longer", 280.0)


def test_every_rank_that_waits_has_a_row():
    quick = [
        row for rank in range(4) for row in (compiled(rank, 0, 10), compiled(rank, 301, 1, "1/0"))
    ]
    assert [row["waiting_member"] for row in waits(SLOW, *quick)] == ["0", "1", "2", "3"]


def test_where_steps_were_recorded_they_decide():
    measured = {
        "rank": 17, "compile_key": SLOW["compile_key"], "waiting_rank": 3, "started_us": ZERO,
        "wait_ms": 4000.0, "compile_ms": 5000.0,
    }  # fmt: skip
    steps = [{"rank": rank, "pid": 1, "step": 0} for rank in (0, 17)]
    (row,) = waits(SLOW, *QUICK, rank_waits=[measured], steps=steps)
    assert (row["waiting_member"], row["seconds"], row["basis"]) == ("3", 4, "measured")
    assert waits(SLOW, *QUICK, steps=steps) == []
