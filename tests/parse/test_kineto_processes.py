"""Several processes in one trace: the tables tell of the one that has the steps."""

import pytest
from kineto_traces import BASE_US, cpp_layout, event, gpu_step, kernel, launch, read

from traceview.parse.damage import Damage
from traceview.parse.kineto import read_stream

WHOLE = gpu_step()
TABLES = ("kernels", "kernel_launches", "cpu_ops")


def of_process(pid, events):
    return [{**each, "pid": pid} if each["pid"] == 7 else each for each in events]


def busy_neighbour(pid=8):
    """More events than the step has, calls and kernels with its correlation ids among them."""
    calls = [launch(200 + 10 * n, 2, 11 + n) for n in range(20)]
    kernels = [kernel("their_kernel", 205 + 10 * n, 3, 11 + n) for n in range(20)]
    ops = [event("aten::theirs", "cpu_op", 200 + 10 * n, 5) for n in range(20)]
    return of_process(pid, [*calls, *kernels, *ops])


@pytest.mark.parametrize("order", ["after", "before"])
def test_the_process_with_the_steps_is_kept_and_nothing_of_the_others(tmp_path, order):
    both = [*WHOLE, *busy_neighbour()] if order == "after" else [*busy_neighbour(), *WHOLE]
    alone, nothing = read(tmp_path / "alone.json", cpp_layout(WHOLE))
    tables, damage = read(tmp_path / "both.json", cpp_layout(both))
    for name in TABLES:
        assert tables[name].equals(alone[name]), name
    assert (nothing, damage) == ({}, {})  # left out, but no damage


def test_what_was_left_out_is_told(tmp_path):
    path, damage = tmp_path / "t.json", Damage()
    path.write_bytes(cpp_layout([*WHOLE, *busy_neighbour(), *of_process(9, busy_neighbour(7))]))
    with path.open("rb") as file:
        made = dict(read_stream(file, "t.json", damage))
    assert made["traces"].select("pid", "events").rows() == [(7, len(WHOLE))]
    row = made["traces"].row(0, named=True)
    assert (row["other_processes"], row["other_events"], damage.total) == (2, 120, 0)


def test_without_steps_the_process_with_most_events_is_kept(tmp_path):
    ours = [event(f"aten::{n}", "cpu_op", n, 1) for n in range(4)]
    theirs = of_process(8, [event("aten::theirs", "cpu_op", n, 1) for n in range(5)])
    tables, _ = read(tmp_path / "t.json", cpp_layout([*ours, *theirs]))
    assert set(tables["cpu_ops"]["name"]) == {"aten::theirs"}


def test_times_begin_with_the_kept_process(tmp_path):
    early = of_process(8, [event("aten::theirs", "cpu_op", -500, 1)])
    tables, _ = read(tmp_path / "t.json", cpp_layout([*early, *WHOLE]))
    assert tables["cpu_ops"]["start_ns"].min() == 0


def test_an_event_without_a_process_is_nobody_elses(tmp_path):
    nobody = [{key: value for key, value in each.items() if key != "pid"} for each in WHOLE]
    tables, damage = read(tmp_path / "t.json", cpp_layout([*WHOLE[:3], *nobody[3:]]))
    assert damage == {}
    assert tables["kernel_launches"].height == 6


def test_memory_of_another_process_is_no_peak_of_this_one(tmp_path):
    def held(pid, size):
        args = {"Total Allocated": size, "Device Type": 1, "Device Id": 0, "Bytes": size}
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": pid, "tid": 100,
                "ts": BASE_US + 5, "args": args}  # fmt: skip

    events = [*WHOLE, held(7, 512), *busy_neighbour(), held(8, 4096)]
    tables, _ = read(tmp_path / "t.json", cpp_layout(events))
    alone, _ = read(tmp_path / "alone.json", cpp_layout([*WHOLE, held(7, 512)]))
    assert tables["memory"].drop("pid").equals(alone["memory"].drop("pid"))
    assert alone["memory"].height
