"""Several profiler traces of one rank: one is looked at, the others are named."""

import json
import re
import tarfile
from pathlib import Path

import polars as pl

from traceview.reading import open_tables
from traceview.reading.opening import chosen_traces, notes_of, parts_aside
from traceview.tables import from_rows

_ZERO = re.compile(rb'(?<="baseTimeNanoseconds": )\d+')
JOB = Path(__file__).resolve().parents[2] / "fixtures" / "jobs" / "restarted.tar.xz"


def traces(*rows):
    found = ({"pass": "logs", "stance": "compiled", **row} for row in rows)
    return from_rows("traces", found)


def test_the_trace_with_most_events_is_looked_at():
    told = traces(
        {"rank": 0, "name": "a.json", "events": 5},
        {"rank": 0, "name": "b.json", "events": 9},
        {"rank": 1, "name": "c.json", "events": 2},
        {"rank": 0, "name": "d.json", "events": 1, "stance": "eager"},
    )
    inputs = from_rows("inputs", [{"name": f"{n}.json", "part": n} for n in "abcd"])
    assert chosen_traces(told)["name"].to_list() == ["b.json", "c.json", "d.json"]
    assert parts_aside(told, inputs) == {"a"}
    (note,) = notes_of(told).to_dicts()
    assert (note["rank"], note["what"]) == (
        0,
        "profiler traces not looked at, of compiled steps: a.json",
    )


def test_a_rank_with_one_trace_has_nothing_aside():
    told = traces({"rank": 0, "name": "a.json", "events": None}, {"rank": 1, "name": "b.json"})
    assert parts_aside(told, from_rows("inputs", [])) == frozenset()


def test_rows_of_two_traces_of_a_rank_are_not_mixed(tmp_path, read):
    with tarfile.open(JOB) as archive:
        member = next(m for m in archive if m.name.endswith("worker0.pt.trace.json"))
        trace = archive.extractfile(member).read()
    for name, later in (("first", 0), ("second", 100 * 10**9)):
        path = tmp_path / "logs" / f"{name}_rank_0.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(_later(trace, later))
    run, _ = read(tmp_path / "logs")
    tables = open_tables(run)
    on_disk = pl.scan_parquet(run.tables_folder / "cpu_ops", hive_partitioning=True)
    assert tables["traces"].height == 1
    assert tables["cpu_ops"]["op_id"].is_duplicated().sum() == 0
    assert on_disk.select(pl.len()).collect().item() == 2 * tables["cpu_ops"].height
    assert tables["notes"].height == 1


def _later(trace, by_ns):
    """The same trace, of another time."""
    return _ZERO.sub(lambda found: b"%d" % (int(found[0]) + by_ns), trace)


def test_what_could_not_be_read_of_a_trace_set_aside_is_counted(tmp_path, read):
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, events in (("whole", [event, event]), ("bad", [event, event | {"dur": "x" * 9}])):
        (folder / f"{name}_rank_0.json").write_text(json.dumps({"traceEvents": events}))
    run, *_ = read(folder)
    tables = open_tables(run)
    assert tables["notes"].height == 1, "one of them is set aside"
    assert tables["unreadable"]["file"].to_list() == ["bad_rank_0.json"]
