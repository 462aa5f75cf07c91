"""A set of tables: what is put later, what is made once, what a copy shares."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from traceview.tables import Tables, from_rows, having

RUN = from_rows("runs", [{"pass": "cold", "rank": 0}])


def heights(tables, name):
    return tables[name].height


def test_a_table_put_later_is_made_when_somebody_looks_and_once_for_all_copies():
    made = []
    tables = Tables()
    tables.put_later("runs", lambda: made.append(1) or RUN.select("pass", "rank"))
    copied = tables.copy()
    assert tables.has("runs")
    assert copied.has("runs")
    assert made == []
    assert copied["runs"].equals(RUN)  # with all its columns
    assert tables["runs"].equals(RUN)
    assert made == [1]


def test_what_is_put_into_a_copy_is_not_in_the_original():
    tables = Tables({"runs": RUN})
    copied = tables.copy()
    copied.put("runs", RUN.clear())
    copied.put("regions", from_rows("regions", []))
    assert heights(tables, "runs") == 1
    assert not tables.has("regions")


def test_what_is_made_once_is_forgotten_when_a_table_is_put():
    tables = Tables({"runs": RUN})
    first = tables.once(heights, "runs")
    tables.put("runs", pl.concat([RUN, RUN]))
    assert (first, tables.once(heights, "runs")) == (1, 2)


def test_what_is_kept_stands_for_what_is_made_once():
    tables = Tables()
    tables.keep(list, ["kept"])
    assert tables.once(list) == ["kept"]
    tables.put("runs", from_rows("runs", []))
    assert tables.once(list) == ["runs"]


def test_what_is_made_once_is_the_same_for_all_who_ask_the_same():
    def ask(own, name):
        return [name, heights(own, name)]

    tables = Tables({"runs": RUN})
    assert tables.once(ask, "runs") is tables.once(ask, "runs")
    assert tables.once(ask, "regions") == ["regions", 0]


def test_tables_put_later_are_saved_too(tmp_path):
    tables = Tables()
    tables.put_later("runs", lambda: RUN)
    tables.save(tmp_path)
    assert Tables.load(tmp_path)["runs"].equals(RUN)


@pytest.mark.parametrize(
    "values", [{"a": 1}, {"a": None}, {"b": "x"}, {"a": 1, "b": "x"}, {"a": 9}]
)
@pytest.mark.parametrize("rows", [[], [1, 1], [None, None], [1, None, 2]])
def test_having_finds_what_a_filter_finds(rows, values):
    names = ["x", "y", None][: len(rows)]
    schema = {"a": pl.Int32, "b": pl.String}
    frame = pl.DataFrame({"a": rows, "b": names}, schema=schema)
    equal = (pl.col(n).eq_missing(pl.lit(v, dtype=schema[n])) for n, v in values.items())
    assert_frame_equal(having(frame, **values), frame.filter(*equal))
