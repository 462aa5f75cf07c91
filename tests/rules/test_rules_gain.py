"""Rules about whether there is anything to gain, on hand-made rows."""

import json

import pytest

from traceview.rules import catalogue, run_rules
from traceview.rules._gain import waiting

RULES = {rule.name: rule for rule in catalogue()}
FILE = "/u/train.py"
REGION = {
    "pid": 1, "region_id": 0, "kind": "module", "name": "Net", "call_file": FILE, "call_line": 20,
    "call_function": "main", "target_file": "/u/net.py", "target_line": 3, "calls": 500,
    "first_call_stack": json.dumps([{"file": FILE, "line": 31, "function": "main"}]),
}  # fmt: skip


def found(rule, tables, **settings):
    findings = list(RULES[rule].check(tables, **settings))
    assert all(finding.rule == rule for finding in findings)
    return findings


def speedup(eager=4.0, compiled=2.0, **more):
    row = {
        "eager_ms": eager, "compiled_ms": compiled, "speedup": eager / compiled, "pairs_used": 12,
        "outcome": "helped" if eager > compiled else "hurt",
    }  # fmt: skip
    return [{**row, **more}]


# -- bm-noise ---------------------------------------------------------------------------------


def noisy(low, high, **more):
    return speedup(1.0, 1.0, speedup_low=low, speedup_high=high, outcome="neutral", **more)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.99, 1.02, None), (0.9, 1.2, "whether"), (1.2, 1.5, None), (1.2, 1.9, "size")],
)
def test_a_wide_interval_is_said(make, low, high, said):
    findings = found("bm-noise", make(speedups=noisy(low, high)))
    assert [finding.severity for finding in findings] == (["info"] if said else [])
    if said:
        assert said in findings[0].title


def test_without_an_interval_nothing_is_said(make):
    assert found("bm-noise", make(speedups=speedup())) == []


def test_more_threads_than_processors_are_named_with_their_remedy(make):
    run = {"pid": 1, "device_name": "cpu", "cpu_threads": 8, "cpu_count": 2}
    (finding,) = found("bm-noise", make(speedups=noisy(0.8, 1.3), runs=[run]))
    assert "8 threads on 2 CPUs" in [evidence.text for evidence in finding.evidence]
    assert "OMP_NUM_THREADS=2" in finding.what_to_do


def test_a_thread_without_a_processor_is_the_machines_fault(make):
    block = {"pair_index": 0, "stance": "eager", "host_ms": 100.0, "queued_ms": 40.0}
    pairs = [{"used": True, "eager_ms": ms, "compiled_ms": ms} for ms in (1.0, 2.0, 3.0, 4.0, 5.0)]
    tables = make(speedups=noisy(0.8, 1.3), blocks=[block], block_pairs=pairs)
    (finding,) = found("bm-noise", tables)
    assert "40 %" in finding.evidence[1].text
    assert "Other work" in finding.what_to_do
    assert "inputs of one size" not in finding.what_to_do


def test_blocks_that_differ_on_a_quiet_machine_are_the_scripts(make):
    block = {"pair_index": 0, "stance": "eager", "host_ms": 100.0, "queued_ms": 1.0}
    pairs = [{"used": True, "eager_ms": ms, "compiled_ms": 1.0} for ms in (1.0, 2.0, 3.0, 4.0, 5.0)]
    tables = make(speedups=noisy(0.8, 1.3), blocks=[block], block_pairs=pairs)
    (finding,) = found("bm-noise", tables)
    assert "inputs of one size" in finding.what_to_do
    assert "compiled: middle" not in finding.evidence[1].text


@pytest.mark.parametrize(("without", "why"), [(0.05, "garbage"), (0.9, "inputs of one size")])
def test_blocks_that_differ_by_their_collections_are_explained_by_them(make, without, why):
    row = {"stance": "eager", "blocks": 10, "with": 5, "ms": 1.5, "step_ms": 2.5}
    pairs = [{"used": True, "eager_ms": ms, "compiled_ms": 1.0} for ms in (1.0, 2.0, 3.0, 4.0, 5.0)]
    rows = [{**row, "spread": 1.2, "spread_without": without}]
    tables = make(speedups=noisy(0.8, 1.3), block_pairs=pairs, block_collections=rows)
    (finding,) = found("bm-noise", tables)
    assert why in finding.what_to_do
    assert ("in 5 of 10 blocks" in finding.evidence[1].text) == (why == "garbage")


def test_how_many_pairs_would_do_is_said_where_that_is_few_enough(make):
    (finding,) = found("bm-noise", make(speedups=noisy(0.95, 1.06)))
    assert finding.snippet.text == "traceview diagnose --blocks 43 SCRIPT"
    (finding,) = found("bm-noise", make(speedups=noisy(0.5, 2.0)))
    assert finding.snippet is None
    assert finding.what_to_do.startswith("Measure again")


def test_how_sure_a_tiny_speedup_is(make):
    (finding,) = found("bm-noise", make(speedups=noisy(0.0014, 0.006)))
    assert finding.title == "Too noisy to be sure of the speedup's size: 0.00140× to 0.00600×"


def test_where_nothing_was_compiled_there_is_no_speedup_to_be_sure_of(make):
    rows = [{**row, "outcome": "not_compiled"} for row in noisy(0.8, 1.3)]
    assert not found("bm-noise", make(speedups=rows))


# -- ap-not-in-model --------------------------------------------------------------------------


