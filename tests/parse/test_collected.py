import gzip
import json

from traceview.parse.collected import read_pass, table_of
from traceview.parse.damage import Damage
from traceview.run import Ending, Manifest, PassRecord, Run

BEGIN = {
    "event": "process", "t": 1e15, "pid": 7, "rank": None, "argv": ["t.py", "--lr", "1"],
    "cwd": "/w",    "python": "3.12.1", "platform": "Linux x86_64", "pass": "cold",
}  # fmt: skip
TORCH = {
    "event": "torch", "t": 1e15, "torch_version": "2.11.0+cu130", "device_name": "NVIDIA H200",
    "device_count": 1, "device_capability": "9.0", "cpu_threads": 16, "cuda_version": "13.0",
}  # fmt: skip
REGION = {
    "event": "region", "t": 1e15 + 1, "region_id": 0, "kind": "module", "name": "Net",
    "call_file": "/w/t.py", "call_line": 5, "dynamic": "None", "fullgraph": False, "tomorrow": 1,
}  # fmt: skip


def read(folder, *processes, ending=None, tail=""):
    """Tables of processes given as (pid, events); ``tail`` ends the last file."""
    record = PassRecord(
        "cold", "raw/cold", started_us=9e14, ending=ending or Ending("exit", 0, None, 3.5)
    )
    raw = folder / "raw" / "cold"
    raw.mkdir(parents=True)
    for pid, events in processes:
        text = "".join(json.dumps(event) + "\n" for event in events)
        (raw / f"events-{pid}.jsonl").write_text(text + tail)
    damage = Damage()
    tables = read_pass(Run(folder, Manifest()), record, damage)
    return tables, damage


def test_a_process_tells_where_it_ran_and_the_manifest_how_it_ended(tmp_path):
    steady = {"event": "steady", "t": 1, "step": 4, "never_quiet": False, "step_kind": "call"}
    end = {"event": "end", "t": 2, "steps_seen": 90, "step_kind": "call", "phase": "tail"}
    done = {"event": "done", "t": 2, "step": 80, "stopping": True, "complete": True}
    grad = {"event": "setting", "section": "torch", "name": "grad_enabled_steps", "value": "False"}
    tables, _ = read(tmp_path, (7, [BEGIN, TORCH, steady, grad, done, end]))

    row = tables["runs"].row(0, named=True)
    assert (row["pid"], row["rank"], row["exit_kind"], row["exit_code"]) == (7, None, "exit", 0)
    assert (row["wall_s"], row["started_us"]) == (3.5, 1e15)
    assert (row["torch_version"], row["device_name"]) == ("2.11.0+cu130", "NVIDIA H200")
    assert (row["steps_seen"], row["quiet_after_step"], row["never_quiet"]) == (90, 4, False)
    assert (row["plan_complete"], row["grad_enabled_steps"]) == (True, False)
    assert json.loads(row["argv"]) == ["t.py", "--lr", "1"]


def test_a_killed_process_leaves_what_it_had_written(tmp_path):
    steps = {
        "event": "steps", "t": 2, "phase": "cold", "stance": "compiled",
        "rows": [[0, 1.0, 900.0, 1], [1, 2.0, 3.5, 0]],
    }  # fmt: skip
    block = {"event": "block", "t": 3, "block_index": 0, "first_step": 2, "steps": 10}
    tables, damage = read(
        tmp_path,
        (7, [BEGIN, steps, block]),
        ending=Ending("signal", None, 9, 12.0),
        tail='{"event": "calls", "rows": [[0, 1',
    )

    row = tables["runs"].row(0, named=True)
    assert (row["exit_kind"], row["exit_code"], row["exit_signal"]) == ("signal", None, 9)
    assert (row["steps_seen"], row["plan_complete"], row["quiet_after_step"]) == (12, False, None)
    assert tables["steps"].select("step", "phase", "host_ms", "compiles_inside").rows() == [
        (0, "cold", 900.0, 1),
        (1, "cold", 3.5, 0),
    ]
    unreadable = damage.frame("cold").row(0, named=True)
    assert (unreadable["kind"], unreadable["first_line"]) == ("truncated", 4)
    assert unreadable["file"] == "raw/cold/events-7.jsonl"


