"""Which process a diagnosis is about, whatever the order of rows; and rows as structs."""

import random

import polars as pl
import pytest
from factories import speedup
from job_rows import compiled, key

from traceview.diagnosis.explanation import FusionNote
from traceview.diagnosis.focus import Focus, struct_of
from traceview.tables import Tables, empty, from_rows


def focus_of(table, rows):
    """The focus of one table, which is the same for every order of its rows."""
    found = {
        Focus.of(Tables({table: from_rows(table, random.Random(seed).sample(rows, len(rows)))}))
        for seed in range(8)
    }
    assert len(found) == 1
    return found.pop()


def test_a_post_mortem_is_about_the_lowest_rank_of_the_last_start():
    rows = [
        {**compiled(rank, 0, 1), "pass": name}
        for name in ("logs.2", "logs", "logs.10")
        for rank in (3, 11, 2, None)
    ]
    assert focus_of("compiles", rows) == Focus("logs", 2, None)
    assert focus_of("compiles", [row for row in rows if row["pass"] != "logs"]) == Focus(
        "logs.2", 2, None
    )


def test_processes_without_a_rank_are_one_subject():
    rows = [
        {**compiled(None, 0, 1), "pid": pid, "compile_key": key(pid), "pass": "logs"}
        for pid in (12, 7)
    ]
    assert focus_of("compiles", rows) == Focus("logs", None, None)


def test_a_verdict_is_about_the_lowest_rank_that_was_measured():
    rows = [speedup(rank=rank, pid=pid) for rank, pid in ((1, 5), (0, 9), (0, 8))]
    assert focus_of("speedups", rows) == Focus("cold", 0, 8)
    both = [{**rows[0], "pass": "cold"}, {**rows[0], "pass": "again", "rank": 0}]
    assert focus_of("speedups", both) == Focus("cold", 1, 5)


@pytest.mark.parametrize("times", [None, 3])
def test_a_null_becomes_what_the_contract_has_for_it(times):
    row = from_rows("fusion_notes", [{"kind": None, "text": "x", "ops": ["a"], "times": times}])
    note = struct_of(FusionNote, row.row(0, named=True))
    assert (note.kind, note.ops, note.lines, note.reason) == ("other", ("a",), (), None)
    assert note.times == (times or 1)


def test_rows_are_those_of_the_process_the_largest_first():
    rows = [
        {"pass": "cold", "rank": rank, "name": "k", "ms": ms}
        for rank, ms in ((0, 1.0), (0, None), (0, 3.0), (1, 9.0))
    ]
    frame = pl.concat([empty("kernel_groups"), from_rows("kernel_groups", rows)])
    found = Focus("cold", 0, None).rows(frame, largest="ms")
    assert [row["ms"] for row in found] == [3.0, 1.0, None]
