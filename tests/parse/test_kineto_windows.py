"""Which trace files of a run are read, whose they are, and the memory that they tell of."""

from __future__ import annotations

import gzip
import json

import polars as pl
import pytest
from kineto_traces import BASE_US, cpp_layout, event, gpu_step, kernel, launch, read

from traceview.parse.damage import Damage
from traceview.parse.kineto import read_pass, windows
from traceview.parse.kineto.linking import memory_rows
from traceview.run import Manifest, PassRecord, Run

TRACE = gzip.compress(cpp_layout(gpu_step()))


def profile(stance, file=None):
    return {"event": "profile", "stance": stance, "steps": 1, "file": file, "error": None}


def run_of(folder, processes, files=()):
    """A run whose processes, as pid → (rank, events), wrote these trace files."""
    record = PassRecord("cold", "raw/cold")
    raw = folder / record.raw
    (raw / "profile").mkdir(parents=True)
    for started, (pid, (rank, events)) in enumerate(processes.items()):
        first = {"event": "process", "t": float(started), "pid": pid, "rank": rank}
        rows = [first, *({"t": 9.0, **row} for row in events)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (raw / f"events-{pid}.jsonl").write_text(text)
    for name in files:
        (raw / name).write_bytes(TRACE)
    return Run(folder, Manifest(passes=[record])), record


def test_a_pass_has_the_windows_of_both_stances(tmp_path):
    files = ("profile/eager-5.json.gz", "profile/compiled-5.json.gz")
    events = [profile("eager", files[0]), profile("compiled", files[1])]
    run, record = run_of(tmp_path, {5: (None, events)}, files)
    damage = Damage()
    tables = read_pass(run, record, damage)
    assert damage.total == 0
    assert set(tables) == {"kernels", "kernel_launches", "cpu_ops"}
    heads = tables["kernels"].select("pass", "rank", "stance").unique(maintain_order=True)
    assert heads.rows() == [("cold", None, "eager"), ("cold", None, "compiled")]
    assert tables["kernels"].height == 12


def test_a_pass_without_windows_has_no_tables(tmp_path):
    run, record = run_of(tmp_path, {5: (None, [profile("eager")])})
    assert read_pass(run, record, Damage()) == {}


def test_a_file_that_is_not_there_is_counted(tmp_path):
    run, record = run_of(tmp_path, {5: (None, [profile("eager", "profile/eager-5.json.gz")])})
    damage = Damage()
    assert read_pass(run, record, damage) == {}
    row = damage.frame("cold").row(0, named=True)
    assert (row["file"], row["kind"]) == ("raw/cold/profile/eager-5.json.gz", "missing")


def test_the_last_window_of_a_process_counts(tmp_path):
    names = ("profile/eager-5.json.gz", "profile/eager-5-2.json.gz")
    run, record = run_of(tmp_path, {5: (0, [profile("eager", name) for name in names])})
    assert [(w.path.name, w.rank) for w in windows(run, record)] == [("eager-5-2.json.gz", 0)]


def block(stance, ms, **more):
    needed = {"event": "block", "block_index": 0, "first_step": 9, "stance": stance, "steps": 10}
    return needed | {"duration_ms": 10 * ms} | more


@pytest.mark.parametrize(
    ("call_ms", "counts"), [(1.02, "eager-5-2.json.gz"), (0.4, "eager-5.json.gz")]
)
def test_a_window_of_replayed_calls_counts_where_a_step_is_no_more(tmp_path, call_ms, counts):
    events = [
        profile("eager", "profile/eager-5.json.gz"),
        *(block("eager", ms) for ms in (1.0, 1.01, 1.03)),
        block("eager", call_ms, replayed=True),
        profile("eager", "profile/eager-5-2.json.gz") | {"replayed": True},
    ]
    run, record = run_of(tmp_path, {5: (0, events)})
    assert [w.path.name for w in windows(run, record)] == [counts]


def test_a_forked_worker_of_the_same_rank_is_left_out_and_other_ranks_are_not(tmp_path):
    processes = {
        5: (0, [profile("eager", "profile/a.json.gz")]),
        6: (0, [profile("eager", "profile/b.json.gz")]),
        7: (1, [profile("eager", "profile/c.json.gz")]),
    }
    run, record = run_of(tmp_path, processes)
    assert [(w.pid, w.rank) for w in windows(run, record)] == [(5, 0), (7, 1)]


@pytest.mark.parametrize("file", ["../../../etc/passwd", "/etc/passwd", 7, None])
def test_no_path_outside_of_the_pass_is_opened(tmp_path, file):
    run, record = run_of(tmp_path, {5: (None, [profile("eager", file)])})
    assert windows(run, record) == []


def allocation(ts, total, size, kind=0, index=-1):
    arguments = {"Total Allocated": total, "Bytes": size, "Device Type": kind, "Device Id": index}
    return {
        "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 0, "tid": 0,
        "ts": BASE_US + ts, "args": arguments,
    }  # fmt: skip


def test_memory_has_peak_and_start_of_every_device(tmp_path):
    file = "profile/eager-5.json.gz"
    run, record = run_of(tmp_path, {5: (None, [profile("eager", file)])}, [file])
    cpu = [
        allocation(n, total, size) for n, total, size in ((3, 60, -40), (1, 40, 40), (2, 100, 60))
    ]
    gpu = [allocation(4, 700, 200, 1, 0), allocation(5, 600, -100, 1, 0)]
    (run.raw(record) / file).write_bytes(cpp_layout([*gpu_step(), *cpu, *gpu]))
    memory = read_pass(run, record, Damage())["memory"]
    columns = ("pid", "stance", "device", "source", "start_bytes", "peak_bytes", "block_index")
    assert memory.select(columns).rows() == [
        (5, "eager", "cpu", "profiler", 0, 100, None),
        (5, "eager", "cuda:0", "profiler", 500, 700, None),
    ]


def test_memory_of_an_unknown_kind_of_device_is_left_out():
    row = {"total_allocated": 5, "allocated": 5, "device_type": 20, "device_id": 0}
    assert memory_rows(pl.DataFrame([row])) == []


def test_a_gz_of_several_members_is_read_whole(tmp_path):
    data = cpp_layout(gpu_step())
    parts = (data[:1000], data[1000:1001], data[1001:])
    packed = b"".join(gzip.compress(part) for part in parts)
    tables, damage = read(tmp_path / "t.json.gz", packed)
    assert damage == {}
    assert (tables["kernels"].height, tables["cpu_ops"].height) == (6, 14)


def test_a_last_member_that_is_cut_keeps_the_first(tmp_path):
    data = cpp_layout(
        [*gpu_step(), *(event(f"aten::op{n}", "cpu_op", 200 + n, 1) for n in range(50))]
    )
    first, second = gzip.compress(data[:-3000]), gzip.compress(data[-3000:])
    tables, damage = read(tmp_path / "t.json.gz", first + second[: len(second) // 2])
    assert tables["kernels"].height == 6
    assert damage["truncated"] >= 1


def test_arguments_of_another_type_are_missing_or_read_as_numbers(tmp_path):
    call = launch(5, 1, "17")
    work = kernel("k", 10, 5, "17", **{"External id": {"deep": 1}})
    tables, damage = read(tmp_path / "t.json", cpp_layout([call, work]))
    assert damage == {}
    row = tables["kernels"].row(0, named=True)
    assert (row["correlation"], row["launch_name"]) == (17, "cudaLaunchKernel")


def test_an_event_whose_arguments_are_null_is_kept(tmp_path):
    bare = {**event("aten::add", "cpu_op", 0, 5), "args": None}
    tables, damage = read(tmp_path / "t.json", cpp_layout([bare]))
    assert (damage, tables["cpu_ops"]["name"].to_list()) == ({}, ["aten::add"])