def step(*accounts, details=(), ops=(), share=0.1, **tables):
    at = {"stance": "compiled", "clock": "host"}
    rest = ("gemm", 4.0 - sum(ms for _, ms in accounts))
    return {
        "speedups": speedup(4.5, 4.0),
        "step_counts": [{"stance": "compiled", "step_ms": 4.0, "steps": 10}],
        "accounting": [{**at, "category": name, "ms": ms} for name, ms in (*accounts, rest)],
        "account_details": [{**at, **detail} for detail in details],
        "region_costs": [{"pid": 1, "region_id": 0, "share": share}],
        "line_ops": [{"stance": "compiled", "tid": "1", **op} for op in ops],
        **tables,
    }  # fmt: skip


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
LOADING = {"category": "data_loading", "what": LOADER, "ms": 3.0, "count": 1.0}
FETCHING = (
    {"op_id": 3, "name": "train.py:40", "kind": "line", "start_ns": 0, "duration_ns": 2_500,
     "self_ns": 10, "file": FILE, "line": 40},
    {"op_id": 0, "name": LOADER, "kind": "user_annotation", "start_ns": 5, "duration_ns": 3_000,
     "self_ns": 1_000},
    {"op_id": 1, "name": "data.py:9", "kind": "line", "start_ns": 10, "duration_ns": 2_000,
     "self_ns": 2_000, "file": "/u/data.py", "line": 9},
    {"op_id": 2, "name": "train.py:41", "kind": "line", "start_ns": 5_000, "duration_ns": 9_000,
     "self_ns": 9_000, "file": FILE, "line": 41},
)  # fmt: skip


def test_loading_is_found_at_the_loop_and_inside_the_data_set(make):
    tables = make(**step(("data_loading", 3.0), details=[LOADING], ops=FETCHING))
    (finding,) = found("ap-not-in-model", tables)
    assert finding.severity == "warning"
    assert (finding.location.file, finding.location.line) == (FILE, 40)
    assert [(place.file, place.line) for place in finding.also_at] == [("/u/data.py", 9)]
    assert "1.50× as fast" in finding.explanation
    assert "num_workers=3" in finding.what_to_do
    assert finding.cost.ms_per_step == 3.0


WORKERS = {**LOADING, "what": LOADER.replace("SingleProcess", "MultiProcessing")}


def test_workers_that_do_not_keep_up_are_told_apart(make):
    (finding,) = found(
        "ap-not-in-model", make(**step(("data_loading", 3.0), details=[WORKERS], ops=FETCHING))
    )
    assert "do not keep up" in finding.what_to_do


def starts(*, loaders=1, every=4, starts=5):
    """A loader's two workers start for 6 ms, and give a batch after 4 ms; there is one more start
    than there are restarts.
    """
    at = {"pid": 1, "workers": 2, "persistent": False, "file": FILE, "line": 39}
    times = {"start_ms": 4.0, "stop_ms": 2.0, "first_ms": 4.0}
    return [
        {**at, **times, "step": every * number, "loader": number % loaders}
        for number in range(starts + 1)
    ]


def test_workers_that_start_again_and_again_come_before_what_they_load(make):
    rows = step(("data_loading", 3.0), details=[WORKERS], ops=FETCHING)
    made = {"kind": "loader", "name": "DataLoader(…)", "file": FILE, "line": 12}
    tables = make(**rows, loader_starts=starts(), noted_lines=[made])
    (restarts,) = tables["loader_restarts"].to_dicts()
    assert (restarts["starts"], restarts["every"], restarts["ms"]) == (5, 4.0, 2.5)
    (finding,) = found("ap-not-in-model", tables)
    assert "starting 2 workers of a DataLoader again every 4 steps (train.py:39)" in finding.title
    assert "persistent_workers=True" in finding.what_to_do
    assert "keep up" not in finding.what_to_do  # 0.5 ms of 3 are left
    assert finding.also_at[0].line == 12
    assert finding.cost.ms_per_step == 3.0


@pytest.mark.parametrize(
    ("some", "words"),
    [
        (starts(loaders=6), "make it once"),
        (starts(every=40), "keep up"),
        (starts(starts=2), "keep up"),
        ([{**row, "persistent": True} for row in starts()], "keep up"),
    ],
)
def test_what_starting_workers_has_to_do_with_it(make, some, words):
    rows = step(("data_loading", 3.0), details=[WORKERS], ops=FETCHING)
    (finding,) = found("ap-not-in-model", make(**rows, loader_starts=some))
    assert words in finding.what_to_do


def python(ms, count=1.0, what="Python", line=50):
    return {
        "category": "python",
        "what": what,
        "file": FILE,
        "line": line,
        "ms": ms,
        "count": count,
    }


def threads(thread_ms, queued_ms=0.0):
    row = {"pid": 1, "stance": "compiled", "pair_index": 0, "host_ms": 100.0}
    return [{**row, "thread_ms": thread_ms, "queued_ms": queued_ms}]


@pytest.mark.parametrize(
    ("blocks", "severity", "words"),
    [
        ([], "info", "Python of the script's own"),
        (threads(99.0), "warning", "Python of the script's own"),
        (threads(20.0), "info", "waiting"),
        (threads(20.0, 79.0), "info", "Python of the script's own"),
    ],
)
def test_python_is_a_warning_where_the_host_is_known_to_work(make, blocks, severity, words):
    tables = make(**step(("python", 3.0), details=[python(3.0)], blocks=blocks))
    (finding,) = found("ap-not-in-model", tables)
    assert (finding.severity, finding.location.line) == (severity, 50)
    assert words in finding.title


def test_on_a_busy_machine_python_must_fill_the_step(make):
    rows = step(("python", 3.6), details=[python(3.6)], blocks=threads(20.0, 79.0))
    assert [finding.severity for finding in found("ap-not-in-model", make(**rows))] == ["warning"]


@pytest.mark.parametrize(("line", "ms"), [(31, 1.5), (50, 2.4)])
def test_at_the_compiled_call_a_thread_that_stands_still_is_no_python(make, line, ms):
    """Profiled steps of 6.25 ms with 2.5 ms of work in them; timed ones take 4 ms."""
    rows = step(("python", 3.75), details=[python(3.75, line=line)], blocks=threads(99.0))
    rows["accounting"][-1]["ms"] = 2.5
    (finding,) = found("ap-not-in-model", make(**rows, regions=[REGION]))
    assert finding.cost.ms_per_step == pytest.approx(ms)


