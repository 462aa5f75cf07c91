"""Traces from anywhere: whose they are, when, in what stance, as far as they tell."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest
from kineto_traces import BASE_US, cpp_layout, event, gpu_step, kernel, launch

from traceview.inputs.streams import DamagedInput
from traceview.parse.damage import Damage
from traceview.parse.kineto import linking, read_stream
from traceview.torchtext.marks import UNNAMED

EAGER = [event("aten::add", "cpu_op", 5, 10), kernel("gemm", 9, 4, 1)]
BASE_NS = 1_790_857_026 * 10**9


def read(data, **options):
    """Tables and damage, as kind → times."""
    damage, parts = Damage(), {}
    for name, frame in read_stream(io.BytesIO(data), "t.json", damage, **options):
        parts.setdefault(name, []).append(frame)
    found = damage.frame("logs")
    tables = {name: pl.concat(frames) for name, frames in parts.items()}
    return tables, dict(zip(found["kind"], found["times"], strict=True))


def trace(data, **options):
    return read(data, **options)[0]["traces"].row(0, named=True)


def with_head(events, **head):
    return json.dumps({**head, "traceEvents": events}).encode()


WORLD = {"backend": "nccl", "rank": 5, "world_size": 8, "pg_config": [{"pg_name": "{0}"}]}


def test_a_trace_tells_its_rank_and_when_it_began():
    data = with_head(
        EAGER,
        baseTimeNanoseconds=BASE_NS,
        deviceProperties=[{"id": 0, "name": "NVIDIA H200"}],
        distributedInfo=WORLD,
    )
    row = trace(data, rank=1)
    assert (row["rank"], row["world_size"], row["device"], row["pid"]) == (5, 8, "NVIDIA H200", 7)
    assert row["zero_ns"] == BASE_NS + 4_404_778_133_721_275
    assert (row["span_ns"], row["events"]) == (10_000, 2)
    assert set(read(data)[0]["cpu_ops"]["rank"]) == {5}


def test_kernels_know_the_multiprocessors_of_the_device():
    step = [launch(5, 2, 11), kernel("own", 10, 5, 11, grid=[4, 1, 1])]
    for device, known in (({"numSms": 132}, 132), ({"numSms": "many"}, None), ({}, None)):
        (row,) = read(with_head(step, deviceProperties=[device]))[0]["kernels"].to_dicts()
        assert (row["multiprocessors"], row["grid"]) == (known, "[4, 1, 1]")


def test_what_stands_behind_the_events_is_known_too():
    data = json.dumps(
        {"traceEvents": EAGER, "baseTimeNanoseconds": BASE_NS, "distributedInfo": WORLD}
    ).encode()
    assert trace(data)["rank"] == 5
    assert trace(data)["zero_ns"] is not None


def test_what_a_trace_does_not_tell_is_null_or_known_from_elsewhere():
    row = trace(cpp_layout(EAGER), rank=2)
    assert (row["rank"], row["world_size"], row["zero_ns"]) == (2, None, None)


def test_older_torch_counts_from_1970():
    at_us = 1_700_000_000 * 10**6
    old = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::add",
        "pid": 7,
        "tid": 7,
        "ts": at_us,
        "dur": 2,
    }
    assert trace(with_head([old]))["zero_ns"] == at_us * 1000


@pytest.mark.parametrize(
    ("events", "stance"), [(EAGER, "eager"), (gpu_step(), "compiled")]
)  # fmt: skip
def test_torch_compiles_marks_make_a_trace_compiled(events, stance):
    tables, _ = read(cpp_layout(events))
    assert tables["traces"]["stance"].to_list() == [stance]
    assert set(tables["kernels"]["stance"]) == {stance}
    assert trace(cpp_layout(events), stance="eager")["stance"] == "eager"


def test_batches_hold_the_rows_of_the_whole(monkeypatch):
    whole, _ = read(cpp_layout(gpu_step()))
    monkeypatch.setattr(linking, "BATCH", 4)
    batches, _ = read(cpp_layout(gpu_step()))
    assert set(batches) == set(whole)
    for name, frame in whole.items():
        assert batches[name].equals(frame)


def test_a_stream_that_breaks_gives_what_came_before():
    class Broken(io.BytesIO):
        def read(self, size=-1):
            data = super().read(size)
            if not data:
                raise DamagedInput("truncated", "the packed file ends before its end mark")
            return data

    damage = Damage()
    data = cpp_layout(gpu_step())
    tables = dict(read_stream(Broken(data[: len(data) // 2]), "t.json", damage))
    assert tables["cpu_ops"].height > 3
    assert damage.frame("logs")["kind"].to_list() == ["truncated"]


def test_numbers_that_are_none_and_names_that_are_empty_cost_nothing():
    odd = event("", "cpu_op", 1, 2, **{"External id": "12", "Sequence number": None})
    worse = event("x", "cpu_op", 4, 1, **{"External id": [1], "Fwd thread id": 10**30})
    tables, damage = read(cpp_layout([odd, worse, {**EAGER[0], "args": None}]))
    assert damage == {}
    assert tables["cpu_ops"]["external_id"].to_list() == [12, None, None]
    assert tables["cpu_ops"]["name"].to_list() == [UNNAMED, "x", "aten::add"]


def test_an_event_whose_name_holds_a_separator_is_one_event():
    data = cpp_layout([event("a },{ b", "cpu_op", 1, 2), *EAGER])
    assert read(data)[0]["cpu_ops"].height == 2


@pytest.mark.parametrize("size", [10, 400, 2000])
def test_flows_and_instants_are_no_events_of_ours(size):
    flow = {"ph": "s", "id": 1, "pid": 7, "tid": 100, "ts": BASE_US, "cat": "ac2g", "name": "ac2g"}
    instant = {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 1.0}
    tables, damage = read(cpp_layout([*[flow, instant] * size, *EAGER]))
    assert (tables["traces"]["events"].to_list(), damage) == ([2], {})
