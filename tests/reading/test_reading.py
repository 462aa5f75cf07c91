"""Logs to a run folder: partitioned tables, resuming, damage, workers that die."""

import os
import re
import signal

import polars as pl
import pytest
from reading_logs import write_log

from traceview.reading import mapping, open_tables
from traceview.reading.executors import Processes
from traceview.reading.parts import part_name


def test_every_rank_is_told_apart_though_the_pids_are_the_same(job, read):
    run, _ = read(job)
    compiles = open_tables(run)["compiles"]
    assert sorted(compiles["rank"].unique()) == [0, 1, 2, 3]
    assert sorted(compiles["pid"].unique()) == [100, 101]
    forward = compiles.filter("is_forward")
    assert forward["compile_key"].n_unique() == forward.height


@pytest.mark.live
def test_rows_come_in_the_same_order_wherever_the_logs_lie(tmp_path, read):
    orders = set()
    for number in range(4):
        folder = tmp_path / f"copy{number}" / "logs"
        for rank in range(4):
            write_log(folder / f"rank_{rank}.log", 100 + rank, rank)
        run, _ = read(folder)
        orders.add(tuple(open_tables(run)["compiles"]["raw_file"].unique(maintain_order=True)))
    assert len(orders) == 1


def test_tables_are_partitioned_as_duckdb_and_polars_read_them(job, read):
    duckdb = pytest.importorskip("duckdb")
    run, _ = read(job)
    files = str(run.tables_folder / "compiles" / "**" / "*.parquet")
    by_duckdb = duckdb.sql(
        f"select pass, rank, count(*) from read_parquet('{files}', hive_partitioning = true) "
        "group by all order by rank"
    ).fetchall()
    by_polars = pl.read_parquet(run.tables_folder / "compiles", hive_partitioning=True)
    expected = open_tables(run)["compiles"].group_by("pass", "rank").len().sort("rank").rows()
    assert by_duckdb == expected
    assert by_polars.group_by("pass", "rank").len().sort("rank").rows() == expected
    assert {row[0] for row in expected} == {"logs"}


def test_a_restart_lies_in_a_partition_of_its_own(tmp_path, read):
    write_log(tmp_path / "logs/a.log", 1, 0)
    later = write_log(tmp_path / "logs/b.log", 2, 0)
    later.write_bytes(_later(later.read_bytes()))
    run, _ = read(tmp_path / "logs")
    tables = open_tables(run)
    jobs = tables["jobs"].sort("attempt")
    assert jobs.select("job", "attempt").rows() == [(1, 1), (1, 2)]
    assert set(tables["compiles"]["pass"]) == set(jobs["pass"]) == {"logs", "logs.2"}
    assert [record.name for record in run.manifest.passes] == ["logs", "logs.2"]


def test_long_texts_come_of_ranks_that_differ_only(job, read):
    run, _ = read(job)
    tables = open_tables(run)
    chosen = tables["inputs"].filter("chosen")["rank"].to_list()
    assert chosen == [0]
    assert set(tables["graphs"]["rank"]) == {0}
    on_disk = pl.scan_parquet(run.tables_folder / "graphs" / "**" / "*.parquet")
    assert on_disk.select("rank").collect()["rank"].n_unique() == 4


def test_resuming_reads_what_is_new_or_has_changed(job, read, monkeypatch):
    _, first = read(job)
    (job / "node0/t0.log").write_bytes((job / "node0/t0.log").read_bytes()[:-5000])
    write_log(job / "node2/t4.log", 100, 4)
    (job / "node1/t3.log").unlink()
    again = []
    task_read = mapping.read
    monkeypatch.setattr(
        "traceview.reading.read",
        lambda task: again.append(task.source.name) or task_read(task),
    )
    run, second = read(job, resume=True)
    assert sorted(again) == ["node0/t0.log", "node2/t4.log"]
    assert [part.name for part in second] == [
        "node0/t0.log", "node0/t1.log", "node1/t2.log", "node2/t4.log",
    ]  # fmt: skip
    assert set(open_tables(run)["compiles"]["rank"]) == {0, 1, 2, 4}
    assert len(first) == 4


def test_reading_twice_gives_the_same_tables(job, read):
    first, _ = read(job)
    before = open_tables(first)
    again, _ = read(job, resume=True)
    after = open_tables(again)
    assert list(before) == list(after)
    assert all(before[name].equals(after[name]) for name in before)


def _die_at_rank_2(task):
    if task.source.name.endswith("t2.log"):
        os.kill(os.getpid(), signal.SIGKILL)
    return mapping.read(task)


@pytest.mark.live
def test_a_killed_reader_costs_its_file_and_says_so(job, read, monkeypatch):
    monkeypatch.setattr("traceview.reading.read", _die_at_rank_2)
    run, found = read(job, executor=Processes(2))
    lost = next(part for part in found if part.name == "node1/t2.log")
    assert "killed" in lost.error
    tables = open_tables(run)
    assert set(tables["compiles"]["rank"]) == {0, 1, 3}
    damage = tables["unreadable"].filter(pl.col("kind") == "reader_died")
    assert damage["file"].to_list() == ["node1/t2.log"]
    monkeypatch.undo()
    run, _ = read(job, resume=True)
    assert set(open_tables(run)["compiles"]["rank"]) == {0, 1, 2, 3}


def test_a_part_names_the_same_log_always(job, read):
    _, found = read(job)
    assert len({part.part for part in found}) == 4
    from traceview.inputs import find

    assert sorted(part_name(s) for s in find([str(job)]).sources) == sorted(
        part.part for part in found
    )


def test_ranks_from_file_names(tmp_path, read):
    write_log(tmp_path / "logs/rank_3/trace.log", 7)
    run, _ = read(tmp_path / "logs")
    tables = open_tables(run)
    assert set(tables["compiles"]["rank"]) == {3}
    assert tables["inputs"]["rank_from"].to_list() == ["name"]


def _later(log):
    """The log with its Unix times an hour later."""

    def shift(match):
        return b"%d" % (float(match[0]) + 3600e6)

    times = rb'(?<="ts": )[\d.]+|(?<="start_time_us": )\d+|(?<="end_time_us": )\d+'
    return re.sub(times, shift, log)