@pytest.mark.parametrize(
    "detail",
    [
        python(3.0, count=1000.0),
        python(3.0, what="Optimizer.step#AdamW.step"),
        python(1.0),
        {**python(3.0), "category": "optimizer_python"},
    ],
)
def test_what_is_no_work_of_the_scripts_own_is_passed_over(make, detail):
    tables = make(**step(("python", 3.0), details=[detail], blocks=threads(99.0)))
    assert found("ap-not-in-model", tables) == []


def test_python_is_said_next_to_compiled_code_that_is_the_larger_part(make):
    tables = step(("python", 1.6), details=[python(1.6)], blocks=threads(99.0), share=0.6)
    (finding,) = found("ap-not-in-model", make(**tables))
    assert (finding.severity, finding.cost.ms_per_step) == ("info", pytest.approx(1.6))


def test_a_step_of_which_compiled_code_leaves_little_is_in_the_model(make):
    tables = step(("python", 1.6), details=[python(1.6)], blocks=threads(99.0), share=0.75)
    assert found("ap-not-in-model", make(**tables)) == []
    backward = {"stance": "compiled", "name": "CompiledFunctionBackward", "step": 1}
    tables = step(("python", 1.6), details=[python(1.6)], share=0.2)
    assert len(found("ap-not-in-model", make(**tables))) == 1
    tables["cpu_ops"] = [{**backward, "duration_ns": 22_000_000}]
    assert found("ap-not-in-model", make(**tables)) == [], "its backward is 2.2 ms of 4 ms"


def test_tiny_steps_are_no_work_outside(make):
    tables = step(("python", 0.09), details=[python(0.09)], blocks=threads(99.0))
    tables["speedups"] = speedup(0.12, 0.1)
    assert found("ap-not-in-model", make(**tables)) == []


def eager_operators(ms, share, *, in_graph=False, mark_ns=0, kind="busy"):
    category, what = {"busy": ("elementwise", "aten::sqrt"), "other": ("other", "aten::eigh")}[kind]
    detail = {**python(ms), "category": category, "what": what, "in_graph": in_graph}
    tables = step((category, ms), details=[detail], share=share)
    tables["accounting"][0]["kind"] = kind
    mark = {"stance": "compiled", "name": "Optimizer.step#AdamW.step", "step": 1}
    return {**tables, "cpu_ops": [{**mark, "duration_ns": mark_ns}]}


def of_optimizer(lists, tensors):
    """A step of AdamW in eager, with its operators' calls, each on so many tensors."""
    tables = eager_operators(2.4, 0.1, mark_ns=24_000_000)
    at = {"stance": "compiled", "tid": "1", "step": 1}
    mark = {"name": "Optimizer.step#AdamW.step", "op_id": 1, "start_ns": 50, "self_ns": 0}
    shapes = json.dumps([[[8]] * tensors, []])
    calls = [
        {"name": name, "op_id": 2 + number, "start_ns": 50 + number, "input_dims": shapes}
        for number in range(2 * lists)
        for name in ("aten::_foreach_sqrt" if number % 2 else "aten::_foreach_mul_",)
    ]
    step_mark = {"duration_ns": 24_000_000, "kind": "user_annotation"}
    tables["cpu_ops"] = [{**at, **mark, **step_mark}]
    tables["cpu_ops"] += [{**at, "duration_ns": 1, **each} for each in calls]
    inside = {"op_id": 2, "name": "aten::sqrt", "start_ns": 60, "duration_ns": 5}
    tables["line_ops"] = [
        {"stance": "compiled", "tid": "1", **mark, **step_mark, "file": FILE, "line": 50},
        {"stance": "compiled", "tid": "1", "kind": "cpu_op", "file": FILE, "line": 50, **inside},
    ]
    return tables


@pytest.mark.parametrize(
    ("lists", "tensors", "cut"), [(30, 1, True), (4, 1, False), (30, 3, False)]
)
def test_an_optimizer_with_a_group_per_parameter_is_told_from_others(make, lists, tensors, cut):
    tables = make(**of_optimizer(lists, tensors))
    (row,) = [each for each in tables["outside_work"].to_dicts() if each["what"] == "AdamW"]
    assert (row["lists"], row["list_tensors"]) == (lists, tensors)
    (finding,) = found("ap-not-in-model", tables)
    assert ("AdamW.step(), in eager, on 30 lists of one tensor" in finding.title) == cut
    assert ("in one group" in finding.what_to_do) == cut
    assert ("fused=True, where" in finding.what_to_do) != cut


def test_where_nothing_is_compiled_operators_are_not_outside_of_it(make):
    tables = eager_operators(2.4, 0.1)
    assert len(found("ap-not-in-model", make(**tables))) == 1
    tables["speedups"] = speedup(4.0, 4.0, outcome="not_compiled")
    assert found("ap-not-in-model", make(**tables)) == []


def test_calls_that_may_not_compile_are_reported_for_themselves(make):
    served = {"region_id": 0, "user_stance": "eager_on_recompile", "after_modes": False}
    tables = eager_operators(2.4, 0.1)
    tables["served_calls"] = [{**served, "calls": 9, "eager_calls": 5}]
    assert found("ap-not-in-model", make(**tables)) == []
    tables["served_calls"] = [{**served, "calls": 9, "eager_calls": 4}]
    assert len(found("ap-not-in-model", make(**tables))) == 1


