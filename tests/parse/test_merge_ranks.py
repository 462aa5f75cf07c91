"""Ranks that only torch's own log tells."""

from traceview.parse.merge import fill_ranks
from traceview.tables import from_rows


def rows(table, *found):
    return from_rows(table, [{"pass": "cold", **row} for row in found])


def test_rows_of_a_process_get_its_rank():
    filled = fill_ranks(rows("steps", {"pid": 7}, {"pid": 8}, {"pid": 9, "rank": 3}), {7: 0, 8: 1})
    assert filled["rank"].to_list() == [0, 1, 3]


def test_rows_that_name_a_compile_get_the_rank_of_its_process():
    found = rows("graph_breaks", {"compile_key": "cold:8:0:0/0"}, {"compile_key": None})
    assert fill_ranks(found, {8: 1})["rank"].to_list() == [1, None]


def test_rows_that_name_no_process_get_the_only_rank():
    setting = rows("environment", {"name": "world_size"})
    assert fill_ranks(setting, {7: 0})["rank"].to_list() == [0]
    assert fill_ranks(setting, {7: 0, 8: 1})["rank"].to_list() == [None]
    assert fill_ranks(setting, {})["rank"].to_list() == [None]
