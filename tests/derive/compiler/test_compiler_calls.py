"""Call path, guards, first calls and the timeline, on recorded runs."""

import json

import polars as pl
import pytest

from traceview.derive.compiler.call_path import call_path, guard_costs
from traceview.derive.compiler.first_calls import part_of, parts_of
from traceview.derive.compiler.trace import chrome_trace
from traceview.diagnosis import explained
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables, from_rows

RUNS = (
    "bad-gb_item", "bad-rc_module_int_attr", "bad-rc_auto_dynamic", "healthy-mlp_training",
    "healthy-dynamic_shapes", "gpu-autotuned_template", "gpu-reduce_overhead",
    "gpu-transformer_training",
)  # fmt: skip


def path(tables, part):
    rows = tables["call_path"].filter(pl.col("part") == part)
    return {row["compile_id"]: row for row in rows.iter_rows(named=True)}


def test_each_look_up_belongs_to_the_graph_that_it_led_to(tables_of):
    looked = path(tables_of("bad-gb_item"), "cache_lookup")
    assert set(looked) == {"0/0", "1/0"}  # the break's two halves
    assert [row["calls"] for row in looked.values()] == [1.0, 1.0]
    assert {row["guards"] for row in looked.values()} == {20, 13}
    for row in looked.values():
        assert row["entries"] == 1
        assert row["us_per_call"] * 1e3 / row["guards"] == pytest.approx(row["ns_per_guard"])


def test_parts_of_a_call_are_what_the_window_holds(tables_of):
    tables = tables_of("bad-gb_item")
    counts = tables["step_counts"].filter(pl.col("stance") == "compiled").row(0, named=True)
    looked = path(tables, "cache_lookup").values()
    assert sum(row["ms"] for row in looked) == pytest.approx(counts["cache_lookup_ms"], rel=0.2)
    assert set(tables["call_path"]["part"]) == {
        "cache_lookup", "pregraph_bytecode", "runtime_wrappers", "generated_wrapper",
        "compiled_region",
    }  # fmt: skip


def test_a_look_up_in_vain_says_how_many_variants_it_tried(tables_of):
    """The recompile limit is hit: every call checks eight entries and then runs eagerly."""
    (row,) = path(tables_of("bad-rc_module_int_attr"), "cache_lookup").values()
    assert (row["compile_id"], row["entries"], row["guards"]) == (None, 8, None)
    (found,) = path(tables_of("bad-rc_auto_dynamic"), "cache_lookup").values()
    assert (found["compile_id"], found["entries"]) == ("0/1", 2)


def test_the_wrapper_is_left_out_where_kernels_hide_in_it(tables_of):
    tables = tables_of("bad-gb_item")
    ops = tables["cpu_ops"].filter(~pl.col("category").str.starts_with("generated_"))
    hidden = Tables({name: tables[name] for name in tables if name != "cpu_ops"} | {"cpu_ops": ops})
    from traceview.derive.windows import windows

    parts = {row["part"] for row in call_path(hidden, windows(hidden))}
    assert "generated_wrapper" not in parts
    assert "cache_lookup" in parts


def test_what_the_profiler_cost_is_taken_off_where_it_is_known(tables_of):
    rows = tables_of("gpu-cg_skip_mutation")["call_path"]
    for row in rows.drop_nulls("us_less_profiler").iter_rows(named=True):
        assert 0 <= row["us_less_profiler"] <= row["us_per_call"]


def test_guards_are_counted_by_kind_and_by_what_they_read(tables_of):
    tables = tables_of("healthy-mlp_training")
    rows = tables["guard_costs"].to_dicts()
    whole = rows[0]
    assert (whole["kind"], whole["source_name"]) == (None, None)
    assert whole["guards"] == 76
    timed = tables["compiles"].filter(compile_id="0/0")["guard_latency_us"].drop_nulls()
    assert whole["us"] in timed.to_list()
    assert whole["how"].startswith("torch timed the set once")
    kinds = {row["kind"]: row["guards"] for row in rows if row["kind"]}
    assert kinds["DIMENSION_DYNAMIC_MARKING_GUARD"] == 35
    assert kinds["TENSOR_MATCH"] == 7  # the input, and six parameters
    sources = {row["source_name"]: row for row in rows if row["source_name"]}
    assert sources["L['self']"]["guards"] == max(row["guards"] for row in sources.values())
    assert sources["L['self']"]["line"] == 19
    assert sources["L['self']"]["file"].endswith("mlp_training.py")
    assert sum(kinds.values()) == sum(row["guards"] for row in sources.values()) == 76
    assert all(row["us"] is None for row in rows[1:])  # torch times no single guard