@pytest.mark.parametrize("kind", ["busy", "other"])
def test_eager_operators_that_take_much_of_a_step_are_information(make, kind):
    (finding,) = found("ap-not-in-model", make(**eager_operators(2.4, 0.3, kind=kind)))
    assert (finding.severity, finding.weighs) == ("info", True)
    assert finding.location.line == 50
    assert finding.title.startswith("60 % of a compiled step is operators outside of compiled code")
    (finding,) = found("ap-not-in-model", make(**eager_operators(2.4, 0.3, mark_ns=25_000_000)))
    assert finding.title.startswith("60 % of a compiled step is AdamW.step(), in eager")
    assert "fused=True" in finding.what_to_do


@pytest.mark.parametrize(("ms", "again"), [(1.8, True), (0.3, False)])
def test_a_sparse_tensor_that_is_coalesced_again_is_most_of_it_or_not_said(make, ms, again):
    coalesces = [{"file": FILE, "line": 7, "per_step": 1.0, "ms": ms}]
    (finding,) = found(
        "ap-not-in-model", make(**eager_operators(2.4, 0.3), sparse_coalesces=coalesces)
    )
    assert (".coalesce() once" in finding.what_to_do) == again
    assert ("is compiled" in finding.what_to_do) == (not again)
    assert finding.severity == ("warning" if again else "info")


@pytest.mark.parametrize(
    ("ms", "line"),
    [
        ((0.8, 0.8, 0.8), 30),  # the call of the helper that all of them are in
        ((0.2, 1.6, 0.6), 8),
        ((0.4, 0.6, 1.4), 20),  # not in the helper
    ],
)
def test_where_no_line_has_half_the_line_that_calls_them_is_named(make, ms, line):
    tables = {**eager_operators(2.4, 0.3), "account_details": []}
    lines = sorted(
        zip((7, 8, 20), ms, ([30, 40], [30, 40], [40]), strict=True), key=lambda row: -row[1]
    )
    tables["outside_work"] = [
        {"kind": "operators", "file": FILE, "line": at, "ms": each,
         "share": each / 2.4 * 0.6, "callers": [f"{FILE}:{caller}" for caller in callers]}
        for at, each, callers in lines
    ]  # fmt: skip
    (finding,) = found("ap-not-in-model", make(**tables))
    assert finding.location.line == line


@pytest.mark.parametrize(
    "tables",
    [
        eager_operators(2.4, 0.3, in_graph=True),
        eager_operators(1.0, 0.3),
        eager_operators(2.4, 0.6),
        eager_operators(2.4, None),
    ],
)
def test_eager_operators_are_not_said_where_they_are_few_or_the_compiled_code_s(make, tables):
    assert found("ap-not-in-model", make(**tables)) == []


@pytest.mark.parametrize(
    "cause",
    [
        {"compiles": [{"outcome": "limit", "co_filename": "/u/a.py", "co_firstlineno": 3}]},
        {"compiles": [{"outcome": "skipped", "co_filename": FILE, "co_firstlineno": 3}]},
    ],
)
def test_operators_that_something_left_in_eager_are_its_own_rules(make, cause):
    tables = {**eager_operators(2.4, 0.3), **cause}
    assert found("ap-not-in-model", make(**tables)) == []
    optimizer = {**eager_operators(2.4, 0.3, mark_ns=25_000_000), **cause}
    assert len(found("ap-not-in-model", make(**optimizer))) == 1


@pytest.mark.parametrize(
    ("shares", "calls", "said"),
    [((0.5, 0.1), 100, 0), ((0.2, 0.4), 100, 1), ((0.5, 0.1), 10, 1)],
)
def test_operators_of_a_copy_that_is_not_compiled_are_the_copys(make, shares, calls, said):
    """The copy is called at line 80; its forward, lines 34 to 36, calls a helper at line 20."""
    region = {**REGION, "target_file": FILE, "target_line": 34, "target_last_line": 36}
    copy = {"region_id": region["region_id"], "copies": 1, "calls": calls}
    copy |= {"region_calls_before": 0, "region_calls_after": 100}
    work = ((20, [f"{FILE}:35", f"{FILE}:80"]), (90, []))
    tables = {**eager_operators(2.4, 0.3), "account_details": [], "regions": [region]}
    tables["module_copies"] = [copy]
    tables["outside_work"] = [
        {"kind": "operators", "file": FILE, "line": line, "ms": 4 * share, "share": share,
         "callers": callers}
        for (line, callers), share in zip(work, shares, strict=True)
    ]  # fmt: skip
    assert len(found("ap-not-in-model", make(**tables))) == said


def test_copies_from_pageable_memory_are_named_with_the_copy_itself(make):
    at = {"file": FILE, "line": 60, "count": 1.0}
    details = [
        {**at, "category": "idle_copy_wait", "what": "cudaMemcpyAsync", "ms": 0.2},
        {**at, "category": "copy", "what": "copy to the device", "ms": 2.8},
        {**at, "category": "copy", "what": "copy on the device", "ms": 9.0},
    ]
    (finding,) = found("ap-not-in-model", make(**step(details=details)))
    assert finding.cost.ms_per_step == pytest.approx(3.0)
    assert "pin_memory=True" in finding.what_to_do


TRACED = f"""class GraphModule(torch.nn.Module):
    def forward(self, L_self_site_map: "f32[8, 4][4, 1]cpu", L_x_: "f32[8, 4][4, 1]cuda:0"):
        l_self_site_map = L_self_site_map
        l_x_ = L_x_

        # File: {FILE}:60 in forward, code: site = self.site_map.to(x.device)
        site: "f32[8, 4][4, 1]cuda:0" = l_self_site_map.to(device(type='cuda', index=0))
        y: "f32[8, 4][4, 1]cuda:0" = l_x_ - site
        return (y,)
"""


