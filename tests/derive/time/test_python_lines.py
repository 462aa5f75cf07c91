"""Lines of Python between two operators, by the step whose lines were marked."""

import polars as pl

from traceview.derive.time.lines import python_lines

FILE = "/w/train.py"


def test_the_stretch_around_the_steps_ends_is_the_tightest_one():
    """An operator that is met twice in a timed step and once in the marked one is no end of it."""
    marked = [  # op_id, parent_id, kind, name, line, start_ns, duration_ns
        (0, None, "user_annotation", "step", None, 0, 100),
        (1, None, "line", "a", 45, 0, 10),
        (2, None, "line", "b", 40, 10, 50),
        (3, 2, "cpu_op", "aten::to", 40, 50, 10),
        (4, None, "line", "c", 44, 60, 38),
        (5, 4, "cpu_op", "aten::add", 44, 65, 5),
        (6, 4, "cpu_op", "aten::mul", 44, 80, 15),
    ]
    columns = ("op_id", "parent_id", "kind", "name", "line", "start_ns", "duration_ns")
    line_ops = pl.DataFrame(marked, schema=list(columns), orient="row").with_columns(
        file=pl.when(pl.col("line").is_not_null()).then(pl.lit(FILE)), tid=pl.lit("1")
    )
    sources = pl.DataFrame({"op_id": [10, 11, 12, 13], "line_op_id": [3, 5, 5, 6]})
    ops = [None, 10, None, 11, None, 12, None, 13]
    line = pl.DataFrame({"row": range(8), "op": ops}, schema_overrides={"op": pl.Int64})
    line = line.with_columns(
        tid=pl.lit("1"),
        call_name=pl.lit(None, pl.String),
        kind=pl.when(pl.col("op").is_not_null()).then(pl.lit("cpu_op")),
        graph_key=pl.lit(None, pl.String),
        name=pl.lit("aten::x"),
    )
    found = {row: line for row, _, line in python_lines(line, sources, line_ops).rows()}
    assert found == {0: 40, 2: 44, 6: 44}
