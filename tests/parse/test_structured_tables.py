"""Tables from recorded structured logs: what is known of the scripts must stand in them."""

import json
from datetime import datetime, timezone

import polars as pl
import pytest
from structured_log_tools import PREFIX, artifact, at, kinds_of, read, record, recorded

from traceview.parse.damage import Damage
from traceview.parse.structured import read_pass
from traceview.run import Manifest, PassRecord, Run

MAKE = "/project/make.py"


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    names = ("guards", "breaks", "resets", "failures", "inductor", "hits", "autograd")
    return {name: read(folder, recorded(name), f"{name}.log") for name in names}


@pytest.mark.parametrize(
    "name", ["guards", "breaks", "resets", "failures", "inductor", "hits", "autograd"]
)
def test_what_torch_wrote_is_read_without_damage_and_without_unknown_keys(logs, name):
    tables, damage = logs[name]
    assert kinds_of(damage) == {}
    counts = tables["log_records"]
    lines = [t for t in recorded(name).split(b"\n") if t and not t.startswith(b"\t")]
    assert counts["records"].sum() == len(lines)
    assert counts.filter(~pl.col("known") & (pl.col("key") != "artifact")).height == 0


def test_every_kind_of_guard_is_told_apart(logs):
    tables, _ = logs["guards"]
    rows = {row["co_name"]: row for row in tables["recompiles"].filter(order=0).to_dicts()[::-1]}
    kinds = {name: row["kind"] for name, row in rows.items()}
    assert kinds == {
        "tensor_size": "size",
        "tensor_stride": "stride",
        "tensor_dtype": "dtype",
        "tensor_rank": "rank",
        "tensor_grad": "requires_grad",
        "int_value": "value",
        "str_value": "value",
        "bool_value": "value",
        "none_value": "value" if rows["none_value"]["guard"].startswith("bias is") else "obj_id",
        "enum_value": "obj_id",
        "list_length": "length",
        "dict_keys": "length",
        "branch_on_size": "shape_guard",
        "closure_type": "obj_id",
        "float_value": "value",
        "grad_mode": "global_state",
        "backend_match": "backend",
        "forward": "module_int",
    }
    assert rows["branch_on_size"]["user_file"].endswith(MAKE)
    assert rows["int_value"]["user_file"].endswith(MAKE)
    assert rows["int_value"]["user_code"] == "return x + k"


def test_the_new_value_of_a_guard_comes_from_the_rest_of_the_chain(logs):
    tables, _ = logs["guards"]
    steps = tables["recompiles"].filter(kind="module_int", order=0)
    assert steps.select("compile_id", "old", "new").rows()[0][1:] == ("0", "1")
    ints = tables["recompiles"].filter(co_name="int_value", order=0)
    assert ints.select("old", "new").rows() == [("1", "2"), ("2", None)]
    flag = tables["recompiles"].filter(co_name="bool_value")
    assert flag.select("old", "new").rows() == [("True", "False")]


def test_graph_breaks_carry_torchs_ids_and_the_users_lines(logs):
    tables, _ = logs["breaks"]
    rows = tables["graph_breaks"].select("user_function", "gb_id", "frame_skipped").rows()
    assert rows == [
        ("item", "GB0124", False),
        ("prints", "GB0059", False),
        ("branch", "GB0170", False),
        ("loop", "GB0025", True),
        ("helper", "GB0025", False),
        ("helper", "GB0025", False),
        ("file_in_with", "GB0059", False),
        ("file_in_with", "GB0142", True),
        ("nonzero", "GB0036", False),
    ]
    stack = json.loads(tables["graph_breaks"]["user_stack"][4])
    assert [frame["function"] for frame in stack] == ["<module>", "breaks", "outer", "helper"]
    outcomes = dict(tables["compiles"].select("co_name", "outcome").rows())
    assert outcomes["loop"] == "skipped"
    assert outcomes["outer"] == "empty"
    assert outcomes["item"] == "ok"
    attempts = dict(tables["compiles"].select("co_name", "attempts").rows())
    assert (attempts["item"], attempts["branch"]) == (2, 1)


def test_a_resumed_frame_is_named_after_the_users_function(logs):
    tables, _ = logs["breaks"]
    resumed = tables["compiles"].filter(pl.col("co_name").str.starts_with("torch_dynamo_resume_in"))
    assert resumed.filter(user_function="item").height == 1