@pytest.mark.parametrize(
    ("source", "remedy"),
    [("L['self'].site_map", "copies self.site_map"), ("L['site_map']", "copies self_site_map")],
)
def test_copies_in_compiled_code_name_what_it_gets_on_the_host(make, source, remedy):
    copy = {"file": FILE, "line": 60, "count": 1.0, "in_graph": True}
    details = [
        {**copy, "category": "idle_copy_wait", "what": "cudaMemcpyAsync", "ms": 0.2},
        {**copy, "category": "copy", "what": "copy to the device", "ms": 2.8},
    ]
    tables = step(details=details, share=0.98)
    guards = [{"compile_key": "k", "source_name": source}]
    graphs = [{"kind": "dynamo_output", "compile_key": "k", "text": TRACED}]
    (finding,) = found("ap-not-in-model", make(**tables, guards=guards, graphs=graphs))
    assert (finding.location.line, finding.severity) == (60, "warning")
    assert remedy in finding.what_to_do
    assert ("register_buffer" in finding.what_to_do) == source.startswith("L['self']")


def test_python_beside_compiled_code_that_leaves_it_no_time_is_passed_over(make):
    at = {"file": FILE, "line": 60, "count": 1.0}
    details = [
        {**at, "category": "python", "what": "Python", "ms": 2.8},
        {**at, "category": "idle_copy_wait", "what": "cudaMemcpyAsync", "ms": 0.2},
    ]
    assert found("ap-not-in-model", make(**step(details=details, share=0.98))) == []


def test_on_a_busy_machine_the_profiled_parts_count_not_their_milliseconds(make):
    rows = step(("data_loading", 3.0), details=[LOADING], ops=FETCHING)
    rows["speedups"] = speedup(2.5, 2.0)
    (finding,) = found("ap-not-in-model", make(**rows))
    assert finding.cost.ms_per_step == pytest.approx(1.5)
    assert finding.title.startswith("75 %")


def test_settings_move_the_thresholds(make):
    tables = make(**step(("data_loading", 3.0), details=[LOADING], ops=FETCHING))
    assert found("ap-not-in-model", tables, least_share=0.8) == []
    assert found("ap-not-in-model", tables, warn_share=0.8)[0].severity == "info"


# -- ap-grad-inference ------------------------------------------------------------------------

JOINT = """\
def forward(self, primals_1: "f32[1024, 1024]cpu", tangents_1: "f32[1024, 1024]cpu"):
    tanh: "f32[1024, 1024]cpu" = torch.ops.aten.tanh.default(primals_1)
    mul: "f32[1024, 1024]cpu" = torch.ops.aten.mul.Tensor(tanh, tangents_1)
    return pytree.tree_unflatten([tanh, mul], self._out_spec)
"""
FORWARD = """\
def forward(self, primals_1: "f32[1024, 1024]cpu"):
    sin: "f32[1024, 1024]cpu" = torch.ops.aten.sin.default(primals_1)
    tanh: "f32[1024, 1024]cpu" = torch.ops.aten.tanh.default(sin)
    return (tanh, primals_1, sin)
"""


def inference(**changed):
    graph = {"compile_id": "0/0", "compile_key": "k"}
    call = {"stance": "compiled", "step": 1, "name": "CompiledFunction", "self_ns": 1_000_000}
    rows = {
        "runs": [{"pid": 1, "step_kind": "call"}],
        "graphs": [
            {**graph, "kind": "aot_joint", "text": JOINT},
            {**graph, "kind": "aot_forward", "text": FORWARD},
        ],
        "cpu_ops": [call],
        "backward_calls": [],
        "regions": [REGION],
        "step_counts": [{"stance": "compiled", "steps": 10, "step_ms": 4.0}],
        "ceilings": [{"pid": 1, "kind": "copy", "value": 10.0}],
        "speedups": speedup(6.0, 4.0),
    }
    return {**rows, **changed}


def test_inference_with_gradients_is_found_where_it_is_called(make):
    (finding,) = found("ap-grad-inference", make(**inference()))
    assert (finding.location.line, finding.about) == (31, {"/u/net.py:3"})
    assert finding.cost.ms_per_step == pytest.approx(0.1 + 2**22 / 10e6)
    assert "1 tensor of 4.00 MiB" in " ".join(evidence.text for evidence in finding.evidence)
    assert (finding.severity, finding.confidence) == ("warning", "derived")


def test_a_small_cost_is_information(make):
    tables = make(**inference(speedups=speedup(60.0, 40.0)))
    assert found("ap-grad-inference", tables)[0].severity == "info"


@pytest.mark.parametrize(("others", "more_ms"), [([], 25.0), (["rerecord"], 0.0), (["tree"], 0.0)])
def test_cudagraphs_recorded_again_for_no_other_reason_are_added(make, others, more_ms):
    ms = found("ap-grad-inference", make(**inference()))[0].cost.ms_per_step
    account = {"stance": "compiled", "clock": "device", "kind": "idle", "ms": 25.0}
    rows = inference(
        accounting=[{**account, "category": "idle_cudagraph_recording"}],
        cudagraph_events=[{"event": each} for each in ["tree", "record", "record", *others]],
    )
    (finding,) = found("ap-grad-inference", make(**rows))
    assert finding.cost.ms_per_step == pytest.approx(ms + more_ms)
    assert finding.due_ms == more_ms
    assert ("not replayed" in finding.explanation) == bool(more_ms)


@pytest.mark.parametrize(
    "changed",
    [
        {"runs": [{"pid": 1, "step_kind": "optimizer"}]},
        {"graphs": [{"compile_id": "0/0", "kind": "aot_inference", "text": FORWARD}]},
        {"backward_calls": [{"file": FILE, "line": 9, "call": "backward"}]},
        {"compile_intervals": [{"pid": 1, "trigger": "lazy_backward"}]},
        {"cpu_ops": []},
    ],
)
def test_training_that_was_stopped_early_is_not_accused(make, changed):
    assert found("ap-grad-inference", make(**inference(**changed))) == []


