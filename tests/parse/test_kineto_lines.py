"""Lines windows: every event lies in the user's line that ran it, and tells of line_ops alone."""

from __future__ import annotations

import gzip
import json

from kineto_traces import cpp_layout, event, kernel, launch

from traceview.parse.damage import Damage
from traceview.parse.kineto import read_pass
from traceview.run import Manifest, PassRecord, Run

GRAPH = "## Call CompiledFxGraph fabc ##"
FILES = ["/w/train.py", "/w/model.py"]


def step():
    """A loop at train.py:20 calls model.py:7, then a graph, then the optimizer until the end."""
    return [
        event("aten::zeros", "cpu_op", 1, 2),
        event("traceview step 9", "user_annotation", 10, 90),
        event("traceview line 0:20", "cpu_op", 11, 92),
        event("traceview region 0", "user_annotation", 12, 40),
        event("traceview line 1:7", "cpu_op", 13, 10, **{"External id": 5}),
        event("aten::linear", "cpu_op", 14, 8, **{"Sequence number": 3}),
        event("aten::addmm", "cpu_op", 15, 6),
        launch(16, 2, 11),
        kernel("gemm", 18, 5, 11),
        event(GRAPH, "user_annotation", 30, 10),
        event("aten::mm", "cpu_op", 31, 5),
        event("aten::add", "cpu_op", 60, 4, tid=200, **{"Sequence number": 3}),
        event("traceview line 0:22", "cpu_op", 70, 32),
        event("Optimizer.step#SGD.step", "user_annotation", 71, 500),
        event("aten::mul_", "cpu_op", 80, 5),
        event("traceview line 9:1", "cpu_op", 90, 5),
        event("aten::div_", "cpu_op", 91, 2),
    ]


def read(folder, events, **keys):
    record = PassRecord("cold", "raw/cold")
    raw = folder / record.raw
    (raw / "profile").mkdir(parents=True)
    name = "profile/eager-7-lines.json.gz"
    (raw / name).write_bytes(gzip.compress(cpp_layout(events)))
    window = {"event": "profile", "stance": "eager", "steps": 1, "file": name, "t": 2.0, **keys}
    rows = [{"event": "process", "t": 1.0, "pid": 7, "rank": None}, window]
    (raw / "events-7.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_pass(Run(folder, Manifest(passes=[record])), record, Damage())


def lines(folder, events, files=FILES):
    return read(folder, events, purpose="lines", line_files=files)["line_ops"]


def test_every_event_has_the_innermost_line_on_its_thread(tmp_path):
    rows = lines(tmp_path, step()).select("name", "kind", "file", "line", "region").rows()
    train, model = FILES
    assert rows == [
        ("traceview step 9", "user_annotation", None, None, None),
        ("/w/train.py:20", "line", train, 20, None),
        ("traceview region 0", "user_annotation", train, 20, "0"),
        ("/w/model.py:7", "line", model, 7, "0"),
        ("aten::linear", "cpu_op", model, 7, "0"),
        ("aten::addmm", "cpu_op", model, 7, "0"),
        ("cudaLaunchKernel", "call", model, 7, "0"),
        (GRAPH, "user_annotation", None, None, "0"),
        ("aten::mm", "cpu_op", None, None, "0"),
        ("aten::add", "cpu_op", None, None, None),
        ("/w/train.py:22", "line", train, 22, None),
        ("Optimizer.step#SGD.step", "user_annotation", train, 22, None),
        ("aten::mul_", "cpu_op", train, 22, None),
        ("traceview line 9:1", "line", None, 1, None),  # a file that the collector did not name
        ("aten::div_", "cpu_op", None, 1, None),
    ]


def test_rows_are_those_of_the_step_and_nest(tmp_path):
    table = lines(tmp_path, step())
    names = dict(table.select("op_id", "name").rows())
    assert list(names) == list(range(15))
    parents = [names.get(parent) for parent in table["parent_id"]]
    assert parents[:7] == [
        None, None, "/w/train.py:20", "traceview region 0", "/w/model.py:7", "aten::linear",
        "aten::addmm",
    ]  # fmt: skip
    assert table["depth"].to_list()[:7] == [0, 0, 1, 2, 3, 4, 5]
    of = {row["name"]: row for row in table.iter_rows(named=True)}
    assert of["/w/model.py:7"]["self_ns"] == 2000
    assert of["aten::linear"]["sequence"] == 3


def test_what_is_still_open_ends_with_the_step(tmp_path):
    of = {row["name"]: row for row in lines(tmp_path, step()).iter_rows(named=True)}
    for name in ("/w/train.py:20", "/w/train.py:22", "Optimizer.step#SGD.step"):
        assert of[name]["start_ns"] + of[name]["duration_ns"] == 99_000


def test_a_lines_window_feeds_no_other_table(tmp_path):
    assert list(read(tmp_path, step(), purpose="lines", line_files=FILES)) == ["line_ops"]


def test_marks_in_a_timing_window_are_marks_and_no_operators(tmp_path):
    events = [*step(), event("traceview gc 2", "cpu_op", 15.5, 1)]
    table = read(tmp_path, events)["cpu_ops"]
    kinds = dict(table.select("name", "kind").rows())
    assert kinds["traceview gc 2"] == "user_annotation"
    assert dict(table.select("name", "category").rows())["traceview gc 2"] == "mark"


def test_hostile_files_and_no_step_are_no_error(tmp_path):
    files = lines(tmp_path / "a", step(), files=[7, "/w/m.py"])["file"].to_list()
    assert files[:4] == [None, None, None, "/w/m.py"]
    assert lines(tmp_path / "b", step(), files="x")["file"].null_count() == 15
    unmarked = [each for each in step() if "step 9" not in each["name"]]
    assert lines(tmp_path / "c", unmarked).is_empty()
    assert lines(tmp_path / "d", []).is_empty()