def test_ids_that_repeat_after_a_reset_stay_apart(logs):
    tables, _ = logs["resets"]
    rows = tables["compiles"].select("epoch", "compile_id", "co_name", "outcome").rows()
    assert rows == [
        (0, "0/0", "first", "ok"),
        (0, "1/0", "second", "ok"),
        (1, "0/0", "second", "ok"),
        (2, "0/0", "limited", "ok"),
        (2, "0/1", "limited", "ok"),
        (2, "0/2", "limited", "ok"),
        (2, "0/3", "limited", "limit"),
    ]
    assert tables["compiles"]["compile_key"].n_unique() == 7
    graphs = tables["graphs"].join(tables["compiles"], on="compile_key")
    assert (
        graphs.select("co_name").to_series().to_list()
        == tables["compiles"]["co_name"][:6].to_list()
    )


def test_phases_of_equal_ids_belong_to_their_own_epoch(logs):
    tables, _ = logs["resets"]
    dynamo = (
        tables["compile_phases"].filter(name="dynamo").join(tables["compiles"], on="compile_key")
    )
    assert dynamo.height == 7
    assert (dynamo["started_us"] <= dynamo["started_us_right"] + 1).all()
    assert (dynamo["duration_us"] >= dynamo["duration_us_right"] - 1e3).all()


def test_failures_are_failures_and_name_their_type(logs):
    tables, _ = logs["failures"]
    rows = tables["compiles"].select("co_name", "outcome", "fail_type").rows()
    assert rows == [
        ("add", "failed", "BackendCompilerFailed"),
        ("full", "failed", "Unsupported"),
        ("add", "failed", "BackendCompilerFailed"),
    ]
    assert "<b>says no</b>" in tables["compiles"]["fail_reason"][0]


def test_compiled_autograd_keeps_its_ids(logs):
    tables, _ = logs["autograd"]
    assert tables["compiles"]["compile_id"].to_list() == ["0/0", "!0/1/0", "2/0"]
    kinds = tables["graphs"].filter(compile_id="!0")["kind"].to_list()
    assert "compiled_autograd" in kinds


@pytest.mark.parametrize(("name", "event"), [("inductor", "miss"), ("hits", "hit")])
def test_generated_code_has_the_key_of_its_own_cache_look_up(logs, name, event):
    tables, _ = logs[name]
    codes = tables["graphs"].filter(kind="output_code")
    looked_up = tables["cache_events"].filter(cache="fx_graph")
    assert codes["aot_id"].to_list() == ["0_forward", "0_backward", "1_inference", "2_inference"]
    assert codes["graph_key"].to_list() == looked_up["key"].to_list()
    assert looked_up["event"].to_list() == [event] * 4
    assert looked_up["is_forward"].to_list() == [True, False, True, True]
    lowered = tables["graphs"].filter(kind="post_grad")
    assert lowered["aot_id"].to_list() == codes["aot_id"].to_list()


def test_a_backward_has_a_row_of_its_own(logs):
    tables, _ = logs["inductor"]
    both = tables["compiles"].filter(compile_id="0/0")
    assert both["is_forward"].to_list() == [True, False]
    assert both["co_name"].to_list() == ["forward", "forward"]
    forward, backward = both.to_dicts()
    assert backward["started_us"] > forward["started_us"] + forward["duration_us"]
    assert 0 < backward["inductor_us"] <= backward["duration_us"]
    assert (
        forward["dynamo_us"] >= forward["aot_us"] >= forward["inductor_us"] >= forward["codegen_us"]
    )
    assert forward["user_file"].endswith(MAKE)


def test_kernels_know_their_operators_and_the_users_lines(logs):
    tables, _ = logs["inductor"]
    kernels = {row["kernel_name"]: row for row in tables["generated_kernels"].to_dicts()}
    gelu = kernels["cpp_fused_gelu_0"]
    assert gelu["category"] == "cpp"
    assert set(gelu["fused_ops"]) == {"aten.mul", "aten.erf", "aten.add"}
    assert gelu["source_nodes"] == ["hidden"]
    assert gelu["launch_sites"] == 1
    assert 'extern "C"' in gelu["source_code"]
    linear = kernels["extern_kernels.addmm"]
    assert (linear["category"], linear["launch_sites"]) == ("extern", 2)
    assert linear["fused_ops"] == ["aten.t", "aten.addmm"]
    assert linear["source_nodes"] == ["linear", "linear_1"]
    assert kernels["torch.ops.aten._fft_r2c.default"]["category"] == "fallback"
    for kernel in kernels.values():
        assert kernel["line_origin"] == "provenance"
        assert all(MAKE in line for line in kernel["user_lines"])