def test_what_the_collector_timed_takes_its_guards_out_of_the_roots(tables_of):
    tables = tables_of("healthy-mlp_training")
    compile_ = tables["compiles"].filter(compile_id="0/0").row(0, named=True)
    pid = int(compile_["compile_key"].split(":")[1])
    head = {"pass": "cold", "rank": compile_["rank"], "pid": pid, "compile_id": "0/0"}
    branch = "L['self']._modules['first']"
    timed = [
        {**head, "source_name": None, "guards": 76, "us": 9.0, "evaluations": 7},
        {**head, "source_name": branch, "guards": 18, "us": 6.5, "evaluations": 7},
    ]
    counted = {row["source_name"]: row for row in tables["guard_costs"].iter_rows(named=True)}
    more = tables.copy()
    more.put("guard_timings", from_rows("guard_timings", timed))
    whole, *rows = guard_costs(more)
    assert (whole["guards"], whole["us"]) == (76, 9.0)
    assert whole["how"] == "all of them evaluated, median of 7"
    sources = {row["source_name"]: row for row in rows if row.get("source_name")}
    assert next(iter(sources)) == branch
    assert (sources[branch]["us"], sources[branch]["guards"]) == (6.5, 18)
    assert sources[branch]["line"] == 19
    left = sources["L['self']"]
    assert left["guards"] == counted["L['self']"]["guards"] - 18
    assert left["guard"] == "others that start from L['self']"
    assert sum(row["guards"] for row in sources.values()) == 76

    twice = more["compiles"].with_columns(
        compile_key=pl.col("compile_key").str.replace(rf":{pid}:\d+:", f":{pid}:99:")
    )
    more.put("compiles", pl.concat([more["compiles"], twice]))
    assert all(row["how"] != whole["how"] for row in guard_costs(more)), "a reset"


def test_the_tree_is_counted_and_not_what_tracing_asked_for(tables_of):
    """CompilationMetrics.guard_count counts one guard once for each time it was asked for."""
    tables = tables_of("gpu-launch_bound")
    assert tables["compiles"]["guard_count"].to_list() == [244]
    assert tables["guards"].height == 35
    assert tables["guard_costs"]["guards"][0] == 35


def test_reports_show_the_sets_and_what_they_read(tables_of):
    tables = tables_of("healthy-mlp_training")
    found = explained.guard_costs(tables, Focus.of(tables))
    assert found[0].guards == 76
    assert found[1].source_name == "L['self']"
    assert len(found) <= explained.MOST_GUARDS + 1
    calls = explained.explanation(tables, Focus.of(tables)).call_path
    assert [part.ms for part in calls] == sorted((part.ms for part in calls), reverse=True)


@pytest.mark.parametrize("name", RUNS)
def test_the_first_calls_parts_add_up_to_it(tables_of, name):
    tables = tables_of(name)
    parts = tables["first_calls"]
    first = tables["calls"].filter(pl.col("call_index") == 0)
    assert parts["ms"].sum() == pytest.approx(first["host_ms"].sum(), rel=1e-6)
    unexplained = parts.filter(pl.col("part") == "unexplained")["ms"].sum()
    assert 0 <= unexplained < 0.02 * parts["ms"].sum()
    assert (parts["ms"] >= 0).all()


def test_autotuning_and_cudagraphs_are_parts_of_their_own(tables_of):
    tuned = dict(
        tables_of("gpu-autotuned_template")["first_calls"].select("part", "ms").iter_rows()
    )
    # 6.5 s of candidates compiled, 0.3 s timed, the fused kernel tried, block sizes tuned
    assert tuned["autotune"] == pytest.approx(11764.8, abs=0.1)
    assert (
        "cudagraph_recording" in tables_of("gpu-reduce_overhead")["first_calls"]["part"].to_list()
    )


