"""A large file is cut by a second process and given away in batches: nothing else may change."""

import signal
import subprocess

import polars as pl
import pytest
from structured_log_tools import artifact, at, kinds_of, read_file, record, recorded

from traceview.parse import beside, cutting, store, structured
from traceview.parse.cutting import cuts, cuts_ahead, cutting_begun
from traceview.parse.damage import Damage
from traceview.parse.structured import read_path, read_stream

LOGS = ("inductor", "breaks", "resets", "autograd", "failures", "hits")
FIELDS = ("line", "pid", "head", "key", "context", "payload", "size", "whole")


def damaged(name):
    """A recorded log with foreign lines, a lost line, tabs inside a payload and an end cut off."""
    lines = recorded(name).split(b"\n")
    lines[40:40] = [b"NCCL INFO hello", b"\0\0\0"]
    del lines[len(lines) // 2]
    lines.insert(len(lines) // 3, lines[-2][:50])
    tabs = artifact("fx_graph_runnable", "a\tb\n\tc\n\n", **at(0))
    return tabs + b"\n".join(lines)[:-30]


def found(records):
    return [tuple(getattr(record, field) for field in FIELDS) for record in records]


def in_order(frame):
    key = next((c for c in ("phase_id", "raw_line") if c in frame.columns), None)
    return frame.sort(key, "pass", maintain_order=True) if key else frame


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "dedicated_log_torch_trace_x.log"
    path.write_bytes(damaged("inductor"))
    return path


@pytest.mark.parametrize("name", LOGS)
def test_another_process_cuts_the_same_records_and_damage(tmp_path, name):
    path = tmp_path / "x.log"
    path.write_bytes(damaged(name))
    here, there = [], []
    with path.open("rb") as stream:
        expected = found(cuts(stream, lambda *damage: here.append(damage)))
    assert found(cuts_ahead(path, lambda *damage: there.append(damage))) == expected
    assert here == there
    assert here


@pytest.mark.parametrize("after", [0, 1, 40])
def test_a_process_that_dies_costs_nothing(log, monkeypatch, after):
    few = beside._ENTER.replace("main()", "sys.modules['{module}'].RECORDS = 7; main()")
    monkeypatch.setattr(beside, "_ENTER", few)
    started = []
    popen = subprocess.Popen

    def start(*args, **more):
        started.append(popen(*args, **more))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    damage, whole = [], []
    records = cuts_ahead(log, lambda *found: damage.append(found))
    first = found(next(records) for _ in range(after))
    if started:
        started[0].send_signal(signal.SIGKILL)
    with log.open("rb") as stream:
        expected = found(cuts(stream, lambda *found: whole.append(found)))
    assert first + found(records) == expected
    assert sorted(damage) == sorted(whole)


def test_a_process_that_cannot_start_costs_nothing(log, monkeypatch):
    monkeypatch.setattr(beside.sys, "executable", "/nowhere/python")
    with log.open("rb") as stream:
        expected = found(cuts(stream, lambda *_: None))
    assert found(cuts_ahead(log, lambda *_: None)) == expected


@pytest.mark.parametrize("name", LOGS)
def test_batches_together_are_the_tables(tmp_path, monkeypatch, name):
    path = tmp_path / "x.log"
    path.write_bytes(damaged(name))
    damage = Damage()
    whole = read_file(path, damage)
    monkeypatch.setattr(structured, "BATCH_BYTES", 300_000)
    monkeypatch.setattr(structured, "AHEAD_BYTES", 1)
    again = Damage()
    pieces = read_file(path, again)
    assert pieces.keys() == whole.keys()
    for table, frame in whole.items():  # the log is of two processes: their rows come in turn
        assert in_order(pieces[table]).equals(in_order(frame)), table
    assert again.frame("logs").equals(damage.frame("logs"))


@pytest.mark.parametrize("few", ["1 << 30", "-1"], ids=["behind", "ahead"])
def test_what_is_read_in_spare_time_is_the_same(tmp_path, monkeypatch, few):
    path = tmp_path / "x.log"
    path.write_bytes(damaged("guards"))
    whole = read_file(path, Damage())
    spare = f"sys.modules['{{module}}']._FEW_LISTS = {few}; main()"
    monkeypatch.setattr(beside, "_ENTER", beside._ENTER.replace("main()", spare))
    told = {record.key for record in cuts_ahead(path, lambda *_: None) if record.told is not None}
    assert ("dynamo_cpp_guards_str" in told) is (few == "-1")
    monkeypatch.setattr(structured, "AHEAD_BYTES", 1)
    again = read_file(path, Damage())
    assert in_order(again["guards"]).equals(in_order(whole["guards"]))
    assert whole["guards"].height > 0


def test_a_process_begun_before_is_the_one_that_is_asked(log, monkeypatch):
    monkeypatch.setattr(cutting, "AHEAD_BYTES", 1)
    with log.open("rb") as stream:
        expected = found(cuts(stream, lambda *_: None))
    with cutting_begun(log):
        (begun,) = beside._begun.values()
        assert found(cuts_ahead(log, lambda *_: None)) == expected
        assert not beside._begun
    assert begun.poll() is not None


def test_a_process_that_nobody_asks_is_ended(log, monkeypatch):
    monkeypatch.setattr(cutting, "AHEAD_BYTES", 1)
    with cutting_begun(log):
        (begun,) = beside._begun.values()
    assert begun.poll() is not None
    assert not beside._begun


@pytest.mark.parametrize("name", ["nowhere.log", "x.log"])
def test_nothing_is_begun_with_a_small_file_or_none(tmp_path, name):
    (tmp_path / "x.log").write_bytes(b"V")
    with cutting_begun(tmp_path / name):
        assert not beside._begun


def test_tables_are_written_in_pieces(tmp_path, log, monkeypatch):
    monkeypatch.setattr(structured, "BATCH_BYTES", 300_000)
    monkeypatch.setattr(store, "HELD_BYTES", 10_000)
    damage = Damage()
    with store.Writer(tmp_path) as writer:
        for name, frame in store.in_pieces(read_path(log, "x.log", damage)):
            writer.add(name, frame)
    count = writer.written["graphs"]
    assert count > 1
    written = pl.concat(pl.read_parquet(tmp_path / f"graphs.{n}.parquet") for n in range(count))
    assert written.equals(read_file(log, Damage(), name="x.log")["graphs"].drop("pass"))


def test_a_rank_that_is_told_late_reaches_the_rows_that_are_left(tmp_path):
    path = tmp_path / "x.log"
    path.write_bytes(record("create_symbol", {"symbol": "s0"}, **at(0))
        + record("dynamo_start", {"stack": []}, rank=3, **at(1)))  # fmt: skip
    assert read_file(path, Damage())["symbols"]["rank"].to_list() == [3]


class Breaking:
    """A stream that breaks off."""

    def __init__(self, data, error):
        self.data, self.error = data, error

    def read(self, size, /):
        data, self.data = self.data[:size], self.data[size:]
        if not data:
            raise self.error
        return data


@pytest.mark.parametrize(
    ("error", "kind"), [(EOFError("cut"), "truncated"), (OSError(5, "gone"), "unreadable_file")]
)
def test_a_stream_that_breaks_off_keeps_what_came_before(error, kind):
    damage = Damage()
    log = record("dynamo_start", {"stack": []}, **at(0))
    tables = dict(read_stream(Breaking(log, error), "s3://b/x.log", damage))
    assert tables["compiles"]["raw_file"].to_list() == ["s3://b/x.log"]
    assert kinds_of(damage) == {kind: 1}