def test_without_provenance_the_graphs_comments_give_the_lines(tmp_path):
    """As torch 2.8 and older, or a run without INDUCTOR_PROVENANCE=1, would have it."""
    lines = recorded("inductor").split(b"\nV")
    log = b"\nV".join(line for line in lines if b"inductor_provenance" not in line)
    tables, _ = read(tmp_path, log)
    kernels = {row["kernel_name"]: row for row in tables["generated_kernels"].to_dicts()}
    rows = [kernels["extern_kernels.addmm"], kernels["torch.ops.aten.abs.default"]]
    assert [row["line_origin"] for row in rows] == ["comment", "comment"]
    assert [len(row["user_lines"]) for row in rows] == [2, 1]
    assert all(MAKE in line for row in rows for line in row["user_lines"])


def test_a_backward_that_outlives_a_reset_stays_with_its_forward(tmp_path):
    start = {"stack": []}
    log = record("dynamo_start", start, **at(0)) + record("dynamo_start", start, **at(1))
    log += record("dynamo_start", start, **at(0))  # after a reset
    log += record("bwd_compilation_metrics", {"duration_us": 5}, **at(1))
    tables, _ = read(tmp_path, log)
    rows = tables["compiles"].select("compile_key", "is_forward").rows()
    assert rows == [
        ("logs:5956:0:0/0", True),
        ("logs:5956:0:1/0", True),
        ("logs:5956:0:1/0", False),
        ("logs:5956:1:0/0", True),
    ]


def test_what_ended_a_compile_before_it_began_was_moved_and_ends_nothing(tmp_path):
    late = PREFIX.replace("20:09:53", "20:09:55")
    log = record("dynamo_start", {"stack": []}, **at(0))
    log += record("compilation_metrics", {"compile_id": "0/0"}, prefix=late, **at(0))
    log += phase("bytecode_tracing", "B", at(0)) + phase("bytecode_tracing", "E", at(0))
    tables, _ = read(tmp_path, log)
    assert tables["compiles"]["epoch"].to_list() == [0]
    assert tables["compile_phases"]["compile_key"].to_list() == ["logs:5956:0:0/0"]


def test_the_first_frame_is_not_opened_behind_the_next_one(tmp_path):
    log = record("dynamo_guards", {}, payload="[]", **at(0))  # what opened it is lost
    log += record("dynamo_start", {"stack": []}, **at(1))
    log += record("dynamo_start", {"stack": []}, **at(0))  # after a reset
    tables, _ = read(tmp_path, log)
    keys = tables["compiles"]["compile_key"].to_list()
    assert keys == ["logs:5956:0:0/0", "logs:5956:0:1/0", "logs:5956:1:0/0"]


def phase(name, ph, context):
    event = {"name": name, "ph": ph, "ts": 1e15, "args": {}}
    return record("chromium_event", {}, payload=json.dumps(event), **context)


def test_phases_nest_and_their_own_times_add_up(logs):
    tables, _ = logs["inductor"]
    phases = tables["compile_phases"]
    assert phases["duration_us"].null_count() == 0
    children = phases.group_by("parent_id").agg(
        inside=pl.col("duration_us").sum(), threads=(pl.col("name") == "compile_file").any()
    )
    parents = phases.join(children, left_on="phase_id", right_on="parent_id")
    alone = parents.filter(~pl.col("threads"))
    assert alone.height > 20
    assert ((alone["self_us"] + alone["inside"] - alone["duration_us"]).abs() < 1).all()
    overlapping = phases.filter(name="compile_file")  # the compiler runs in threads
    assert (overlapping["self_us"] <= overlapping["duration_us"]).all()
    dynamo = phases.filter(name="dynamo", compile_id="0/0").to_dicts()[0]
    inner = phases.filter(name="entire_frame_compile", compile_id="0/0").to_dicts()[0]
    assert inner["parent_id"] == dynamo["phase_id"]