def test_a_backward_compiled_inside_the_call_is_its_own_part():
    rows = [
        ("dynamo", 0, None, 0.0, 500.0, 100.0),
        ("entire_backward_compile", 1, 0, 100.0, 400.0, 150.0),
        ("inductor_compile", 2, 1, 200.0, 250.0, 250.0),
    ]
    phases = [
        {
            "pass": "cold", "pid": 1, "phase_id": i, "parent_id": p, "depth": i, "name": n,
            "started_us": s, "duration_us": d, "self_us": own, "aside": False,
        }
        for n, i, p, s, d, own in rows
    ]  # fmt: skip
    call = {
        "pass": "cold", "pid": 1, "region_id": 0, "call_index": 0, "started_us": -20.0,
        "host_ms": 0.6, "compiles_inside": 1,
    }  # fmt: skip
    from traceview.derive.compiler.first_calls import first_calls

    tables = Tables(
        {"compile_phases": from_rows("compile_phases", phases), "calls": from_rows("calls", [call])}
    )
    found = {row["part"]: round(row["ms"], 6) for row in first_calls(tables)}
    assert found == {"dynamo": 0.1, "backward": 0.4, "unexplained": 0.02, "first_run": 0.08}


def test_a_phase_is_named_after_itself_or_else_after_what_it_is_part_of():
    assert part_of("GraphLowering.run", "aot") == "inductor"
    assert part_of("addmm_template_autotuning", "scheduling") == "autotune"
    assert part_of("no_such_phase", "codegen") == "codegen"
    assert part_of("no_such_phase", None) is None
    rows = [
        {"phase_id": 0, "parent_id": None, "name": "benchmark_fused_nodes"},
        {"phase_id": 1, "parent_id": 0, "name": "async_compile.wait"},
    ]
    assert parts_of(rows)[1] == "autotune"  # what is compiled only to be timed


@pytest.mark.parametrize("name", RUNS)
def test_phases_shown_add_up_to_all_compiling(tables_of, name):
    tables = tables_of(name)
    spans = explained.phases(tables, Focus.of(tables))
    own = [span for span in spans if not span.parallel]
    assert sum(s.self_seconds for s in own) == pytest.approx(
        sum(span.seconds for span in own if span.depth == 0)
    )
    assert all(span.started_s > 0 for span in spans)
    assert len(spans) <= explained.MOST_PHASES


def test_work_in_workers_is_apart(tables_of):
    spans = explained.phases(*(lambda t: (t, Focus.of(t)))(tables_of("healthy-mlp_training")))
    aside = [span for span in spans if span.parallel]
    assert {span.name for span in aside} == {"compile_file"}
    assert len(aside) == 3
    waited = [s for s in spans if s.name == "async_compile.wait"]
    assert sum(s.seconds for s in aside) > sum(s.seconds for s in waited)  # two at a time
    triton = tables_of("gpu-transformer_training")["compile_phases"].filter(
        pl.col("name").str.starts_with("triton: ")
    )
    assert triton["started_us"].null_count() == triton.height > 30  # torch gives no start
    assert triton["aside"].all()


def test_autotuning_names_the_winner_and_its_margin(tables_of):
    tables = tables_of("gpu-autotuned_template")
    (tuned,) = explained.autotuning(tables, Focus.of(tables))
    assert (tuned.op, tuned.winner, tuned.runner_up) == ("addmm", "triton_mm_17", "triton_mm_18")
    assert (tuned.winner_ms, tuned.runner_up_ms) == pytest.approx((0.041216, 0.045))
    assert tuned.seconds == pytest.approx(0.2956 + 6.5)
    assert tuned.best_other_backend is None  # every one of the ten is Triton's
    assert tuned.choices == 10


@pytest.mark.parametrize("name", RUNS)
def test_the_timeline_keeps_the_trace_event_formats_rules(tables_of, name):
    trace = json.loads(json.dumps(chrome_trace(tables_of(name)), allow_nan=False))
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    names = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in trace["traceEvents"]
        if event["ph"] == "M" and event["name"] == "thread_name"
    }
    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X"}
    assert min(span["ts"] for span in spans) == 0
    assert {"compile phases", "region calls", "steps", "blocks"} <= set(names.values())
    by_track = {}
    for span in spans:
        assert isinstance(span["pid"], int)
        assert isinstance(span["tid"], int)
        assert span["dur"] >= 0
        assert span["name"]
        assert span["cat"]
        by_track.setdefault((span["pid"], span["tid"]), []).append(span)
    assert set(by_track) <= set(names)  # no track without a name
    for track in by_track.values():
        assert nested(track)