def test_a_backward_in_any_window_clears_it(make):
    engine = {"stance": "eager", "step": 0, "name": "autograd::engine::evaluate_function: Mul"}
    rows = inference()
    rows["cpu_ops"] = [*rows["cpu_ops"], engine]
    assert found("ap-grad-inference", make(**rows)) == []


def test_without_the_scripts_source_nothing_is_said(make):
    rows = inference()
    del rows["backward_calls"]
    _, unchecked = run_rules(make(**rows), [RULES["ap-grad-inference"]])
    assert [entry.rule for entry in unchecked] == ["ap-grad-inference"]


# -- ind-extern-dominated ---------------------------------------------------------------------


def graph_of(*calls, ms=3.0, other=1.0, ops=("aten.sort",), **tables):
    """A step on a device: ``ms`` in fallbacks, ``other`` in generated kernels."""
    kernel = {"stance": "compiled", "compile_id": "0/0", "file": "/u/net.py", "line": 12,
              "clock": "device", "ops": list(ops)}  # fmt: skip
    busy = {"stance": "compiled", "clock": "device", "kind": "busy", "category": "reduction"}
    return {
        "kernel_calls": [{"category": "fallback", "kernel_name": name} for name in calls],
        "matched_kernels": [
            {**kernel, "name": "aten::x", "category": "other", "ms": ms},
            {**kernel, "name": "triton_0", "category": "generated_pointwise", "ms": other},
        ],
        "accounting": [{**busy, "profiled_ms": ms + other}],
        "graphs": [],
        **tables,
    }


CODE = "## Call CompiledFxGraph fabc ##"


def on_host(*calls):
    """Two steps of 4 ms: generated code calls ``calls`` (operator, ms), one more runs outside."""
    at = {"stance": "compiled", "kind": "cpu_op", "depth": 1}
    ops = [
        {**at, "op_id": 0, "name": CODE, "step": 0, "duration_ns": 8_000_000},
        {**at, "op_id": 1, "name": "aten::sort", "step": 1, "duration_ns": 99_000_000},
    ]
    ops += [
        {**at, "op_id": number, "parent_id": 0, "name": name, "step": 0,
         "duration_ns": int(2e6 * ms)}
        for number, (name, ms) in enumerate(calls, 2)
    ]  # fmt: skip
    account = {"stance": "compiled", "clock": "host"}
    line = {"category": "fallback", "user_lines": ["/u/net.py:12"]}
    return {
        "kernel_calls": [
            {**line, "kernel_name": "torch.ops.aten.sort.stable"},
            {**line, "kernel_name": "torch.ops.aten.unsqueeze.default", "user_lines": []},
        ],
        "matched_kernels": [{**account, "name": "cpp_fused", "ms": 0.5}],
        "cpu_ops": ops,
        "accounting": [
            {**account, "kind": "busy", "category": "generated_pointwise", "profiled_ms": 1.0},
            {**account, "kind": "other", "category": "other", "profiled_ms": 3.0},
            {**account, "kind": "other", "category": "python", "profiled_ms": 90.0},
        ],
        "graphs": [],
    }


def test_on_a_host_an_operator_counts_with_what_it_calls_itself(make):
    tables = make(**on_host(("aten::sort", 3.0), ("aten::unsqueeze", 0.01), ("aten::mm", 1.0)))
    (finding,) = found("ind-extern-dominated", tables)
    assert finding.title.startswith("75 % of the busy time is aten.sort, as")
    assert (finding.location.file, finding.location.line) == ("/u/net.py", 12)
    assert len(finding.evidence) == 1
    assert found("ind-extern-dominated", make(**on_host(("aten::sort", 1.0)))) == []


@pytest.mark.parametrize(("kind", "found_too"), [("sync", True), ("other", False)])
def test_what_waits_inside_an_operator_is_that_operators(make, kind, found_too):
    graph, at = {"graph_key": "fabc", "tid": "7"}, {"stance": "compiled", "tid": "7"}
    ops = [
        {**at, "kind": "cpu_op", "step": step, "op_id": 10 * step + number, "name": name,
         "parent_id": None if number == 0 else 10 * step, "start_ns": start, "duration_ns": 500}
        for step in (0, 1)
        for number, (name, start) in enumerate([(CODE, 0), ("aten::sort", 100)])
    ]  # fmt: skip
    calls = [(kind, 150), ("launch", 160), ("launch", 590), ("launch", 700), ("launch", 800)]
    launched = [
        {**at, **graph, "step": step, "kind": kind_of, "start_ns": start, "correlation": start}
        for step in (0, 1) for kind_of, start in calls
    ]  # fmt: skip
    tables = graph_of("torch.ops.aten.sort.stable", cpu_ops=ops, kernel_launches=launched)
    one = waiting(make(**tables))
    assert [each.name for each in one] == (["aten::sort"] if found_too else [])
    for each in one:
        assert (each.ms, each.waits, each.launches, each.share) == (0.0005, 1.0, 2.0, 0.5)
    (finding,) = found("ind-extern-dominated", make(**tables))
    assert ("waits for the device" in finding.title) is found_too


@pytest.mark.parametrize(
    ("arguments", "severity"), [('["", "True"]', "warning"), ('["", "False"]', "info")]
)
def test_an_operator_that_is_asked_for_more_than_in_eager(make, arguments, severity):
    tables = on_host(("aten::sort", 3.0))
    for row in tables["cpu_ops"]:
        row |= {"input_dims": "[[9, 9], []]", "concrete_inputs": arguments}
    eager = {
        "stance": "eager",
        "kind": "cpu_op",
        "name": "aten::sort",
        "input_dims": "[[9, 9], []]",
    }
    eager |= {"concrete_inputs": '["", "False"]', "duration_ns": 1_000_000}
    tables["cpu_ops"] = tables["cpu_ops"][:1] + tables["cpu_ops"][2:]
    tables["cpu_ops"] += [{**eager, "op_id": 90 + n, "step": n} for n in (0, 1)]
    tables["speedups"] = speedup(3.0, 5.0)
    (finding,) = found("ind-extern-dominated", make(**tables))
    assert finding.severity == severity
    if severity == "warning":
        assert finding.cost.ms_per_step == pytest.approx(5.0)
        assert 'arguments ["", "True"], in eager ["", "False"]' in finding.evidence[0].text


