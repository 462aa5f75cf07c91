"""Traces in foreign layouts and damaged ones: what can be read is read, the rest is counted."""

from __future__ import annotations

import gzip
import json
import time

import pytest
from kineto_traces import BASE_US, cpp_layout, event, gpu_step, kernel, launch, read

from traceview.parse.kineto import columns
from traceview.parse.kineto.events import Gathered, decode_events

WHOLE = gpu_step()


def sizes(tables):
    return tuple(tables[name].height for name in ("kernels", "kernel_launches", "cpu_ops"))


EXPECTED = (6, 6, 14)


def _python_exporter():
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in WHOLE)
    return ('{"schemaVersion":1,"traceEvents":[\n' + lines + "\n]}").encode()


LAYOUTS = {
    "cpp": cpp_layout(WHOLE),
    "python": _python_exporter(),
    "compact": json.dumps(
        {"a": [1], "traceEvents": WHOLE, "z": [{"x": 1}]}, separators=(",", ":")
    ).encode(),
    "indented": json.dumps({"traceEvents": WHOLE}, indent=4).encode(),
    "bare_list": json.dumps(WHOLE).encode(),
    "bare_lines": b"[\n" + b",\n".join(json.dumps(each).encode() for each in WHOLE) + b"\n]",
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("packed", [False, True])
def test_every_layout_reads_alike(tmp_path, layout, packed):
    data = LAYOUTS[layout]
    tables, damage = read(tmp_path / "t.json", gzip.compress(data) if packed else data)
    assert damage == {}
    assert sizes(tables) == EXPECTED


@pytest.mark.parametrize("layout", ["cpp", "compact", "python"])
def test_layouts_longer_than_a_piece_lose_nothing(tmp_path, layout):
    events = [event(f'aten::add "}},\\{{ {n}', "cpu_op", 10 * n, 5) for n in range(6000)]
    data = {
        "cpp": cpp_layout(events),
        "compact": json.dumps({"traceEvents": events}, separators=(",", ":")).encode(),
        "python": b"[\n" + b",\n".join(json.dumps(e).encode() for e in events) + b"\n]",
    }[layout]
    assert len(data) > 600_000
    tables, damage = read(tmp_path / "t.json", data)
    assert (tables["cpu_ops"].height, damage) == (6000, {})


def test_unescaped_quotes_in_a_name_are_mended(tmp_path):
    data = cpp_layout([event("QQQ", "user_annotation", 0, 5), *WHOLE, event("x", "cpu_op", 99, 1)])
    tables, damage = read(tmp_path / "t.json", data.replace(b"QQQ", b'the "best" block'))
    assert damage == {}
    assert sizes(tables) == (6, 6, 16)
    assert 'the "best" block' in tables["cpu_ops"]["name"].to_list()


def test_control_bytes_and_backslashes_in_a_name_are_mended(tmp_path):
    data = cpp_layout([event("QQQ", "user_annotation", 0, 5), *WHOLE])
    tables, damage = read(tmp_path / "t.json", data.replace(b"QQQ", b"a\tb\x01 C:\\dir\\x"))
    assert damage == {}
    assert "a\tb\x01 C:\\dir\\x" in tables["cpu_ops"]["name"].to_list()


@pytest.mark.parametrize("number", [b"inf", b"NaN", b"-Infinity", b"nan"])
def test_what_is_no_number_is_missing(tmp_path, number):
    copy = kernel("Memcpy", 3, 1, 5, cat="gpu_memcpy", bytes=0, bandwidth=77777)
    tables, damage = read(tmp_path / "t.json", cpp_layout([copy, *WHOLE]).replace(b"77777", number))
    assert damage == {}
    assert sizes(tables)[0] == 7


@pytest.mark.parametrize("layout", ["compact", "bare_list"])
def test_one_nan_in_a_compact_layout_costs_nothing(tmp_path, layout):
    copy = kernel("Memcpy", 3, 1, 5, cat="gpu_memcpy", bytes=0, bandwidth=float("nan"))
    events = [*WHOLE[:9], copy, *WHOLE[9:]]
    data = json.dumps(events if layout == "bare_list" else {"traceEvents": events}).encode()
    tables, damage = read(tmp_path / "t.json", data)
    assert damage == {}
    assert sizes(tables)[0] == 7


def test_one_hopeless_event_costs_only_itself(tmp_path):
    data = cpp_layout([*WHOLE[:3], event("QQQ", "cpu_op", 0, 5), *WHOLE[3:]])
    tables, damage = read(tmp_path / "t.json", data.replace(b'"dur": 5,', b'"dur": {5,', 1))
    assert damage == {"bad_json": 1}
    assert sum(sizes(tables)) == sum(EXPECTED)


def test_a_cut_file_keeps_what_stands_before_the_cut(tmp_path):
    data = LAYOUTS["cpp"]
    tables, damage = read(tmp_path / "t.json", data[: data.rindex(b"Memcpy") + 3])
    assert damage == {"truncated": 1}
    assert sizes(tables) == (5, 5, 14)


def test_a_cut_gz_keeps_what_it_still_holds(tmp_path):
    events = [event(f"aten::op_{n * 7919 % 10007}", "cpu_op", 10 * n, n % 9) for n in range(9000)]
    packed = gzip.compress(cpp_layout(events))
    tables, damage = read(tmp_path / "t.json.gz", packed[: len(packed) // 2])
    assert 3000 < tables["cpu_ops"].height < 6000
    assert damage["truncated"] >= 1


def test_a_gz_with_damaged_bytes_keeps_what_stands_before(tmp_path):
    events = [event(f"aten::op_{n * 7919 % 10007}", "cpu_op", 10 * n, n % 9) for n in range(9000)]
    packed = bytearray(gzip.compress(cpp_layout(events)))
    middle = len(packed) // 2
    packed[middle : middle + 64] = b"\xff" * 64
    tables, damage = read(tmp_path / "t.json.gz", bytes(packed))
    assert tables["cpu_ops"].height > 1000
    assert damage


@pytest.mark.parametrize("duration", ["-3", "1e15"])
def test_an_absurd_duration_is_left_out_and_counted(tmp_path, duration):
    data = cpp_layout([kernel("bad", 3, 98765, 5), *WHOLE]).replace(b"98765", duration.encode())
    tables, damage = read(tmp_path / "t.json", data)
    assert damage == {"bad_event": 1}
    assert sizes(tables) == EXPECTED


@pytest.mark.parametrize("key", ["device", "stream", "context", "correlation"])
@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**63, 10**400], ids=range(4))
def test_a_number_that_its_column_does_not_hold_costs_at_most_its_event(tmp_path, key, number):
    odd = kernel("odd", 3, 40, 5)
    odd["args"] = {**odd["args"], key: number}
    tables, damage = read(tmp_path / "t.json", cpp_layout([odd, *WHOLE]))
    assert set(damage) <= {"bad_event"}
    assert damage or sizes(tables)[0] == EXPECTED[0] + 1


def test_text_as_pid_and_tid(tmp_path):
    odd = {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",
           "tid": "PyTorch Profiler", "ts": BASE_US, "dur": 5.0, "args": {}}  # fmt: skip
    more = {**launch(1, 1, 99), "tid": "worker"}
    tables, damage = read(tmp_path / "t.json", cpp_layout([odd, more, *WHOLE]))
    assert damage == {}
    assert "worker" in tables["kernel_launches"]["tid"].to_list()


@pytest.mark.parametrize("data", [b"", b"no trace", b'{"a": 1}', b"\x1f\x8bnothing"])
def test_what_is_no_trace_is_counted(tmp_path, data):
    tables, damage = read(tmp_path / "t.json", data)
    assert sum(damage.values()) >= 1
    assert sizes(tables) == (0, 0, 0)


def test_events_out_of_order_are_sorted(tmp_path):
    tables, _ = read(tmp_path / "t.json", cpp_layout(WHOLE[::-1]))
    assert sizes(tables) == EXPECTED
    assert tables["kernels"]["launch_name"].null_count() == 0
    assert tables["cpu_ops"]["start_ns"].is_sorted()


def many(number, name="aten::op{}"):
    return [event(name.format(n), "cpu_op", 10 * n, 5, Shapes=[n]) for n in range(number)]


def test_names_beyond_the_limit_are_one_name_and_counted(tmp_path, limit):
    limit(names=20)
    tables, damage = read(tmp_path / "t.json", json.dumps({"traceEvents": many(50)}).encode())
    names = tables["cpu_ops"]["name"].to_list()
    assert names == [f"aten::op{n}" for n in range(20)] + [columns.OTHERS] * 30
    assert damage == {"too_many_names": 30}
    assert tables["cpu_ops"]["duration_ns"].sum() == 50 * 5_000
    tables, damage = read(tmp_path / "s.json", json.dumps(many(50, "aten::op")).encode())
    assert (set(tables["cpu_ops"]["name"]), damage) == ({"aten::op"}, {})


def test_shapes_beyond_the_limit_are_not_recorded_and_counted(tmp_path, limit):
    shaped = [
        event("aten::op", "cpu_op", 10 * n, 5, **{"Input Dims": [[n]]} if n != 40 else {})
        for n in range(50)
    ]
    limit(names=20)
    tables, damage = read(tmp_path / "t.json", json.dumps({"traceEvents": shaped}).encode())
    known = tables["cpu_ops"]["input_dims"].drop_nulls().to_list()
    assert known == [f"[[{n}]]" for n in range(19)]
    assert damage == {"too_many_names": 50 - 19 - 1}, "one has no shape to lose"
    named = [{**each, "name": f"aten::op{n}"} for n, each in enumerate(shaped)]
    _, damage = read(tmp_path / "n.json", json.dumps({"traceEvents": named}).encode())
    assert damage == {"too_many_names": 50 - 19}, "what lost both counts once"


def test_events_beyond_the_limit_are_left_out_and_counted(tmp_path, limit):
    limit(events=7)
    tables, damage = read(tmp_path / "t.json", json.dumps({"traceEvents": many(50)}).encode())
    assert (tables["cpu_ops"].height, damage) == (7, {"too_many_events": 43})


def test_what_another_process_left_out_is_counted_here(limit):
    limit(names=5, events=12)
    there, here = Gathered(), Gathered()
    for gathered, number in ((there, 20), (here, 3)):
        gathered.add(decode_events(json.dumps(many(number)).encode()))
    for item in there.given():
        here.take(item)
    assert here.host.left_out == 8 + 3
    rows = here.host.frame()
    assert len(rows) == 12
    assert here.host.lost(rows) == 12 - 3 - 5, "of what is kept"


@pytest.mark.parametrize(
    "between",
    [
        b"\n" * 600_000,
        b" " * 600_000,
        b'"name": "' * 60_000,
        b'"name": "x" ' + b'", ' * 200_000,
        b"\n }, " * 100_000,
        b"nan , " * 100_000,
        b"{" * 300_000,
        b'{"a": ' * 100_000,
        b'"' * 300_001,
        b"\\" * 300_001,
    ],
    ids=range(10),
)
def test_what_repeats_in_a_damaged_event_is_bounded_work(tmp_path, between):
    whole = [json.dumps(one).encode() for one in many(3)]
    log = (
        b'{"traceEvents": [\n' + b",\n".join([*whole, b'{"ph": "X", ' + between, *whole]) + b"\n]}"
    )
    began = time.process_time()
    tables, _ = read(tmp_path / "t.json", log)
    assert time.process_time() - began < 4
    assert tables["cpu_ops"].height >= 3
