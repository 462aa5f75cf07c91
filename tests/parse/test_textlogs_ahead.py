"""A large text log is searched by a second process: nothing may change, nor be lost with it."""

import gzip
import io
import random
import signal
import subprocess
from pathlib import Path

import polars as pl
import pytest
from textlog_runs import HEAD, lines, read_stream, recorded

from traceview.inputs import Source, find
from traceview.parse import beside
from traceview.parse.damage import Damage
from traceview.parse.messages.finding import pieces, pieces_ahead
from traceview.parse.messages.shapes import End, Foreign, Lines, Wanted
from traceview.reading import mapping
from traceview.reading.mapping import Log, parse

WANTED = Wanted(frozenset(("fusion", "output_code", "graph_breaks")), (b"AUTOTUNE ",))


@pytest.fixture
def log(tmp_path):
    """Both files of two scenarios, mixed with foreign lines, a byte that is no UTF-8, cut off."""
    dice = random.Random(1)
    whole = b"".join(data for name in ("autotune", "training") for data in recorded(name))
    mixed = b"".join(
        b"NCCL INFO \xff\n" * dice.randrange(3) + line for line in whole.splitlines(keepends=True)
    )
    path = tmp_path / "torch.log"
    path.write_bytes(mixed[:-20])
    return path


def source(log):
    return Source(log.name, str(log), "stderr", log.stat().st_size)


def here(log):
    with log.open("rb") as stream:
        return list(pieces(stream, WANTED))


def test_another_process_finds_the_same(log):
    found = list(pieces_ahead(source(log), WANTED))
    assert found == here(log)
    assert {type(piece) for piece in found} == {Lines, Foreign, End}


@pytest.mark.parametrize("after", [0, 1, 300])
def test_a_process_that_dies_costs_nothing(log, monkeypatch, after):
    few = beside._ENTER.replace("main()", "sys.modules['{module}']._BATCH = 7; main()")
    monkeypatch.setattr(beside, "_ENTER", few)
    started = []
    popen = subprocess.Popen

    def start(*args, **more):
        started.append(popen(*args, **more))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    found = pieces_ahead(source(log), WANTED)
    first = [next(found) for _ in range(after)]
    if started:
        started[0].send_signal(signal.SIGKILL)
    assert [*first, *found] == here(log)


def test_a_process_that_cannot_start_costs_nothing(log, monkeypatch):
    def refused(*_args, **_more):
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refused)
    assert list(pieces_ahead(source(log), WANTED)) == here(log)


def prefixed(log):
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(b"2026-11-21 10:22:01 trainer-0 " + line for line in lines))
    return log


def packed(log):
    path = log.with_name("a \udcff.log.gz")  # a name that is no UTF-8
    path.write_bytes(gzip.compress(prefixed(log).read_bytes())[:-30])
    return path


def refused(*_args, **_more):
    raise AssertionError("the other process opens the log")


@pytest.mark.parametrize("written", [Path, prefixed, packed])
def test_tables_and_damage_of_a_large_file_are_those_of_a_small_one(log, monkeypatch, written):
    def tables(batches):
        return {name: frame for name, frame in batches if frame.height}

    one, other = Damage(), Damage()
    (found,) = find([str(written(log))]).sources
    small, large = Log(found, "p", one), Log(found, "p", other)
    here = tables(parse(small))
    monkeypatch.setattr(mapping, "AHEAD_BYTES", 0)
    monkeypatch.setattr(Source, "open", refused)
    there = tables(parse(large))
    assert here.keys() == there.keys()
    assert all(frame.equals(there[name]) for name, frame in here.items())
    assert one.frame("logs").equals(other.frame("logs"))
    assert small.bytes_read == large.bytes_read


def read(data):
    """Tables of a log with these bytes."""
    frames = {}
    for name, frame in read_stream(io.BytesIO(data), "a.log", Damage()):
        frames.setdefault(name, []).append(frame)
    return {name: pl.concat(parts) for name, parts in frames.items()}


def test_a_line_behind_a_progress_bar_is_found_with_its_rank_and_number():
    bar = b"\r 40%|####      | 2/5\r 60%|######    | 3/5"
    line = lines(f"[rank2]:W{HEAD}_inductor/x.py:7] [0/0]", "found").encode()
    row = read(b"step 1\n" + bar + line)["warnings"].row(0, named=True)
    assert (row["message"], row["rank"], row["raw_line"]) == ("found", 2, 2)


def test_what_a_bar_wrote_behind_a_line_is_no_part_of_it():
    line = lines(f"W{HEAD}_inductor/x.py:7] [0/0]", "found").encode()
    assert read(line[:-1] + b"\r 60%|###\n")["warnings"]["message"].to_list() == ["found"]
    assert read(line[:-1] + b"\r\n")["warnings"]["message"].to_list() == ["found"]


def test_a_stamp_of_another_program_is_foreign():
    assert read(f"W{HEAD}c10/x.cpp:7] hello\n".encode())["warnings"].is_empty()


def test_statistics_that_are_no_utf8_are_counted():
    damage = Damage()
    data = b'Autotune Choices Stats:\n{"best_kernel": "\xff"}\n'
    assert not dict(read_stream(io.BytesIO(data), "a.log", damage)).get("autotune_choices")
    assert damage.frame("logs")["kind"].to_list() == ["bad_json"]


def test_lines_of_a_table_may_stand_far_apart_but_not_without_end():
    table = b"AUTOTUNE mm(2x2, 2x2)\n%b  triton_mm_4 0.0324 ms 100.0%%\n"
    other = b"step\n" + lines(f"V{HEAD}_dynamo/x.py:1]", "x").encode()
    assert read(table % (other * 400))["autotune_choices"].height == 1
    assert "autotune_choices" not in read(table % (other * 2_000))
