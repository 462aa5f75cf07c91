"""Logs of AOTInductor and torch.export: no compile id, and no call of torch.compile's."""

import json

from cli_runs import Cli
from structured_log_tools import artifact, at, read, record

from traceview.derive import derive
from traceview.diagnosis.ahead import ahead_of_time

START_US = 1_700_000_000_000_000.0


def phase(name, ph, after_s, **context):
    event = {"name": name, "ts": START_US + 1e6 * after_s, "ph": ph, "cat": "dynamo_timed"}
    return record("chromium_event", {}, payload=json.dumps(event), **context)


def derived(tmp_path, *records):
    return derive(read(tmp_path, b"".join(records))[0], {})


def ahead_rows(tables):
    columns = ("kind", "seconds", "phases", "graphs")
    return tables["ahead_compiles"].select(columns).rows()


def test_aot_inductor_is_a_compile_ahead_of_time(tmp_path):
    tables = derived(
        tmp_path,
        phase("compile_fx_aot", "B", 0),
        phase("create_aot_dispatcher_function", "B", 1),
        record("aot_inference_graph", {}, payload="class <lambda>: pass"),
        artifact("before_joint_graph", "class GraphModule: pass"),
        phase("create_aot_dispatcher_function", "E", 2),
        phase("compile_fx_aot", "E", 21),
        phase("compile_fx_aot", "B", 30),
        record("aot_inference_graph", {}, payload="class <lambda>: pass"),
        phase("compile_fx_aot", "E", 31),
    )
    assert ahead_rows(tables) == [("aot_inductor", 21.0, 2, 1), ("aot_inductor", 1.0, 1, 1)]
    assert ahead_of_time(tables) == "AOTInductor compiled ahead of time: 22.0 s, 2 graphs"


def test_a_function_captured_for_export_is_no_compile_that_never_ended(tmp_path):
    tables = derived(
        tmp_path,
        phase("fullgraph_capture", "B", 0),
        phase("compile_attempt_0", "B", 0.1, **at(0)),
        record("dynamo_output_graph", {"sizes": {}}, payload="class GraphModule: pass", **at(0)),
        phase("compile_attempt_0", "E", 0.2, **at(0)),
        phase("fullgraph_capture", "E", 0.25),
        record("dynamo_start", {"stack": []}, **at(1)),
    )
    outcomes = tables["compiles"].select("compile_id", "outcome").rows()
    assert outcomes == [("0/0", "exported"), ("1/0", "unfinished")]
    assert ahead_rows(tables) == [("export", 0.25, 1, 0)]


def test_an_export_that_the_log_only_names_has_no_time(tmp_path):
    tables = derived(tmp_path, record("exported_program", {}, payload="ExportedProgram: …"))
    assert ahead_rows(tables) == [("export", None, None, None)]
    assert ahead_of_time(tables) == "torch.export captured a program: time not recorded"


def test_a_log_of_torch_compile_has_nothing_ahead_of_time(tmp_path):
    tables = derived(tmp_path, record("dynamo_start", {"stack": []}, **at(0)))
    assert tables["ahead_compiles"].is_empty()
    assert ahead_of_time(tables) is None


def test_compiling_ahead_of_time_is_no_count_of_zero_compiles(tmp_path, monkeypatch, capfd):
    path, out, cli = tmp_path / "aot.log", tmp_path / "out", Cli(monkeypatch, capfd)
    path.write_bytes(phase("compile_fx_aot", "B", 0) + phase("compile_fx_aot", "E", 21))
    assert cli("postmortem", "--workers", 1, path, "-o", out).code == 0
    assert "AOTInductor compiled ahead of time: 21.0 s" in cli.out
    for limit in ("compiles=0", "graph_breaks=0", "findings_error=0"):
        assert cli("check", out, "--max", limit).code == 1
        assert "not recorded" in cli.out


def test_a_break_that_only_the_metrics_hold_violates_a_limit(tmp_path, monkeypatch, capfd):
    """As torch of April 2024 wrote it: a restart, with no record of the break itself."""
    metrics = {"co_name": "f", "co_filename": "/x/train.py", "co_firstlineno": 3}
    metrics |= {"start_time": 1.7e9, "entire_frame_compile_time_s": 0.5, "fail_type": None}
    path, cli = tmp_path / "old.log", Cli(monkeypatch, capfd)
    for reasons, code in ((["'skip function graph_break in file /torch/x.py'"], 1), ([], 0)):
        told = metrics | {"restart_reasons": reasons}
        path.write_bytes(record("compilation_metrics", told, **at(0)))
        assert cli("check", path, "--max-breaks", 0).code == code
        assert cli.out.startswith("max-breaks: Graph breaks: 1" if code else "passed: 1")