def test_a_fallback_that_fills_the_step_is_information(make):
    tables = make(**graph_of("torch.ops.aten.sort.stable"))
    (finding,) = found("ind-extern-dominated", tables)
    assert (finding.severity, finding.location.line) == ("info", 12)
    assert finding.title.startswith("75 % of the busy time is aten.sort")
    assert (
        found("ind-extern-dominated", make(**graph_of("torch.ops.aten.sort.stable", ms=0.5))) == []
    )


@pytest.mark.parametrize(
    ("call", "op"),
    [
        ("torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default",
         "aten._scaled_dot_product_flash_attention_for_cpu"),
        ("torch.ops.mylib.fast_scan.default", "mylib.fast_scan"),
        ("torch.ops.aten.addbmm.default", "aten.addbmm"),
    ],
)  # fmt: skip
def test_library_calls_and_the_users_own_operators_are_meant_to_be_there(make, call, op):
    assert found("ind-extern-dominated", make(**graph_of(call, ops=[op]))) == []


OPAQUE = "torch.ops.rock.mobility.default"


def in_custom_operator(category="elementwise", **columns):
    """A custom operator called at line 12, with kernels of ``category`` inside."""
    rows = graph_of(OPAQUE, ops=["rock.mobility"], **columns)
    rows["kernel_calls"][0]["user_lines"] = ["/u/net.py:12"]
    rows["matched_kernels"][0] |= {"name": "vectorized", "category": category, "count": 49.0}
    lines = {"stance": "eager", "tid": "1", "start_ns": 0, "duration_ns": 10}
    rows["line_ops"] = [
        {**lines, "op_id": 1, "kind": "cpu_op", "name": "rock::mobility"},
        *(
            {**lines, "op_id": line, "parent_id": 1, "kind": "line", "name": f"net.py:{line}",
             "file": "/u/net.py", "line": line}
            for line in (5, 4)
        ),
    ]  # fmt: skip
    return rows


@pytest.mark.parametrize(("ms", "severity"), [(3.0, "warning"), (0.5, "info"), (0.2, None)])
def test_torchs_operators_inside_a_custom_operator_can_not_be_fused(make, ms, severity):
    findings = found("ind-extern-dominated", make(**in_custom_operator(ms=ms)))
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    for finding in findings:
        assert "custom operator rock::mobility" in finding.title
        assert finding.cost.ms_per_step == ms
        assert "49 operators" in finding.evidence[0].text
        assert [finding.location.line, *(at.line for at in finding.also_at)] == [12, 4]


def test_a_custom_operator_with_kernels_of_its_own_is_meant_to_be_there(make):
    assert found("ind-extern-dominated", make(**in_custom_operator("user_kernel"))) == []


def test_on_a_host_what_a_custom_operator_calls_is_inside_it(make):
    rows = on_host(("rock::mobility", 3.2), ("aten::mul", 0.2))
    at = {"stance": "compiled", "step": 0, "kind": "cpu_op", "category": "elementwise"}
    rows["kernel_calls"] = [
        {"category": "fallback", "kernel_name": OPAQUE, "user_lines": ["/u/net.py:12"]}
    ]
    for row in rows["cpu_ops"]:
        row |= {"graph_key": "fabc", "category": "elementwise"}
    inner = [(7, 2, "aten::exp", 4_000_000), (8, 7, "aten::exp", 3_000_000)]
    rows["cpu_ops"] += [
        {**at, "op_id": op, "parent_id": above, "name": name, "duration_ns": ns}
        for op, above, name, ns in inner
    ]
    (finding,) = found("ind-extern-dominated", make(**rows))
    assert (finding.cost.ms_per_step, finding.location.line) == (2.0, 12)


COMPLEX = (
    '    mul: "c64[8, 4]cpu" = torch.ops.aten.mul.Tensor(a, b)\n    return (mul,)\n'
)  # fmt: skip


@pytest.mark.parametrize(
    ("eager", "compiled", "severity", "cost"),
    [(4.0, 2.0, "info", None), (2.0, 3.0, "warning", 1.0)],
)
def test_complex_numbers_are_a_warning_where_compiling_hurts(make, eager, compiled, severity, cost):
    rows = graph_of("torch.ops.aten.mul.Tensor", ops=["aten.mul"])
    rows["graphs"] = [{"kind": "post_grad", "text": COMPLEX}]
    rows["regions"] = [{"pid": 1, "region_id": 0, "name": "Rotary", "calls": 9}]
    (finding,) = found("ind-extern-dominated", make(**rows, speedups=speedup(eager, compiled)))
    assert (finding.severity, finding.cost.ms_per_step) == (severity, cost)
    assert finding.remedy == (("eager=Rotary",) if cost else ())
    assert "complex" in finding.title
    assert "cos" in finding.snippet.text