def test_a_process_that_never_wrote_has_its_ending(tmp_path):
    tables, _ = read(tmp_path, ending=Ending("exit", 1, None, 0.2))
    row = tables["runs"].row(0, named=True)
    assert (row["pid"], row["exit_code"], row["started_us"]) == (None, 1, 9e14)
    assert set(tables) == {"runs"}


def test_ranks_end_each_in_its_own_way(tmp_path):
    first = [BEGIN | {"rank": 0}, {"event": "end", "t": 1e15 + 5e6, "steps_seen": 3}]
    second = [BEGIN | {"rank": 1, "t": 1e15 + 1, "pid": 8}]
    error = {
        "event": "error", "t": 1e15 + 2e6, "type": "ValueError", "message": "<b>" * 5000, "line": 3,
        "file": "/w/t.py", "function": "f", "stance": "compiled",
    }  # fmt: skip
    tables, _ = read(tmp_path, (7, first), (8, [*second, error]), ending=Ending("exit", 1))

    runs = tables["runs"]
    assert runs.select("pid", "rank", "exit_kind", "exit_code").rows() == [
        (7, 0, "exit", None),
        (8, 1, "exit", 1),
    ]
    assert runs["wall_s"].to_list() == [5.0, (2e6 - 1) / 1e6]
    failed = runs.row(1, named=True)
    assert (failed["error_type"], failed["error_line"]) == ("ValueError", 3)
    assert failed["error_message"] == ("<b>" * 5000)[:4096]


def test_a_region_gathers_its_calls_and_totals(tmp_path):
    first = {
        "event": "first_call", "t": 2, "region_id": 0, "host_ms": 812.5, "step": 0,
        "stack": [{"file": "/w/t.py", "line": 9, "function": "main"}],
    }  # fmt: skip
    totals = {
        "event": "region_end",
        "region_id": 0,
        "is_anchor": True,
        "methods_used": ["generate"],
    }
    events = [
        BEGIN,
        REGION,
        first,
        totals | {"t": 3, "calls": 4, "outermost_calls": 4},
        totals | {"t": 4, "calls": 9, "outermost_calls": 8},
    ]
    row = read(tmp_path, (7, events))[0]["regions"].row(0, named=True)

    assert (row["kind"], row["name"], row["call_line"]) == ("module", "Net", 5)
    assert (row["calls"], row["outermost_calls"], row["is_anchor"]) == (9, 8, True)
    assert (row["first_call_ms"], row["methods_used"]) == (812.5, ["generate"])
    assert json.loads(row["first_call_stack"])[0]["line"] == 9


def test_without_totals_calls_are_counted_from_the_batches(tmp_path):
    calls = {
        "event": "calls", "t": 2, "region_id": 0, "phase": "warmup", "stance": "compiled",
        "rows": [[0, 0, 1.0, 2.0, 1, True], [1, 0, 2.0, 2.0, 0, False], "damaged"],
    }  # fmt: skip
    tables, damage = read(tmp_path, (7, [BEGIN, REGION, calls]))

    region = tables["regions"].row(0, named=True)
    assert (region["calls"], region["outermost_calls"]) == (2, 1)
    assert tables["calls"].select("call_index", "region_id", "phase", "outermost").rows() == [
        (0, 0, "warmup", True),
        (1, 0, "warmup", False),
    ]
    assert damage.frame("cold")["kind"].to_list() == ["bad_event"]


