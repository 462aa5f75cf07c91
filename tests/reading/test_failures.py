"""Defects of traceview, and files that take too long: what is lost, and what is reported."""

import os
import pickle
import signal
from multiprocessing import get_context

import polars as pl
import pytest
from reading_logs import write_log

from traceview.__main__ import main
from traceview.errors import DEBUG, TimeIsUp, UsageError
from traceview.inputs import find
from traceview.parse import store
from traceview.parse.structured import kinds
from traceview.reading import mapping, open_tables, parts
from traceview.reading.executors import WorkerDied

pytestmark = pytest.mark.live

PANIC = type("PanicException", (BaseException,), {})
PARSE = mapping.parse


def unreadable(run):
    frame = open_tables(run)["unreadable"]
    return {(row["file"], row["kind"]): row["example"] for row in frame.iter_rows(named=True)}


def fail_at(name, error, after=6):
    """Parses a log as always; of log ``name`` only so many batches."""

    def parse(log):
        for number, batch in enumerate(PARSE(log)):
            if log.name.endswith(name) and number == after:
                raise error
            yield batch

    return parse


@pytest.mark.parametrize(
    ("error", "kind", "what"),
    [
        (KeyError("x"), "reader_failed", "KeyError: 'x'"),
        (PANIC("index out of bounds"), "reader_failed", "PanicException: index out of bounds"),
        (MemoryError(), "out_of_memory", "memory"),
        (TimeIsUp("too long"), "took_too_long", "too long"),
    ],
)
def test_what_fails_costs_the_rest_of_its_file(job, read, monkeypatch, error, kind, what):
    monkeypatch.setattr(mapping, "parse", fail_at("t2.log", error))
    run, found = read(job)
    (part,) = [part for part in found if part.error]
    assert (part.name, what in part.error, part.rows > 1) == ("node1/t2.log", True, True)
    assert what in unreadable(run)["node1/t2.log", kind]
    assert {0, 1, 3} <= set(open_tables(run)["compiles"]["rank"])
    monkeypatch.undo()
    run, found = read(job, resume=True)
    assert [part.error for part in found] == [None] * 4
    assert unreadable(run) == {}


def test_a_record_whose_parser_fails_costs_only_itself(job, read, monkeypatch):
    whole, _ = read(job, folder="whole")
    monkeypatch.setitem(kinds.KEYS, "dynamo_output_graph", lambda *_: 1 / 0)
    run, found = read(job)
    assert {kind for _, kind in unreadable(run)} == {"reader_failed"}
    assert "ZeroDivisionError" in unreadable(run)["node0/t0.log", "reader_failed"]
    before, after = open_tables(whole), open_tables(run)
    assert before["compiles"].height == after["compiles"].height
    assert all(part.error is None for part in found)


def _loop(log):
    yield from PARSE(log)
    while log.name.endswith("t2.log"):
        pass


def test_a_file_that_is_never_read_to_its_end_is_given_up(job, read, monkeypatch, limit):
    monkeypatch.setattr(mapping, "parse", _loop)
    limit(seconds=0)  # and one for each MB
    run, _ = read(job / "node1/t2.log")
    assert "CPU time" in unreadable(run)["t2.log", "took_too_long"]
    assert set(open_tables(run)["compiles"]["rank"]) == {2}
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)


def _die_after_some_pieces(task):
    """Pieces of rank 2's log are written one by one; then the process is killed."""
    store.HELD_BYTES = 0
    done = []

    def parse(log):
        for batch in PARSE(log):
            yield batch
            done.append(batch)
            if log.name.endswith("t2.log") and len(done) == 12:
                half = next(iter(os.scandir(f"{task.run}/parts/{task.part}"))).path
                os.truncate(half, 10)
                os.kill(os.getpid(), signal.SIGKILL)

    mapping.parse = parse
    return mapping.read(task)


def test_what_a_killed_reader_had_written_stands(job, read):
    run, _ = read(job / "node1/t3.log")
    task = mapping.Task(find([str(job / "node1/t2.log")]).sources[0], str(run.folder))
    reader = get_context("spawn").Process(target=_die_after_some_pieces, args=(task,))
    reader.start()
    reader.join()
    assert reader.exitcode == -signal.SIGKILL
    part = mapping.lost(task, WorkerDied("the process that read it was killed"))
    pieces = [path for table in part.tables for path in parts.pieces(run.folder, part, table)]
    assert part.rows == sum(pl.read_parquet(path).height for path in pieces) > 100
    assert ({seen.pid for seen in part.processes}, part.damaged) == ({100}, 1)


def test_an_error_for_the_user_comes_whole_from_another_process():
    error = pickle.loads(pickle.dumps(UsageError("It is so.", "Do that.", slug="so")))
    assert (error.fact, error.remedy, error.slug) == ("It is so.", "Do that.", "so")


@pytest.mark.parametrize("error", [KeyError("x"), PANIC("x"), OSError(5, "Input/output error")])
def test_a_defect_ends_a_command_in_one_sentence(tmp_path, monkeypatch, capsys, error):
    monkeypatch.setenv(DEBUG, "")
    monkeypatch.delenv(DEBUG)
    write_log(tmp_path / "x.log", 1)

    def fail(*_):
        raise error

    monkeypatch.setattr("traceview.derive.derive", fail)
    words = ["postmortem", "--workers", "1", "-o", str(tmp_path / "out"), str(tmp_path / "x.log")]
    said = []
    for debug in ([], ["--debug"]):
        monkeypatch.setattr("sys.argv", ["traceview", *debug, *words])
        with pytest.raises(SystemExit) as end:
            main()
        said.append(capsys.readouterr().err)
        assert end.value.code == (2 if isinstance(error, OSError) else 5)
    assert str(error.args[-1]) in said[0]
    assert "Traceback" not in said[0]
    assert ("Traceback" in said[1]) == (not isinstance(error, OSError))