SPLIT_STEP = """
    def forward(self, a: "c64[512, 512]cuda:0", x: "f32[512, 512]cuda:0"):
        mul: "c64[512, 512]cuda:0" = torch.ops.aten.mul.Tensor(x, 1j)
        exp: "c64[512, 512]cuda:0" = torch.ops.aten.exp.default(mul)
        mul_1: "c64[512, 512]cuda:0" = torch.ops.aten.mul.Tensor(a, exp)
        _fft_c2c: "c64[512, 512]cuda:0" = torch.ops.aten._fft_c2c.default(mul_1, [0, 1], 0, True)
        mul_2: "c64[512, 512]cuda:0" = torch.ops.aten.mul.Tensor(_fft_c2c, exp)
        abs_1: "f32[512, 512]cuda:0" = torch.ops.aten.abs.default(mul_2)
        add: "f32[512, 512]cuda:0" = torch.ops.aten.add.Tensor(abs_1, x)
        return (add,)
"""
#: MiB, of a c64 2 and of an f32 1: each operator alone; those before and those after the FFT.
ALONE, FUSED = 3 + 4 + 6 + 6 + 3, (1 + 2 + 2 + 2) + (2 + 2 + 1)


def split_step(*spent):
    """A step of 4 ms, 0.4 of it generated; ``spent``: operator, line, ms of a kernel."""
    names = dict.fromkeys(op for op, _, _ in spent)
    rows = graph_of(*(f"torch.ops.{op}.default" for op in names), ms=3.6, other=0.4)
    fallback, generated = rows["matched_kernels"]
    rows["matched_kernels"] = [generated] + [
        {**fallback, "ops": [op], "line": line, "ms": ms} for op, line, ms in spent
    ]
    rows["graphs"] = [{"kind": "post_grad", "text": SPLIT_STEP}]
    return rows | {"speedups": speedup(4.2, 4.0)}


def test_complex_arithmetic_next_to_an_fft_is_what_can_be_fused(make):
    arithmetic = [("aten.exp", 5, 0.8), ("aten.mul", 6, 1.0), ("aten.mul", 8, 0.6)]
    rows = split_step(("aten._fft_c2c", 7, 1.1), *arithmetic, ("aten.abs", 9, 0.1))
    (finding,) = found("ind-extern-dominated", make(**rows))
    assert finding.title.startswith(
        "62 % of the busy time is arithmetic on complex numbers (aten.m"
    )
    assert (finding.severity, finding.location.line) == ("warning", 6)
    assert finding.cost.ms_per_step == pytest.approx(2.5 * (1 - FUSED / ALONE))
    assert finding.due_ms == 0.0, "eager has the same kernels"
    assert finding.evidence[0].text.endswith("move 22.0 MiB, fused 12.0 MiB")
    assert [at.line for at in finding.also_at] == [5, 8, 7]
    assert "aten._fft_c2c stays as it is: 1.10 ms" in finding.what_to_do
    assert "view_as_complex" in finding.snippet.text


def test_an_fft_that_takes_longer_than_complex_arithmetic_comes_first(make):
    rows = split_step(("aten._fft_c2c", 7, 2.0), ("aten.exp", 5, 0.9), ("aten.mul", 6, 0.7))
    (finding,) = found("ind-extern-dominated", make(**rows))
    assert finding.title.startswith("90 % of the busy time is aten._fft_c2c and the like, as")
    assert (finding.severity, finding.location.line, finding.cost.ms_per_step) == ("info", 7, None)
    assert "But 1.60 ms of a step is arithmetic on complex numbers" in finding.what_to_do
    rows = split_step(("aten._fft_c2c", 7, 3.2), ("aten.exp", 5, 0.4))
    (finding,) = found("ind-extern-dominated", make(**rows))
    assert finding.what_to_do.endswith("expect no gain from compiling this part.")


def test_what_fused_complex_arithmetic_saves_is_not_known_with_symbolic_sizes(make):
    rows = split_step(("aten.exp", 5, 1.6), ("aten.mul", 6, 2.0))
    rows["graphs"][0]["text"] = SPLIT_STEP.replace("[512, 512]", "[s0, 512]")
    (finding,) = found("ind-extern-dominated", make(**rows))
    assert (finding.severity, finding.cost.ms_per_step) == ("info", None)
    assert "arithmetic on complex numbers" in finding.title


def test_an_fft_is_no_complex_arithmetic_of_the_users(make):
    rows = graph_of("torch.ops.aten._fft_r2c.default", ops=["aten._fft_r2c"])
    rows["graphs"] = [{"kind": "post_grad", "text": COMPLEX.replace("mul", "_fft_r2c")}]
    (finding,) = found("ind-extern-dominated", make(**rows, speedups=speedup(2.0, 3.0)))
    assert finding.severity == "info"
    assert finding.snippet is None


# -- cg-output-overwritten --------------------------------------------------------------------

STALE = (
    "Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run."
)


def ended(message, **more):
    run = {"pid": 1, "device_name": "NVIDIA H200", "error_type": "RuntimeError"}
    at = {"error_file": FILE, "error_line": 38, "error_function": "main"}
    return [{**run, "error_message": message, **at, **more}]


def test_the_reader_of_a_stale_result_is_named_and_its_maker_too(make):
    event = {"event": "overwritten", "reason": STALE, "user_file": "/u/net.py", "user_line": 18}
    tables = make(runs=ended(STALE), cudagraph_events=[event])
    (finding,) = found("cg-output-overwritten", tables)
    assert (finding.severity, finding.location.line) == ("error", 38)
    assert [place.line for place in finding.also_at] == [18]
    assert ".clone()" in finding.snippet.text


def test_a_script_that_caught_the_error_is_told_where_the_result_was_made(make):
    event = {"event": "overwritten", "reason": STALE, "user_file": "/u/net.py", "user_line": 18}
    (finding,) = found("cg-output-overwritten", make(runs=ended(None), cudagraph_events=[event]))
    assert finding.location.line == 18


def test_gradients_have_a_remedy_of_their_own(make):
    message = STALE.replace("tensor output", "gradient tensor output")
    (finding,) = found("cg-output-overwritten", make(runs=ended(message)))
    assert "zero_grad(set_to_none=True)" in finding.what_to_do
    assert finding.snippet is None


def test_other_errors_are_others_business(make):
    assert found("cg-output-overwritten", make(runs=ended("CUDA out of memory"))) == []