def test_values_of_the_wrong_type_become_null(tmp_path):
    block = {
        "event": "block",
        "t": 1,
        "block_index": 0,
        "first_step": 2,
        "steps": 10,
        "pair_index": "three",
        "region_calls": 1e30,
        "queued_ms": 10**400,
        "duration_ms": 5,
        "clock": 3,
    }
    block |= {"host_ms": True}
    row = read(tmp_path, (7, [BEGIN, block]))[0]["blocks"].row(0, named=True)
    wrong = ("pair_index", "region_calls", "queued_ms", "host_ms")
    assert [row[name] for name in wrong] == [None] * 4
    assert (row["duration_ms"], row["clock"]) == (5.0, "3")


def test_lists_keep_what_their_columns_hold():
    row = {"operators": ["aten.add", 3], "element": [0, 12, "x"], "remedies": "none"}
    found = table_of("output_faults", [row]).to_dicts()[0]
    assert (found["operators"], found["element"]) == (["aten.add"], [0, 12])
    assert found["remedies"] == []


def test_what_the_collector_always_writes_is_there_or_its_event_is_damage(tmp_path):
    """A region whose number is a list, a block of no steps, and what depends on neither."""
    block = {"event": "block", "t": 1, "block_index": 0, "first_step": 2, "steps": 10}
    rows = [
        BEGIN,
        {"event": "region", "t": 1, "region_id": [0]},
        {"event": "first_call", "t": 1, "region_id": {}},
        {
            "event": "calls",
            "t": 1,
            "region_id": 0,
            "stance": "eager",
            "rows": [[[], 1, 2, 3, 0, 1]],
        },
        *(block | {"steps": steps} for steps in (0, -1, True, None, 10**400)),
        block | {"first_step": []},
        block,
    ]
    tables, damage = read(tmp_path, (7, rows))
    assert [(kind, times) for kind, times, _ in damage.kinds()] == [("bad_event", 9)]
    assert tables["blocks"].height == 1
    assert tables["regions"].is_empty()


def test_a_moment_or_a_rank_of_400_digits_is_none(tmp_path):
    huge = 10**400
    rows = [BEGIN | {"rank": huge, "t": huge}, {"event": "note", "t": -huge, "what": "x"}]
    tables, _ = read(tmp_path, (7, rows))
    assert tables["runs"].select("rank", "started_us").row(0) == (None, None)


def test_a_folder_whose_name_is_no_utf8_costs_no_event(tmp_path):
    begin = BEGIN | {"cwd": "/data/\udcff", "argv": ["tr\udcffain.py"]}
    tables, damage = read(tmp_path, (7, [begin]))
    assert not damage.total
    assert tables["runs"]["cwd"].to_list() == ["/data/?"]


def test_what_nests_too_deeply_is_damage_or_null(tmp_path):
    def nested(depth):
        value = []
        for _ in range(depth):
            value = [value]
        return value

    deep = '{"event": "note", "what": ' + "[" * 5000 + "]" * 5000 + "}\n"
    region = {"event": "region", "t": 1, "region_id": 0, "options": nested(150)}
    tables, damage = read(tmp_path, (7, [BEGIN, region]), tail=deep)
    assert [(kind, times) for kind, times, _ in damage.kinds()] == [("bad_json", 1)]
    assert tables["regions"].height == 1


def test_foreign_lines_are_counted_and_unknown_events_passed_over(tmp_path):
    tables, damage = read(
        tmp_path, (7, [BEGIN, {"event": "of tomorrow"}, [1, 2], {"no": "event"}]), tail="not json\n"
    )
    found = damage.frame("cold").select("kind", "times", "first_line").rows()
    assert sorted(found) == [("bad_event", 2, 3), ("bad_json", 1, 5)]
    assert tables["runs"].height == 1


