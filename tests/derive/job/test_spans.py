"""Seconds of compiles, of ranks and of functions."""

import pytest
from job_rows import ZERO, S, compiled, job, looked

from traceview.derive.job.attempts import attempt, phases_of
from traceview.derive.job.ranks import frame_rows, rank_rows
from traceview.tables import from_rows


def ranks(**rows_by_table):
    tables = job(**rows_by_table)
    return from_rows("job_ranks", rank_rows(tables, attempt(tables, "logs"))).to_dicts()


def frames(*rows):
    return from_rows("job_frames", frame_rows(attempt(job(compiles=rows), "logs"))).to_dicts()


NESTED = {"dynamo_us": 10 * S, "aot_us": 8 * S, "inductor_us": 6 * S, "codegen_us": 5 * S}


def test_nested_phases_are_added_up_once():
    (row,) = ranks(compiles=[compiled(0, 0, 10, **NESTED)])
    assert row["seconds"] == 10
    assert (row["dynamo_s"], row["aot_s"], row["inductor_s"], row["codegen_s"]) == (2, 2, 1, 5)


def test_a_compile_inside_another_one_counts_once():
    (row,) = ranks(compiles=[compiled(0, 0, 10), compiled(0, 2, 3, "1/0")])
    assert row["seconds"] == 10
    assert sum(row[name] for name in ("dynamo_s", "aot_s", "inductor_s", "codegen_s")) == 10


def test_the_same_process_id_on_two_hosts_is_two_ranks():
    rows = ranks(compiles=[compiled(0, 0, 10), compiled(1, 2, 3)])
    assert [(row["member"], row["seconds"]) for row in rows] == [("0", 10), ("1", 3)]


def test_a_compile_without_a_duration_has_no_seconds():
    (row,) = ranks(compiles=[compiled(0, 0, None, outcome="unfinished")])
    assert row["seconds"] is None
    assert row["dynamo_s"] is None


def test_a_rank_that_logged_and_compiled_nothing_compiled_for_no_time():
    rows = ranks(compiles=[compiled(0, 0, 4)], log_records=[{"rank": 1, "pid": 1, "key": "str"}])
    assert [(row["member"], row["seconds"], row["compiles"]) for row in rows] == [
        ("0", 4, 1),
        ("1", 0, 0),
    ]


def test_a_helper_process_without_rank_and_compiles_is_no_member():
    rows = ranks(compiles=[compiled(0, 0, 4)], log_records=[{"rank": None, "pid": 9}])
    assert [row["member"] for row in rows] == ["0"]


def test_look_ups_and_breaks_that_were_not_recorded_are_null():
    (row,) = ranks(compiles=[compiled(0, 0, 4)])
    assert (row["hits"], row["misses"], row["bypasses"], row["graph_breaks"]) == (None,) * 4


def test_look_ups_are_counted_by_how_they_ended():
    events = [looked(0, "hit"), looked(0, "guard_miss"), looked(0, "miss"), looked(0, "bypass")]
    other = {**looked(0, "hit"), "cache": "aotautograd"}
    (row,) = ranks(compiles=[compiled(0, 0, 4)], cache_events=[*events, other])
    assert (row["hits"], row["misses"], row["bypasses"]) == (1, 2, 1)


def test_a_break_counts_once_a_compile_and_line():
    at = {"rank": 0, "compile_key": "part0:1:0:0/0", "user_file": "/u/net.py", "gb_type": "call"}
    rows = [{**at, "user_line": 3, "attempt": n} for n in (0, 1)] + [{**at, "user_line": 4}]
    (row,) = ranks(compiles=[compiled(0, 0, 4)], graph_breaks=rows)
    assert row["graph_breaks"] == 2


def test_pieces_of_one_line_are_no_recompiles_of_each_other():
    pieces = [compiled(0, 0, 4, "1/0"), compiled(0, 5, 4, "2/0"), compiled(0, 9, 1, "2/1")]
    assert ranks(compiles=pieces)[0]["recompiles"] == 1


def test_functions_are_ordered_by_seconds_over_all_ranks():
    other = {"co_name": "loss", "co_firstlineno": 30}
    cheap = [compiled(rank, 50, 1, "1/0", **other) for rank in range(8)]
    dear = [compiled(0, 0, 30), compiled(1, 0, 5)]
    first, second = frames(*cheap, *dear)
    assert (first["co_name"], first["rank_seconds"], first["most_member"]) == ("forward", 35, "0")
    assert (second["ranks"], second["compiles"], second["most_seconds"]) == ("0-7", 8, 1)


def test_a_backward_belongs_to_its_forward_and_is_no_compile_of_its_own():
    backward = compiled(0, 6, 2, is_forward=False)
    (row,) = frames(compiled(0, 0, 4), backward)
    assert (row["compiles"], row["recompiles"], row["rank_seconds"]) == (1, 0, 6)


def test_phases_add_up_to_the_seconds():
    found = attempt(job(compiles=[compiled(0, 0, 10, **NESTED), compiled(0, 20, 1, "1/0")]), "logs")
    assert sum(phases_of(found.spans).values()) == pytest.approx(found.seconds("0"))
    assert found.zero_us == ZERO