def test_a_size_that_becomes_dynamic_is_a_symbol(logs):
    tables, _ = logs["inductor"]
    symbol = tables["symbols"].to_dicts()[0]
    assert (symbol["event"], symbol["source_name"], symbol["value"]) == (
        "create", "L['x'].size()[0]", "6",
    )  # fmt: skip
    assert tables["compiles"].filter(compile_id="1/1")["dynamic_symbols"].to_list() == [1]


def test_ranks_are_carried_never_dropped(tmp_path):
    start = {"stack": []}
    log = (
        record("dynamo_start", start, **at(0))
        + record("dynamo_start", start, rank=3, **at(1))
        + record("dynamo_start", start, **at(2))
    )
    tables, _ = read(tmp_path, log)
    assert tables["compiles"]["rank"].to_list() == [3, 3, 3]
    tables, _ = read(tmp_path, record("dynamo_start", start, **at(0)), "d_rank_5_x.log")
    assert tables["compiles"]["rank"].to_list() == [5]
    launched = record(
        "dynamo_start", start, prefix="[rank2]: V1120 20:09:53.524000 7 a.py:1] ", **at(0)
    )
    tables, _ = read(tmp_path, launched)
    assert tables["compiles"]["rank"].to_list() == [2]


def test_processes_of_one_file_do_not_share_ids(tmp_path):
    start = {"stack": []}
    other = "V1120 20:09:53.524000 6000 torch/x.py:1] "
    log = record("dynamo_start", start, **at(0)) + record(
        "dynamo_start", start, prefix=other, **at(0)
    )
    tables, _ = read(tmp_path, log)
    assert tables["compiles"]["compile_key"].to_list() == ["logs:5956:0:0/0", "logs:6000:0:0/0"]


def test_a_compile_that_never_ends_is_unfinished_and_dated_by_the_logs_own_stamp(tmp_path):
    moment = datetime(2023, 12, 31, 23, 30, tzinfo=timezone.utc).timestamp() * 1e6
    event = json.dumps({"name": "x", "ph": "i", "ts": moment, "args": {}})
    local = "V0101 05:00:{:02d}.000000 7 torch/x.py:1] "  # five and a half hours east, next year
    log = record("chromium_event", {}, payload=event, prefix=local.format(0))
    log += record("dynamo_start", {"stack": []}, prefix=local.format(10), **at(0))
    tables, _ = read(tmp_path, log)
    row = tables["compiles"].to_dicts()[0]
    assert (row["outcome"], row["metrics"]) == ("unfinished", False)
    assert row["started_us"] == moment + 10e6


def test_metrics_of_2_6_are_read_from_its_seconds(tmp_path):
    fields = {"co_name": "f", "start_time": 1.5e9, "entire_frame_compile_time_s": 2.5}
    fields |= {"code_gen_time_s": 1.0, "graph_op_count": 3}
    tables, _ = read(tmp_path, record("compilation_metrics", fields, **at(0)))
    row = tables["compiles"].to_dicts()[0]
    assert (row["started_us"], row["dynamo_us"], row["codegen_us"]) == (1.5e15, 2.5e6, 1e6)
    assert row["outcome"] == "ok"
    assert row["guard_latency_us"] is None


def test_a_skipped_cudagraph_is_an_event(tmp_path):
    fields = {"cudagraph_skip_reason": "mutated inputs (1 instances)"}
    tables, _ = read(tmp_path, record("compilation_metrics", fields, **at(0)))
    event = tables["cudagraph_events"].to_dicts()[0]
    assert (event["event"], event["reason"]) == ("skip", "mutated inputs (1 instances)")


def test_autotuning_events_give_the_winner(tmp_path):
    stats = {"num_choices": 20, "best_kernel": "triton_mm_17", "best_time": 0.0324}
    stats |= {"best_kernel_desc": "BLOCK_K=64"}
    args = {"autotune_choices_stats": json.dumps(stats), "autotune_shape": "2048x4096, 4096x1024"}
    event = {"name": "addmm_template_autotuning", "ph": "E", "ts": 1.7e15, "args": args}
    tables, _ = read(tmp_path, record("chromium_event", {}, payload=json.dumps(event), **at(0)))
    row = tables["autotune_choices"].to_dicts()[0]
    assert (row["op"], row["choice"], row["backend"]) == ("addmm", "triton_mm_17", "triton")
    assert (row["time_ms"], row["is_best"], row["details"]) == (0.0324, True, "BLOCK_K=64")