def nested(spans):
    """Whether the spans of one tid nest: each begins and ends within what is open around it."""
    ends = []
    for span in sorted(spans, key=lambda span: (span["ts"], -span["dur"])):
        while ends and ends[-1] <= span["ts"] + 0.002:  # rounded to nanoseconds
            ends.pop()
        if ends and span["ts"] + span["dur"] > ends[-1] + 0.002:
            return False
        ends.append(span["ts"] + span["dur"])
    return True


def test_spans_that_overlap_get_tracks_of_their_own():
    rows = [
        {"pass": "cold", "pid": 7, "trigger": "dynamo", "started_us": start, "duration_ms": ms}
        for start, ms in ((1e15, 5.0), (1e15 + 3000, 5.0), (1e15 + 3500, 1.0), (1e15, -1.0))
    ]
    trace = chrome_trace(Tables({"compile_intervals": from_rows("compile_intervals", rows)}))
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(spans) == 3  # the one that ends before it begins is damage
    assert len({span["tid"] for span in spans}) == 2


def test_equal_process_ids_of_two_passes_stay_apart():
    rows = [
        {"pass": name, "pid": 7, "trigger": "dynamo", "started_us": 1e15, "duration_ms": 1.0}
        for name in ("cold", "warm")
    ]
    trace = chrome_trace(Tables({"compile_intervals": from_rows("compile_intervals", rows)}))
    titles = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    assert titles == ["cold · pid 7", "warm · pid 7"]
    assert len({event["pid"] for event in trace["traceEvents"]}) == 2


def test_a_warm_start_is_told_apart_from_the_cold_one():
    rows = [
        {"pass": name, "pid": pid, "region_id": 0, "part": part, "ms": ms}
        for name, pid, part, ms in (
            ("cold", 1, "kernel_compile", 900.0), ("warm", 2, "first_run", 3.0),
            ("warm", 2, "dynamo", 40.0), ("warm", 3, "dynamo", 7.0),
        )
    ]  # fmt: skip
    runs = [{"pass": "warm", "pid": pid, "steps_seen": pid == 2} for pid in (2, 3)]
    tables = Tables(
        {"first_calls": from_rows("first_calls", rows), "runs": from_rows("runs", runs)}
    )
    warm = explained.explanation(tables, Focus.of(tables)).warm_first_calls
    assert [(part.part, part.ms) for part in warm] == [("dynamo", 40.0), ("first_run", 3.0)]
    assert explained.explanation(Tables(), Focus.of(Tables())).warm_first_calls == ()


def test_worker_time_stands_beside_the_time_that_was_waited(tables_of):
    tables = tables_of("gpu-transformer_training")
    (triton,) = explained.workers(tables, Focus.of(tables))
    assert (triton.compile_id, triton.what) == ("0/0", "Triton kernels")
    assert triton.count == 36
    assert triton.seconds > 4 * triton.waited_seconds
    tables = tables_of("healthy-mlp_training")
    (files,) = explained.workers(tables, Focus.of(tables))
    assert (files.compile_id, files.what, files.count) == ("0/0", "C++ files", 3)
    assert files.seconds > files.waited_seconds > 1.0


def test_a_look_up_grows_with_its_guards_far_slower_than_in_proportion(tables_of):
    """A small kernel behind thousands of guards and one behind a few: some 30 ns for each more."""
    many = path(tables_of("truth-gpu-many_guards"), "cache_lookup")["0/0"]
    few = path(tables_of("truth-gpu-known_bytes"), "cache_lookup")["0/0"]
    assert many["guards"] > 2000
    assert few["guards"] < 20
    each = (many["us_per_call"] - few["us_per_call"]) * 1e3 / (many["guards"] - few["guards"])
    assert 10 < each < 60
    assert few["ns_per_guard"] > 10 * each  # a few guards mostly pay the look-up's fixed cost
