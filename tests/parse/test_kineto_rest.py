"""A large trace is read by two processes: nothing else may change."""

import gzip
import json
import subprocess

import polars as pl
import pytest
from kineto_traces import cpp_layout, event, gpu_step

from traceview.parse import beside
from traceview.parse.damage import Damage
from traceview.parse.files import opened
from traceview.parse.kineto import read_stream, rest, rest_begun

STEPS = 200


def events():
    """Steps of a GPU, with words that one half alone knows and events that begin at once."""
    found = []
    for step in range(STEPS):
        late = 1000 * step
        own = event(f"own {step}", "cpu_op", late + 990, 5, tid=step % 3)
        moved = [{**each, "ts": each.get("ts", 0) + late} for each in gpu_step()]
        found += [*moved, own, own, {**own, "name": "[memory]", "args": {"Bytes": step}}]
    return found


def python_layout(found):
    body = ",\n".join(json.dumps(each) for each in found)
    return f'{{"traceEvents": [\n{body}\n], "distributedInfo": {{"rank": 3}}}}'.encode()


def compact(found):
    return json.dumps({"traceEvents": found}, separators=(",", ":")).encode()


DATA = {
    "cpp": cpp_layout(events()),
    "python": python_layout(events()),
    "compact": compact(events()),
}


def damaged(data):
    """Broken events in both halves, and an end that is cut off."""
    lines = data.split(b"\n")
    for at in (len(lines) // 5, 4 * len(lines) // 5):
        lines[at] = lines[at][: len(lines[at]) // 2] + b"\xff" + lines[at][len(lines[at]) // 2 :]
        lines[at + 40] = b'"name": "a "quoted" name", '
    return b"\n".join(lines)[:-300]


def tables(path):
    """Tables and damage; whether two processes read them."""
    damage, parts = Damage(), {}
    with rest_begun(path) as begun, opened(path) as stream:
        for name, frame in read_stream(stream, "t.json", damage, rest=begun):
            parts.setdefault(name, []).append(frame)
    found = {name: pl.concat(frames) for name, frames in parts.items()}
    found["unreadable"] = damage.frame("logs")
    return found, begun is not None and begun.bytes_read is not None


@pytest.fixture
def same(tmp_path, monkeypatch):
    """Checks that two processes give what one gives; whether there were two."""

    def check(data, name="t.json"):
        path = tmp_path / name
        path.write_bytes(data)
        alone, both = tables(path)
        assert not both
        monkeypatch.setattr(rest, "AHEAD_BYTES", 1)
        found, both = tables(path)
        assert found.keys() == alone.keys()
        for table, frame in alone.items():
            assert found[table].equals(frame), table
        return both

    return check


@pytest.mark.parametrize("share", [0.0, 0.3, 0.56, 0.9])
@pytest.mark.parametrize("layout", ["cpp", "python"])
def test_two_processes_give_what_one_gives(same, monkeypatch, layout, share):
    monkeypatch.setattr(rest, "_SHARE", share)
    assert same(DATA[layout])


def test_a_gzipped_trace_is_unpacked_by_both(same):
    assert same(gzip.compress(DATA["cpp"], 1), "t.json.gz")


@pytest.mark.parametrize("layout", ["cpp", "python"])
def test_damage_of_both_halves_is_counted_once(same, layout):
    assert same(damaged(DATA[layout]))


def test_a_packed_trace_that_is_cut_is_read_as_far_as_it_goes(same):
    packed = gzip.compress(DATA["cpp"], 1)
    same(packed[: len(packed) * 4 // 5], "t.json.gz")


def test_the_end_of_the_list_may_come_before_the_second_part(same, monkeypatch):
    monkeypatch.setattr(rest, "_SHARE", 0.9999)
    assert not same(DATA["cpp"])


def test_in_another_layout_one_process_reads_all(same):
    assert not same(DATA["compact"])


@pytest.mark.parametrize("sent", [0, 1, 3])
def test_a_process_that_dies_costs_nothing(same, monkeypatch, sent):
    dying = f"""
import {{module}} as other, os
send, left = other.send, [None] * {sent}
def few(*data):
    if not left:
        os._exit(1)
    left.pop()
    send(*data)
other.send = few
main()"""
    monkeypatch.setattr(beside, "_ENTER", beside._ENTER.replace("\nmain()", dying))
    assert not same(damaged(DATA["cpp"]))


def test_a_process_that_cannot_start_costs_nothing(same, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: (_ for _ in ()).throw(OSError()))
    assert not same(DATA["cpp"])


@pytest.mark.parametrize("name", ["nowhere.json", "small.json"])
def test_a_small_trace_and_none_are_not_begun(tmp_path, name):
    (tmp_path / "small.json").write_bytes(DATA["cpp"])
    with rest_begun(tmp_path / name) as begun:
        assert begun is None
    with rest_begun(None) as begun:
        assert begun is None
