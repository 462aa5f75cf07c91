import csv
import io
import json

import polars as pl
import pytest

from traceview.errors import UsageError
from traceview.query import format_csv, format_json, format_table, format_tables, run_sql
from traceview.schema import all_tables
from traceview.tables import Tables, from_rows


@pytest.fixture
def tables():
    breaks = [
        {
            "pass": "cold",
            "compile_id": "0/0",
            "gb_id": "GB0059",
            "hints": ["a", "b"],
            "user_line": 3,
        },
        {"pass": "cold", "compile_id": "1/0", "gb_id": None, "hints": [], "user_line": 4},
        {"pass": "warm", "compile_id": "0/0", "gb_id": "GB0059", "hints": None, "user_line": 3},
    ]
    return Tables({"graph_breaks": from_rows("graph_breaks", breaks)})


def test_a_select_groups_and_orders(tables):
    sql = "select pass, count(*) as n from graph_breaks group by pass order by n desc"
    assert run_sql(tables, sql).rows() == [("cold", 2), ("warm", 1)]


def test_a_table_that_was_not_recorded_has_no_rows(tables):
    assert run_sql(tables, "select name, duration_ns from kernels").shape == (0, 2)


def test_tables_can_be_joined(tables):
    sql = "select g.gb_id from graph_breaks g left join runs r on g.pass = r.pass "
    sql += "where g.user_line = 4"
    assert run_sql(tables, sql).rows() == [(None,)]


@pytest.mark.parametrize(
    ("sql", "words", "remedy"),
    [
        ("select * from graph_brakes", "graph_brakes", "graph_breaks"),
        ("select gb from graph_breaks", "gb", "graph_breaks: pass, rank, compile_key"),
        ("selekt 1", "can't be run", "Tables are runs, environment"),
        ("", "can't be run", "Tables are"),
        ("select * from read_csv('/etc/passwd')", "no other files", "Tables are"),
        ("drop table graph_breaks; select 1", "can't be run", "Tables are"),
    ],
)
def test_a_bad_query_is_one_sentence_with_what_there_is(tables, sql, words, remedy):
    with pytest.raises(UsageError) as caught:
        run_sql(tables, sql)
    assert words in caught.value.fact
    assert "\n" not in caught.value.fact
    assert remedy in caught.value.remedy


def test_a_literal_may_name_a_file_function(tables):
    assert run_sql(tables, "select gb_id from graph_breaks where gb_id = 'read_csv('").height == 0


def test_every_table_and_every_column_is_listed(tables):
    text = format_tables(tables)
    assert text.startswith("runs (not recorded): one process")
    assert "graph_breaks (3 rows): one occurrence of a graph break" in text
    listed = dict(part.partition(" (")[::2] for part in text.split("\n\n"))
    assert list(listed) == list(all_tables())
    for name, spec in all_tables().items():
        columns = [line.split()[0] for line in listed[name].splitlines()[1:]]
        assert columns == list(spec.polars_schema)
        assert len(set(columns)) == len(spec.columns)


def test_a_table_is_aligned_and_one_line_a_row():
    frame = pl.DataFrame({"name": ["a\nb", "<b>" * 40], "ms": [1.5, None]})
    assert format_table(frame, cell_width=10).split("\n") == [
        "name         ms",
        "----------  ---",
        "a b         1.5",
        "<b><b><b>…",
        "(2 rows)",
    ]


def test_csv_can_be_read_back(tables):
    frame = run_sql(tables, "select pass, gb_id, hints from graph_breaks")
    rows = list(csv.reader(io.StringIO(format_csv(frame))))
    assert rows[0] == ["pass", "gb_id", "hints"]
    assert rows[1] == ["cold", "GB0059", '["a", "b"]']
    assert rows[3] == ["warm", "GB0059", ""]


def test_json_is_strict(tables):
    frame = pl.DataFrame({"x": [1.5, float("nan"), None], "s": ["</script>", "é", None]})
    assert json.loads(format_json(frame)) == [
        {"x": 1.5, "s": "</script>"},
        {"x": None, "s": "é"},
        {"x": None, "s": None},
    ]
    assert json.loads(format_json(frame.clear())) == []
