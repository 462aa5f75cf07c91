"""Python during another rank's compile is not called the script's own."""

import polars as pl
from job_rows import ZERO, S, compiled, job

from traceview.derive import causes
from traceview.derive.time.host_line import compiles_elsewhere, with_compiles_elsewhere
from traceview.derive.windows import windows

MS = 1_000_000


def line(*stretches):
    rows = [{"start": a * MS, "end": b * MS, "cause": cause} for a, b, cause in stretches]
    return pl.DataFrame(rows)


def spans(*pairs):
    rows = {"start": [a * MS for a, _ in pairs], "end": [b * MS for _, b in pairs]}
    return pl.DataFrame(rows, schema={"start": pl.Int64, "end": pl.Int64})


def called(given, compiles):
    return with_compiles_elsewhere(given, compiles)["cause"].to_list()


def test_a_long_stretch_that_a_compile_fills_has_its_name():
    given = line((0, 100, causes.PYTHON), (100, 300, causes.PYTHON), (300, 400, "gemm"))
    elsewhere = causes.HOST_COMPILE_ELSEWHERE
    assert called(given, spans((90, 290), (300, 400))) == [causes.PYTHON, elsewhere, "gemm"]
    waiting = line((0, 100, causes.OTHER_PYTHON))
    assert called(waiting, spans((0, 60))) == [causes.COMPILE_ELSEWHERE]


def test_short_stretches_and_compiles_that_fill_little_of_one_keep_it_python():
    given = line((0, 5, causes.PYTHON), (5, 105, causes.PYTHON))
    assert called(given, spans((0, 40))) == [causes.PYTHON] * 2
    assert called(given, spans()) == [causes.PYTHON] * 2


def tables(**trace):
    at = {"rank": 0, "stance": "compiled"}
    op = {**at, "op_id": 0, "tid": "1", "name": "aten::add", "kind": "op", "category": "gemm"}
    told = {**at, "name": "t.json", "zero_ns": 1000 * ZERO, **trace}
    return job(
        cpu_ops=[{**op, "start_ns": 0, "duration_ns": MS, "self_ns": MS}],
        traces=[told],
        compiles=[compiled(0, 1, 2), compiled(1, 3, 2), compiled(2, 4, 5)],
    )


def found(given):
    (window,) = windows(given)
    return compiles_elsewhere(given, window).rows()


def test_compiles_of_other_ranks_are_on_the_traces_clock():
    assert found(tables()) == [(3 * S * 1000, 9 * S * 1000)]


def test_a_trace_without_its_time_tells_nothing():
    assert found(tables(zero_ns=None)) == []
