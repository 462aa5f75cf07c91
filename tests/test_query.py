import csv
import io
import json
import random
import socket

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
        ("drop table graph_breaks; select 1", "must be one SELECT", "Tables are"),
        ("drop table graph_breaks", "must be one SELECT", "Tables are"),
        ("create table t as select * from runs", "must be one SELECT", "Tables are"),
        ("select $$a$$", "'$' is no part of its SQL", "Tables are"),
        ("select gb_id from graph_breaks where gb_id = 'n\udcff'", "'\\udcff'", "Tables are"),
        ("with q as (select 1) delete from graph_breaks", "unsupported", "Tables are"),
        ("(truncate table graph_breaks)", "must be one SELECT", "Tables are"),
        ("select 'a", "is no part of its SQL", "Tables are"),
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


GAPS = ("", " ", "\n", "/**/", "/* ' */\n", "-- '\n", '/*"*/ ', "\t/* ( */")
NAMES = ("{}", '"{}"', "`{}`", "{}", '"{}"')
FUNCTIONS = (
    *("read_csv", "READ_CSV", "Read_Parquet", "read_ipc", "read_json", "read_ndjson", "scan_csv"),
    *("generate_series", "range"),
)
QUERIES = (
    "select * from {}",
    "select * from graph_breaks, {}",
    "select * from graph_breaks as a join {} as b on true",
    "with q as (select * from {}) select * from q",
    "select pass from graph_breaks where pass in (select secret from {})",
    "select * from (select * from {}) as x",
    "from {}",
    "select pass from graph_breaks union all select secret from {}",
    "select extract(year from {})",
    "select * from graph_breaks where array_length(hints) > 1.{}",
    "explain select * from {}",
    "select E'\\' as a, b.* from {} as b where '' = ''",
    "select 'it''s' as a, b.* from {} as b",
    "select x'27' as a, b.* from {} as b",
    "select 'a' as \"'\", b.* from {} as b",
    "select exists((select 1 from {}))",
    "with recursive q as (select * from {}) select * from q",
    "select trim(both 'a' from (select secret from {}))",
    "select * from graph_breaks, lateral (select * from {}) as x",
    "select user_line from graph_breaks limit (select 1 from {})",
    "explain analyze select * from {}",
)


@pytest.mark.parametrize("query", QUERIES)
def test_no_query_opens_a_file_or_a_url(tables, tmp_path, query):
    path = tmp_path / "secret.csv"
    path.write_text("secret\nsesame\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/secret.csv"
        draw = random.Random(query)
        for _ in range(60):
            name = draw.choice(NAMES).format(draw.choice(FUNCTIONS))
            text = draw.choice(("'{}'", "$${}$$", "E'{}'", '"{}"')).format(draw.choice((path, url)))
            gaps = draw.choices(GAPS, k=3)
            called = f"{gaps[0]}{name}{gaps[1]}({gaps[2]}{text})"
            with pytest.raises(UsageError):
                run_sql(tables, query.format(called))
        with pytest.raises(BlockingIOError):
            server.accept()


def test_the_functions_that_are_tried_are_all_that_polars_has():
    known = {name for name in dir(pl) if name.startswith(("read_", "scan_"))}
    known |= {name.replace("scan_", "read_") for name in known}
    context = pl.SQLContext(eager=True)
    for name in known - {name.lower() for name in FUNCTIONS}:
        with pytest.raises(pl.exceptions.SQLInterfaceError, match="not a supported table function"):
            context.execute(f"select * from {name}('/nowhere')")


LONG = {
    "union": " union all ".join(["select pass from graph_breaks"] * 2000),
    "text": f"select {'||'.join(['pass'] * 2000)} from graph_breaks",
    "sum": f"select {' + '.join(['1'] * 5000)}",
    "join": f"select 1 from graph_breaks a {'join graph_breaks using (pass) ' * 3000}",
    "with": "with " + ", ".join(f"t{n} as (select 1)" for n in range(3000)) + " select * from t1",
    "not": f"select {'not ' * 300} true",
    "case": f"select {'case when true then ' * 300} 1 {'end ' * 300}",
    "is": f"select 1 {'is null ' * 3000}",
    "like": f"select pass {'like pass ' * 3000}",
    "interval": f"select {'interval ' * 3000}",
}


@pytest.mark.parametrize("name", LONG)
def test_a_query_that_would_end_polars_is_refused(tables, name):
    with pytest.raises(UsageError) as caught:
        run_sql(tables, LONG[name])
    assert "operators, joins and SELECTs" in caught.value.fact
    assert "200 at most" in caught.value.remedy


def test_a_long_list_and_deep_parentheses(tables):
    numbers = ", ".join(map(str, range(5000)))
    sql = f"select count(*) from graph_breaks where user_line in ({numbers})"
    assert run_sql(tables, sql).rows() == [(3,)]
    assert run_sql(tables, f"select {'(' * 15}1{')' * 15}").rows() == [(1,)]
    for opened, closed in (("(", ")"), ("cast(", " as int)"), ("position(", ")"), ("array[", "]")):
        with pytest.raises(UsageError, match="more than 16 brackets"):
            run_sql(tables, f"select {opened * 40}1{closed * 40}")


def test_a_query_writes_nothing(tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for sql in (
        "copy graph_breaks to 'x.csv'",
        "select * into x from graph_breaks",
        "create table x as select 1",
        "insert into graph_breaks values (1)",
        "with x as (select 1) insert into graph_breaks select * from x",
        "explain analyze insert into graph_breaks values (1)",
    ):
        with pytest.raises(UsageError):
            run_sql(tables, sql)
    assert [*tmp_path.iterdir()] == []
    assert run_sql(tables, "select count(*) from graph_breaks").rows() == [(3,)]


@pytest.mark.parametrize("place", ["'{}'", '"{}"', "`{}`", "graph_breaks, '{}'"])
def test_a_path_is_no_table(tables, tmp_path, place):
    path = tmp_path / "secret.csv"
    path.write_text("secret\nsesame\n", encoding="utf-8")
    with pytest.raises(UsageError):
        run_sql(tables, f"select * from {place.format(path)}")


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select count(*) from graph_breaks where user_line>=3 and user_line <> 4;", [(2,)]),
        (
            "select a.gb_id from graph_breaks as a(p) where a.user_line = 4; -- (read_csv(",
            [(None,)],
        ),
        ("select /* from read_csv( */ max(user_line) - -1.5 from graph_breaks", [(5.5,)]),
        (
            "with q as (select 'from' || pass as p from graph_breaks) select max(p) from q",
            [("fromwarm",)],
        ),
        (
            "select coalesce(gb_id, 'x') is distinct from upper('x') from graph_breaks limit 1",
            [(True,)],
        ),
        ("select extract(year from date '2020-02-03')", [(2020,)]),
        (
            'select "pass" from (select pass from graph_breaks order by lower(pass) desc) limit 1',
            [("warm",)],
        ),
        ("(select user_line::text from graph_breaks where user_line in (select 4))", [("4",)]),
        ("select sum(user_line) over (partition by pass) from graph_breaks limit 1", [(7,)]),
        ("from graph_breaks", None),
        ("show tables", None),
    ],
)
def test_what_a_query_may_be(tables, sql, rows):
    found = run_sql(tables, sql).rows()
    assert found == rows if rows else found


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