def test_profile_files_and_sources_are_named_from_the_run_folder(tmp_path):
    profile = {
        "event": "profile",
        "t": 1,
        "stance": "eager",
        "steps": 2,
        "file": "profile/eager-7.json.gz",
    }
    failed = {"event": "profile", "t": 2, "stance": "compiled", "error": "no CUPTI", "file": None}
    source = {
        "event": "source",
        "t": 1,
        "file": "/w/t.py",
        "copy": "raw/sources/t.py",
        "sha256": "ab",
    }
    setting = {
        "event": "setting", "t": 1, "section": "inductor_config", "name": "max_autotune",
        "value": True,        "default": False, "set_by": "user",
    }  # fmt: skip
    other = {**profile, "stance": "eagep"}
    note = {"event": "note", "t": 2, "what": "profiler window", "why": "no CUPTI"}
    lines = {**profile, "t": 2, "purpose": "lines", "steps": 1, "line_files": ["/w/t.py"]}
    rows = [BEGIN, profile, lines, other, failed, source, source, setting, note]
    tables, _ = read(tmp_path, (7, rows))

    windows = tables["profile_windows"].select("stance", "purpose", "file", "error").rows()
    assert windows == [
        ("eager", "time", "raw/cold/profile/eager-7.json.gz", None),
        ("eager", "lines", "raw/cold/profile/eager-7.json.gz", None),
        ("compiled", "time", None, "no CUPTI"),
    ]
    assert tables["notes"].select("pid", "why").rows() == [(7, "no CUPTI")]
    assert tables["sources"].select("file", "copy").rows() == [("/w/t.py", "raw/sources/t.py")]
    assert tables["environment"].select("name", "value", "default").rows() == [
        ("max_autotune", "True", "False")
    ]


def test_ceilings_are_a_table_only_where_one_was_measured(tmp_path):
    ceiling = {
        "event": "ceiling", "t": 9, "device": "cuda:0", "kind": "matmul", "dtype": "bfloat16",
        "value": 781.5, "unit": "TFLOP/s", "size": "8192x8192x8192", "detail": None, "runs": 33,
        "clock": "device",
    }  # fmt: skip
    odd = {"event": "ceiling", "t": 9, "kind": ["x"], "value": "fast", "runs": 2**80}
    tables, _ = read(tmp_path / "a", (7, [BEGIN, ceiling, odd]))
    rows = tables["ceilings"].select("pid", "device", "kind", "dtype", "value", "runs").rows()
    assert rows == [
        (7, "cuda:0", "matmul", "bfloat16", 781.5, 33),
        (7, None, '["x"]', None, None, None),
    ]
    assert "ceilings" not in read(tmp_path / "b", (7, [BEGIN]))[0]


def test_gzipped_events_are_read_and_a_cut_archive_is_counted(tmp_path):
    raw = tmp_path / "raw" / "cold"
    raw.mkdir(parents=True)
    packed = gzip.compress("".join(json.dumps(e) + "\n" for e in [BEGIN] * 500).encode())
    (raw / "events-7.jsonl.gz").write_bytes(packed[:-12])
    damage = Damage()
    record = PassRecord("cold", "raw/cold")
    tables = read_pass(Run(tmp_path, Manifest()), record, damage)

    assert tables["runs"]["pid"].to_list() == [7]
    assert damage.frame("cold")["kind"].to_list() == ["truncated"]


def test_a_plan_that_gave_up_is_not_complete(tmp_path):
    done = {"event": "done", "t": 2, "step": 80, "stopping": True, "complete": False}
    torch = TORCH | {"device_name": None}
    row = read(tmp_path, (7, [BEGIN, torch, done]))[0]["runs"].row(0, named=True)
    assert (row["plan_complete"], row["device_name"]) == (False, "cpu")


def test_resets_are_a_table_where_there_were_any(tmp_path):
    reset = {"event": "reset", "t": 3, "file": "/w/t.py", "line": 9, "function": "f", "step": 4}
    tables, _ = read(tmp_path / "some", (7, [BEGIN, TORCH, reset]))
    assert tables["resets"].select("pid", "file", "line", "step").rows() == [(7, "/w/t.py", 9, 4)]
    tables, _ = read(tmp_path / "none", (7, [BEGIN, TORCH]))
    assert "resets" not in tables, "an older collector did not look"