@pytest.mark.parametrize("time", ["9" * 400, '"fast"'])
def test_a_time_of_an_autotuned_kernel_that_none_can_take_is_missing(tmp_path, time):
    stats = f'{{"best_kernel": "triton_mm_17", "best_time": {time}}}'
    event = {"name": "mm_template_autotuning", "ph": "E", "ts": 1.7e15}
    event |= {"args": {"autotune_choices_stats": stats}}
    tables, _ = read(tmp_path, record("chromium_event", {}, payload=json.dumps(event), **at(0)))
    assert [row["time_ms"] for row in tables["autotune_choices"].to_dicts()] == [None]


def test_unknown_records_are_counted_and_keep_their_names(tmp_path):
    log = record("brand_new", {"a": 1}, payload="text") + artifact("novelty", "{}", "json", **at(0))
    tables, damage = read(tmp_path, log)
    rows = tables["log_records"].select("key", "name", "known", "payload_bytes").rows()
    assert rows == [("brand_new", None, False, 4), ("artifact", "novelty", False, 2)]
    assert kinds_of(damage) == {}


def test_a_pass_without_structured_logs_gives_no_tables(tmp_path):
    run = Run.create(tmp_path / "run", Manifest())
    assert read_pass(run, PassRecord("cold", "raw/cold"), Damage()) == {}


def test_a_pass_reads_all_its_files(tmp_path):
    run = Run.create(tmp_path / "run", Manifest())
    folder = run.folder / "raw" / "cold" / "structured"
    folder.mkdir(parents=True)
    start = {"stack": []}
    (folder / "dedicated_log_torch_trace_rank_0_a.log").write_bytes(
        record("dynamo_start", start, **at(0))
    )
    (folder / "dedicated_log_torch_trace_rank_1_b.log").write_bytes(
        record("dynamo_start", start, prefix="V0101 00:00:00.000000 9 x.py:1] ", **at(0))
    )
    frames = read_pass(run, PassRecord("cold", "raw/cold"), Damage())
    assert frames["compiles"]["rank"].to_list() == [0, 1]
    assert frames["compiles"]["raw_file"][1].startswith("raw/cold/structured/")
    assert frames["compiles"]["pass"].to_list() == ["cold", "cold"]


def test_what_writing_the_log_took_is_parted_where_torch_adds_it_up(tmp_path):
    taken = "structured_logging_overhead_us"
    log = record("compilation_metrics", {"duration_us": 900, taken: 10}, **at(1))
    log += record("bwd_compilation_metrics", {"duration_us": 500, taken: 16}, **at(1))
    log += record("compilation_metrics", {"duration_us": 700}, **at(2))
    tables, _ = read(tmp_path, log)
    assert tables["compiles"]["logging_us"].to_list() == [10.0, 6.0, None]


@pytest.mark.parametrize("choice", ["decompose_k_mm_3", "ck_gemm_1", "cutlass_gemm_2"])
def test_a_choice_has_the_backend_that_the_text_log_gives_it(tmp_path, choice):
    stats = json.dumps({"best_kernel": choice, "best_time": 0.03})
    event = {"name": "mm_template_autotuning", "ts": 1.0, "ph": "E",
             "args": {"autotune_choices_stats": stats}}  # fmt: skip
    tables, _ = read(tmp_path, record("chromium_event", {}, payload=json.dumps(event), **at(0)))
    assert tables["autotune_choices"]["backend"].to_list() == ["other"]


def test_a_runnable_script_keeps_no_values_of_variables(tmp_path):
    text = "import os\nos.environ['TORCH_TOKEN'] = 'it\"s'\nos.environ.pop('X', None)\nx = 'a'\n"
    tables, _ = read(tmp_path, artifact("fx_graph_runnable", text, **at(0)))
    assert tables["graphs"]["text"].to_list() == [
        "import os\nos.environ['TORCH_TOKEN'] = '…'\nos.environ.pop('X', None)\nx = 'a'\n"
    ]
