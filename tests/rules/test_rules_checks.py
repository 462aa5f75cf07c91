"""Rules on hand-made rows: thresholds, severities, and what a CPU recording cannot show."""

import json
import re

import pytest
from msgspec.structs import replace

from traceview.rules import catalogue, registry, run_rules
from traceview.rules.finding import Cost

SCORED = dict(registry.OFF)
RULES = {rule.name: rule for rule in catalogue()}
MIB = 2**20
BREAK = {
    "compile_key": "cold:1:0:0/0", "compile_id": "0/0", "gb_id": "GB0124",
    "gb_type": "Unsupported Tensor.item() call with capture_scalar_outputs=False",
    "reason": "Unsupported Tensor.item()", "frame_skipped": False,
    "user_file": "/u/train.py", "user_line": 7, "user_function": "forward",
    "user_stack": '[{"file": "/u/train.py", "line": 7, "code": "p = x.item()"}]',
    "raw_file": "raw/cold/structured/a.log", "raw_line": 12,
}  # fmt: skip
REGION = {
    "pid": 1, "region_id": 0, "kind": "module", "name": "Net", "call_file": "/u/train.py",
    "call_line": 20, "call_function": "main", "backend": "inductor", "calls": 500,
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_scored(monkeypatch):
    """What trials said of a rule is no part of what it finds."""
    monkeypatch.setattr(registry, "OFF", {})


def speedup(eager, compiled, **more):
    outcome = "helped" if eager > compiled else "hurt"
    row = {"eager_ms": eager, "compiled_ms": compiled, "speedup": eager / compiled}
    return [{"outcome": outcome, **row, **more}]


def counts(**columns):
    return [{"stance": "compiled", **columns}]


def found(rule, tables):
    findings, unchecked = run_rules(tables, [RULES[rule]])
    assert unchecked == ()
    return findings


@pytest.mark.parametrize(
    ("gap", "compiled", "severity"),
    [(0.04, 2.0, "info"), (0.06, 2.0, "warning"), (0.04, 0.5, "warning")],
)
def test_a_break_is_a_warning_where_it_is_dear(make, gap, compiled, severity):
    tables = make(
        graph_breaks=[BREAK], speedups=speedup(4.0, compiled), step_counts=counts(gap_ms=gap)
    )
    (finding,) = found("gb-item", tables)
    assert finding.severity == severity
    assert finding.cost.ms_per_step == gap
    assert finding.confidence == "derived", "what fusion could save on top is not known"
    assert (finding.location.line, finding.evidence[0].raw_line) == (7, 12)


def test_a_break_of_unknown_cost_is_a_warning(make):
    (finding,) = found("gb-item", make(graph_breaks=[BREAK]))
    assert (finding.severity, finding.cost.ms_per_step) == ("warning", None)
    assert finding.snippet.text == "- p = x.item()\n+ p = x.detach()"


def test_a_list_is_not_captured_element_by_element(make):
    stack = BREAK["user_stack"].replace("x.item()", "x.tolist()")
    (finding,) = found("gb-item", make(graph_breaks=[{**BREAK, "user_stack": stack}]))
    assert "`.tolist()`" in finding.title
    assert finding.remedy == ()


def test_two_places_share_the_gap(make):
    other = {**BREAK, "user_line": 9, "user_stack": None}
    tables = make(graph_breaks=[BREAK, other], step_counts=counts(gap_ms=0.2))
    assert [f.cost.ms_per_step for f in found("gb-item", tables)] == [0.1, 0.1]


def profiled(*accounts, **columns):
    """A compiled step of 1 ms with one gap between two regions."""
    rows = [
        {"stance": "compiled", "clock": "host", "kind": kind, "category": category, "ms": ms}
        for kind, category, ms in accounts
    ]
    seen = {"gap_ms": 0.5, "gaps": 1.0, "compiled_regions": 2.0, **columns}
    return {"accounting": rows, "step_counts": counts(**seen), "speedups": speedup(2.0, 1.0)}


def test_a_break_costs_its_python_and_one_more_entry(make):
    rows = profiled(
        ("other", "graph_break", 0.3), ("overhead", "overhead_cache_lookup", 0.2),
        ("busy", "generated_pointwise", 0.05),
    )  # fmt: skip
    (finding,) = found("gb-item", make(graph_breaks=[BREAK], **rows))
    assert finding.cost.ms_per_step == pytest.approx(0.3 + 0.2 / 2)
    assert finding.confidence == "measured", "fusion could save 0.05 ms at most"
    rows["accounting"].append({"stance": "compiled", "kind": "busy", "clock": "host",
                               "category": "generated_reduction", "ms": 0.2})  # fmt: skip
    (finding,) = found("gb-item", make(graph_breaks=[BREAK], **rows))
    assert finding.confidence == "derived"
    assert "at most 0.250 ms" in finding.cost.about


def test_a_break_in_a_step_that_the_profiler_makes_much_longer_is_not_called_measured(make):
    for step_ms, confidence in ((1.2, "measured"), (1.3, "derived")):
        rows = profiled(("other", "graph_break", 0.3), step_ms=step_ms)
        rows["accounting"].append({"stance": "compiled", "kind": "busy", "clock": "host",
                                   "category": "generated_reduction", "ms": 0.01})  # fmt: skip
        (finding,) = found("gb-item", make(graph_breaks=[BREAK], **rows))
        assert finding.confidence == confidence


def test_without_marks_of_graphs_a_break_costs_what_more_than_one_region_takes(make):
    rows = profiled(("overhead", "overhead_compiled_region", 0.4), gap_ms=None, gaps=None)
    calls = [{"region_id": 0, "calls_per_step": 1.0}]
    (finding,) = found("gb-item", make(graph_breaks=[BREAK], region_costs=calls, **rows))
    assert finding.cost.ms_per_step == pytest.approx(0.4 / 2)
    assert finding.confidence == "derived"
    assert "does not separate them" in finding.cost.about


def test_what_a_line_shows_is_its_own_and_the_rest_is_shared(make):
    rows = profiled(("other", "graph_break", 0.5))
    at = {"stance": "compiled", "category": "graph_break", "what": "Python", "file": "/u/train.py"}
    details = [{**at, "line": 7, "ms": 0.3}, {**at, "line": 99, "ms": 0.2}]
    breaks = [BREAK, {**BREAK, "user_line": 9, "user_stack": None}]
    findings = found("gb-item", make(graph_breaks=breaks, account_details=details, **rows))
    assert [f.cost.ms_per_step for f in findings] == pytest.approx([0.4, 0.1])


def test_what_a_gpu_idles_while_a_value_is_read_is_the_readers(make):
    rows = profiled(("idle", "idle_graph_break", 0.1), ("idle", "idle_sync", 0.4))
    wait = {"stance": "compiled", "category": "idle_sync", "what": "cudaStreamSynchronize"}
    details = [{**wait, "ms": 0.4}]
    io = {**BREAK, "user_line": 9, "user_stack": None, "gb_id": "GB0291", "gb_type": "logging"}
    tables = make(graph_breaks=[BREAK, io], account_details=details, **rows)
    assert found("gb-item", tables)[0].cost.ms_per_step == pytest.approx(0.05 + 0.4)
    assert found("gb-side-effect-io", tables)[0].cost.ms_per_step == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("gap", "compiled", "severity"), [(0.4, 1.0, "warning"), (0.4, 100.0, "info")]
)
def test_the_same_break_is_dear_in_a_short_step_and_cheap_in_a_long_one(
    make, gap, compiled, severity
):
    tables = make(
        graph_breaks=[BREAK], step_counts=counts(gap_ms=gap), speedups=speedup(200.0, compiled)
    )
    assert found("gb-item", tables)[0].severity == severity


def test_breaks_in_torchs_own_code_are_not_the_users(make):
    inside = "/v/lib/python3.12/site-packages/torch/optim/optimizer.py"
    own = {**BREAK, "user_file": inside, "user_stack": None}
    assert found("gb-item", make(graph_breaks=[own])) == ()
    frames = [("/u/train.py", "main"), (inside, "wrapper"), (inside, "step")]
    stack = json.dumps([{"file": f, "line": 9, "function": n} for f, n in frames])
    whole = {**BREAK, "user_stack": stack}
    wrapped = {"compile_key": BREAK["compile_key"], "co_filename": inside, "co_name": "wrapper"}
    assert found("gb-item", make(graph_breaks=[whole], compiles=[wrapped])) == ()
    mine = {**wrapped, "co_filename": "/u/train.py", "co_name": "main", "co_firstlineno": 2}
    (finding,) = found("gb-item", make(graph_breaks=[whole], compiles=[mine]))
    assert (finding.location.file, finding.inside.file) == ("/u/train.py", inside)
    assert finding.about == {"/u/train.py:2"}, "nothing was compiled behind it"


def test_a_skipped_frame_is_named_once(make):
    skipped = {**BREAK, "frame_skipped": True}
    tables = make(graph_breaks=[skipped], compiles=[])
    (finding,) = found("gb-item", tables)
    assert "cannot resume" in finding.title
    assert "leaves the whole function around it in eager" in finding.explanation
    assert found("gb-frame-skipped", tables) == ()
    other = {**skipped, "gb_id": "GB0170", "gb_type": "Data-dependent branching", "reason": "x"}
    tables = make(graph_breaks=[other], compiles=[])
    assert found("gb-item", tables) == ()
    assert [f.rule for f in found("gb-frame-skipped", tables)] == ["gb-frame-skipped"]


@pytest.mark.parametrize(
    ("co_name", "named"),
    [
        ("forward", "forward() runs in eager"),
        ("torch_dynamo_resume_in_forward_at_5", "forward() (resumed after line 5) runs in eager"),
        (None, "The function runs in eager"),
    ],
)
def test_a_skipped_frame_is_named_in_the_users_words(make, co_name, named):
    compile_ = {"compile_key": BREAK["compile_key"], "compile_id": "0/0", "outcome": "skipped",
                "co_filename": "/u/train.py", "co_firstlineno": 2, "co_name": co_name}  # fmt: skip
    skipped = {**BREAK, "gb_id": "GB0170", "gb_type": "Data-dependent branching"}
    tables = make(graph_breaks=[{**skipped, "frame_skipped": True}], compiles=[compile_])
    (finding,) = found("gb-frame-skipped", tables)
    assert finding.title.startswith(named)
    assert "torch_dynamo" not in finding.explanation + finding.evidence[-1].text


@pytest.mark.parametrize(
    ("region", "rows", "words", "remedy"),
    [
        ({"calls": 0, "methods_used": ["generate"]}, {}, "only .generate()", ()),
        ({"calls": 0, "collected_uncalled": True}, {}, "never called", ()),
        ({"calls": 5, "disable": True}, {}, "disable=True", ()),
        ({}, {"dynamo_disabled": True}, "config.disable", ("torch._dynamo.config.disable=False",)),
        ({}, {"user_stance": "force_eager"}, "force_eager", ("stance=default",)),
    ],
)
def test_why_nothing_is_compiled(make, region, rows, words, remedy):
    tables = make(regions=[{**REGION, **region}], runs=[{"pid": 1, **rows}])
    (finding,) = found("cap-nothing-compiled", tables)
    assert words in finding.title
    assert finding.location.line == 20
    assert finding.remedy == remedy


def served(stance="default", calls=20, eager=20, after=False):
    return {"pid": 1, "region_id": 0, "user_stance": stance, "after_modes": after, "calls": calls,
            "eager_calls": eager, "eager_sizes": ["8x3"]}  # fmt: skip


@pytest.mark.parametrize(
    ("region", "calls", "words"),
    [
        ({"torchscript": "TopLevelTracedModule", "torchscript_within": False}, [],
         "it is a TorchScript module"),
        ({"torchscript": "ScriptFunction", "torchscript_within": True}, [],
         "it calls a TorchScript function"),
        ({"dispatch_modes": "FlopCounterMode", "dispatch_modes_call": 0}, [served(after=True)],
         "its first call ran under FlopCounterMode"),
        ({"dispatch_modes": "A, B", "dispatch_modes_call": 49}, [served(after=True)],
         "its call 50 ran under B"),
    ],
)  # fmt: skip
def test_what_keeps_dynamo_from_compiling_it(make, region, calls, words):
    rows = {"compile_intervals": [], "compiles": [], "served_calls": calls}
    tables = make(regions=[{**REGION, "pid": 1, **region}], runs=[{"pid": 1}], **rows)
    (finding,) = found("cap-nothing-compiled", tables)
    assert words in finding.title


def test_a_call_under_a_mode_is_no_matter_where_compiled_code_runs_after_it(make):
    region = {**REGION, "pid": 1, "dispatch_modes": "A", "dispatch_modes_call": 4}
    calls = [served(after=True, eager=19)]
    tables = make(regions=[region], runs=[{"pid": 1}], served_calls=calls)
    assert found("cap-nothing-compiled", tables) == ()


@pytest.mark.parametrize(
    ("stance", "eager", "severities"),
    [
        ("eager_on_recompile", 15, ["warning"]),
        ("eager_on_recompile", 2, ["info"]),
        ("eager_on_recompile", 0, []),
        ("eager_on_recompile", None, []),
        ("eager_then_compile", 15, []),
        ("default", 20, []),
    ],
)
def test_calls_in_eager_under_a_stance_that_forbids_compiling(make, stance, eager, severities):
    tables = make(regions=[REGION], served_calls=[served(stance, eager=eager)])
    findings = found("rc-eager-on-recompile", tables)
    assert [each.severity for each in findings] == severities
    assert all(each.title.startswith(f"{eager} of 20 calls") for each in findings)


@pytest.mark.parametrize(
    ("dynamic", "sizes", "remedy"),
    [
        (None, 12, ("stance=default",)),
        ("False", 8, ("stance=default",)),
        ("False", 9, ()),  # torch compiles no more than 8 of them
    ],
)
def test_the_stance_is_put_aside_where_that_can_help(make, dynamic, sizes, remedy):
    row = {**served("eager_on_recompile"), "eager_sizes": [f"8x{n}" for n in range(sizes)]}
    tables = make(regions=[{**REGION, "dynamic": dynamic}], served_calls=[row])
    (finding,) = found("rc-eager-on-recompile", tables)
    assert finding.remedy == remedy


def test_an_uncalled_region_beside_a_called_one_may_have_its_turn_later(make):
    tables = make(regions=[REGION, {**REGION, "region_id": 1, "calls": 0}], runs=[{"pid": 1}])
    assert found("cap-nothing-compiled", tables) == ()


@pytest.mark.parametrize(("line", "fires"), [(20, False), (21, True)])
def test_a_callable_that_its_line_made_anew_before_a_call_was_not_lost(make, line, fires):
    lost = {**REGION, "region_id": 1, "calls": 0, "collected_uncalled": True, "call_line": line}
    assert bool(found("cap-nothing-compiled", make(regions=[REGION, lost], runs=[{"pid": 1}]))) is (
        fires
    )


def recompile(number, kind="value", **columns):
    return {
        "compile_key": f"cold:1:0:0/{number}", "compile_id": f"0/{number}", "co_name": "forward",
        "co_filename": "/u/train.py", "co_firstlineno": 5, "order": 0, "kind": kind,
        "guard": "self.step == 0", "source_name": "self.step", "old": str(number - 1), **columns,
    }  # fmt: skip


def compiled(number, outcome="ok", **columns):
    return {
        "compile_key": f"cold:1:0:0/{number}", "compile_id": f"0/{number}", "co_name": "forward",
        "co_filename": "/u/train.py", "co_firstlineno": 5, "outcome": outcome,
        "duration_us": 1e6, **columns,
    }  # fmt: skip


@pytest.mark.parametrize(("calls", "severity"), [(500, "error"), (9, "warning")])
def test_the_limit_names_its_cause_and_whether_calls_went_on(make, calls, severity):
    tables = make(
        compiles=[*(compiled(n) for n in range(8)), compiled(8, "limit")],
        recompiles=[recompile(n, "module_int") for n in range(1, 9)],
        regions=[{**REGION, "calls": calls}],
    )
    (limit,) = found("rc-limit-hit", tables)
    assert limit.severity == severity
    assert "self.step" in limit.title
    cost = found("rc-module-int-attr", tables)[0].cost
    assert cost.seconds == pytest.approx(7.0)
    assert cost.about.startswith("compiling it again 7 times")
    assert cost.about.endswith("; the recompile limit refused 1 more")
    assert found("rc-auto-dynamic", tables) == ()


def test_an_int_that_becomes_symbolic_is_information(make):
    tables = make(
        recompiles=[recompile(1, source_name="k")],
        compiles=[compiled(0), compiled(1, dynamic_symbols=1)],
        symbols=[{"compile_key": "cold:1:0:0/1", "event": "create", "source_name": "L['k']"}],
    )
    (finding,) = found("rc-auto-dynamic", tables)
    assert (finding.severity, finding.cost.seconds) == ("info", 1.0)
    assert found("rc-python-constant", tables) == ()


def test_a_learning_rate_gets_its_own_advice(make):
    rows = [recompile(n, source_name="self.param_groups[0]['lr']") for n in (1, 2, 3)]
    (finding,) = found("rc-python-constant", make(recompiles=rows))
    assert "tensor" in finding.snippet.text


def test_train_and_eval_are_two_variants_by_nature(make):
    rows = [recompile(n, source_name="self.training") for n in (1, 2)]
    assert found("rc-python-constant", make(recompiles=rows)) == ()


def test_dynamic_false_needs_the_setting_and_two_sizes(make):
    sizes = [recompile(n, "size", source_name="x", dim=0, old=str(4 + n)) for n in (1, 2)]
    compiles = [compiled(n, pid=1) for n in (1, 2)]
    region = {**REGION, "target_file": "/u/train.py", "target_line": 5}
    fixed = [{**region, "dynamic": "False"}]

    def said(rows, regions):
        return found("rc-dynamic-false", make(recompiles=rows, regions=regions, compiles=compiles))

    assert said(sizes, fixed)[0].location.line == 20
    assert said(sizes[:1], fixed) == ()
    assert said(sizes, [region]) == ()


def gemm(name, ms, category="gemm"):
    return {"stance": "compiled", "name": name, "category": category, "ms": ms, "clock": "device"}


PRECISION = [{"section": "precision", "name": "float32_matmul_precision", "value": "highest"}]


@pytest.mark.parametrize(
    ("name", "ms", "fires"),
    [
        ("ampere_sgemm_128x64_tn", 1.0, True),
        ("cutlass_80_simt_sgemm_256x128_8x4_tn_align1", 1.0, True),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8", 1.0, True),
        ("ampere_sgemm_128x64_tn", 0.1, False),
        ("cutlass_80_tensorop_s1688gemm_128x128_tn_align4", 1.0, False),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x32x64", 1.0, False),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", 1.0, False),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", 1.0, False),
    ],
)
def test_fp32_kernels_without_tensor_cores(make, name, ms, fires):
    other = gemm("triton_poi_fused_relu_0", 1.0, "generated_pointwise")
    tables = make(kernel_groups=[gemm(name, ms), other], environment=PRECISION)
    assert bool(found("ind-tf32-off", tables)) is fires


TF32 = {
    "kind": "gemm", "way": "TF32", "dtype": "float32", "shapes": 1,
    "base_ms": 1.0, "ms": 0.4, "share": 0.6,
}  # fmt: skip


@pytest.mark.parametrize(
    ("waits_ms", "gains", "severity"),
    [(0.2, [TF32], "warning"), (3.0, [TF32], "info"), (0.2, [], "info")],
    ids=["device", "host", "not timed"],
)
def test_fp32_kernels_that_no_step_waits_for_are_information(make, waits_ms, gains, severity):
    idle = account("idle", "idle_launch_bound", waits_ms)
    (finding,) = found(
        "ind-tf32-off",
        make(
            kernel_groups=[gemm("ampere_sgemm_128x64_tn", 1.0)],
            environment=PRECISION,
            accounting=[account("busy", "gemm", 1.0), idle],
            speedups=speedup(4.0, 1.0 + waits_ms),
            shape_gains=gains,
        ),
    )
    assert finding.severity == severity
    assert ("waits for launches" in finding.explanation) is (waits_ms > 1.0)


@pytest.mark.parametrize(("host_ms", "saved"), [(None, 0.6), (0.9, 0.3), (0.2, 0.6)])
def test_no_step_gets_shorter_than_the_hosts_time_for_it(make, host_ms, saved):
    (finding,) = found(
        "ind-tf32-off",
        make(
            kernel_groups=[gemm("ampere_sgemm_128x64_tn", 1.0)],
            environment=PRECISION,
            accounting=[account("busy", "gemm", 1.0)],
            speedups=speedup(4.0, 1.2),
            step_counts=[{"stance": "compiled", "host_ms": host_ms}],
            shape_gains=[TF32],
        ),
    )
    assert finding.cost.ms_per_step == pytest.approx(saved)
    assert ("the host needs the rest" in finding.cost.about) is (saved < 0.6)


@pytest.mark.parametrize(
    ("before", "compiled_ms", "severity"),
    [(0.1, 5.0, "info"), (0.9, 5.0, "warning"), (0.1, 3.0, "warning"), (None, 5.0, "warning")],
)
def test_fp32_kernels_that_eager_has_not_are_no_reason(make, before, compiled_ms, severity):
    kernels = [gemm("ampere_sgemm_128x64_tn", 1.0)]
    if before is not None:
        kernels.append({**gemm("ampere_sgemm_64x64", before), "stance": "eager"})
        kernels.append({**gemm("sm90_xmma_gemm_f32f32_tf32f32_f32", 0.9), "stance": "eager"})
    (finding,) = found(
        "ind-tf32-off",
        make(
            kernel_groups=kernels,
            environment=PRECISION,
            accounting=[account("busy", "gemm", 1.0)],
            speedups=speedup(4.0, compiled_ms),
            shape_gains=[TF32],
        ),
    )
    assert finding.severity == severity
    assert ("eager 0.100 ms" in finding.explanation) is (severity == "info")


@pytest.mark.parametrize("line", [38, 39, None])
def test_products_of_separate_attention_are_no_reason_for_tf32(make, line):
    name = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x256x8"
    switch = {"name": "fused_attention", "value": "False", "user_lines": ["/u/net.py:38"]}
    product = {**gemm(name, 1.0), "cpu_op": "aten::bmm", "file": "/u/net.py", "line": line}
    tables = make(
        kernel_groups=[gemm(name, 1.0), gemm("nvjet", 0.5)],
        environment=PRECISION,
        matched_kernels=[product],
        slow_switches=[switch],
    )
    assert bool(found("ind-tf32-off", tables)) is (line != 38)


def test_tf32_that_is_on_is_no_finding(make):
    assert (
        found("ind-tf32-off", make(kernel_groups=[gemm("ampere_sgemm", 1.0)], environment=[])) == ()
    )


@pytest.mark.parametrize(
    ("eager", "compiled", "source", "fires"),
    [
        (500, 700, "allocator", True),
        (500, 700, "process", False),
        (500, 540, "allocator", False),
        (100, 150, "allocator", False),
    ],
)
def test_memory_peaks(make, eager, compiled, source, fires):
    rows = [
        {"stance": s, "device": "cuda:0", "source": source, "block_index": 0, "peak_bytes": n * MIB}
        for s, n in (("eager", eager), ("compiled", compiled))
    ]
    assert bool(found("mem-peak-up", make(memory=rows))) is fires


@pytest.mark.parametrize(
    ("memory", "severity"), [(None, "warning"), (1000, "warning"), (2000, "info")]
)
def test_a_peak_below_half_of_the_memory_is_information(make, memory, severity):
    rows = [
        {
            "stance": s,
            "device": "cuda:0",
            "source": "allocator",
            "block_index": 0,
            "peak_bytes": n * MIB,
        }
        for s, n in (("eager", 500), ("compiled", 700))
    ]
    runs = [{"pid": 1, "device_memory_bytes": memory and memory * MIB}]
    (finding,) = found("mem-peak-up", make(memory=rows, runs=runs))
    assert finding.severity == severity


@pytest.mark.parametrize(
    ("eager", "compiled", "overhead", "fires"),
    [(0.008, 0.023, 0.012, True), (0.048, 0.012, 0.008, False), (0.02, 0.03, 0.002, False)],
)
def test_small_calls_are_judged_by_their_result(make, eager, compiled, overhead, fires):
    tables = make(
        speedups=speedup(eager, compiled),
        accounting=[account("overhead", "overhead_cache_lookup", overhead)],
        regions=[REGION],
    )
    assert bool(found("ap-call-overhead", tables)) is fires


@pytest.mark.parametrize(
    ("entering", "library", "fires"), [(0.3, 0.02, True), (0.1, 0.3, False), (None, 0.02, False)]
)
def test_entering_that_is_most_of_a_loss_is_its_cause(make, entering, library, fires):
    parts = [("overheads_added", entering), ("library_choice", library), ("fusion", -0.12)]
    tables = make(
        speedups=speedup(1.3, 1.5),
        accounting=[account("overhead", "overhead_aot_wrappers", entering or 0.2)],
        regions=[REGION],
        waterfall_rows=[{"effect": effect, "ms": ms} for effect, ms in parts if entering],
    )
    findings = found("ap-call-overhead", tables)
    assert bool(findings) is fires
    assert all(each.cost.ms_per_step == pytest.approx(0.2) for each in findings)


@pytest.mark.parametrize(
    ("tensors", "wrapper_us", "launches", "fires"),
    [(480, 570.0, 4, True), (480, 570.0, 25, False), (40, 570.0, 4, False), (480, 90.0, 4, False)],
)
def test_passing_many_tensors_is_part_of_entering(make, tensors, wrapper_us, launches, fires):
    head = {"compile_id": "0/0", "calls": 1.0}
    tables = make(
        speedups=speedup(0.2, 1.4),
        accounting=[
            account("idle", "idle_guards", 0.2),
            account("idle", "idle_launch_bound", 1.2),
        ],
        regions=[REGION],
        guard_costs=[{"compile_id": "0/0", "kind": "TENSOR_MATCH", "guards": tensors}],
        call_path=[
            {**head, "part": "cache_lookup", "us_per_call": 200.0, "guards": 1456},
            {**head, "part": "generated_wrapper", "us_per_call": wrapper_us + 50.0,
             "us_less_profiler": wrapper_us},
        ],
        kernel_launches=[
            {"stance": "compiled", "kind": "launch", "graph_key": "f", "step": step}
            for step in (0, 1) for _ in range(launches)
        ],
    )  # fmt: skip
    findings = found("ap-many-tensors", tables)
    assert bool(findings) is fires
    for finding in findings:
        assert "each call checks and passes 480 tensors" in finding.title
        texts = [each.text for each in finding.evidence]
        assert "1,456 guards, 480 of them on tensors" in texts
        assert texts[0].startswith("look-up and wrappers: 0.690 ms of a timed step of 1.40 ms")


@pytest.mark.parametrize(
    ("overhead", "loops", "severities"),
    [(0.6, 1, ["info"]), (0.6, 0, []), (0.4, 1, ["info"]), (0.25, 1, []), (0.3, 1, [])],
)  # its work takes 0.3, and Python between the calls the rest of a step of 1 ms
def test_a_small_call_in_an_inner_loop_is_information(make, overhead, loops, severities):
    stack = [{"file": "/u/train.py", "line": line, "function": "f"} for line in (30, 40)]
    tables = make(
        speedups=speedup(1.5, 1.0),
        accounting=[
            account("overhead", "overhead_cache_lookup", overhead),
            account("overhead", "overhead_generated_wrapper", 0.1),
            account("busy", "generated_pointwise", 0.2),
            account("other", "python", 0.7 - overhead),
        ],
        regions=[{**REGION, "first_call_stack": json.dumps(stack)}],
        source_lines=[
            {"file": "/u/train.py", "line": 30, "text": "fold()", "loops": 1},
            {"file": "/u/train.py", "line": 40, "text": "turn(x)", "loops": loops},
        ],
    )
    findings = found("ap-call-overhead", tables)
    assert [each.severity for each in findings] == severities
    assert all(each.location.line == 40 for each in findings)


def test_entering_is_that_of_all_that_a_step_enters(make):
    regions = [
        {**REGION, "region_id": 0, "name": "Net", "calls": 500, "target_file": "/u/train.py"},
        {**REGION, "region_id": 1, "name": "SGD.step", "calls": 499, "target_file": "/t/sgd.py"},
        {**REGION, "region_id": 2, "name": "evaluate", "calls": 3, "target_file": "/u/train.py"},
    ]
    lines = [{"target_line": line} for line in (5, 105, 40)]
    tables = make(
        speedups=speedup(0.3, 0.9),
        accounting=[account("overhead", "overhead_cache_lookup", 0.4)],
        regions=[{**region, **line} for region, line in zip(regions, lines, strict=True)],
    )
    (finding,) = found("ap-call-overhead", tables)
    assert "Entering Net and SGD.step takes" in finding.title
    assert finding.about == {"/u/train.py:5", "/t/sgd.py:105"}


def account(kind, category, ms, stance="compiled"):
    return {"stance": stance, "kind": kind, "category": category, "ms": ms, "clock": "device"}


def launch_bound(make, busy=0.3, launch=0.6, mode=None, extra=None, eager=1.0, **more):
    columns = {"device_busy_ms": busy, "kernels": 90.0, "launches": 90.0, "graph_launches": 0.0}
    tables = make(
        speedups=speedup(eager, 1.0),
        step_counts=counts(step_ms=9.0, **{**columns, **more}),
        accounting=[
            account("busy", "elementwise", busy),
            account("idle", "idle_launch_bound", launch),
            account("idle", "idle_sync", 0.2),
        ],
        regions=[{**REGION, "mode": mode}],
        kernel_launches=[
            {"stance": "compiled", "kind": "launch", "graph_key": key}
            for key in ("f", "f", "f", None)
        ],
        **(extra or {}),
    )
    return found("ap-launch-bound", tables)


@pytest.mark.parametrize(
    ("busy", "launch", "fires"), [(0.3, 0.6, True), (0.3, 0.1, False), (0.9, 0.1, False)]
)
def test_launch_bound(make, busy, launch, fires):
    findings = launch_bound(make, busy, launch)
    assert [f.severity for f in findings] == (["warning"] if fires else [])
    if fires:
        assert "reduce-overhead" in findings[0].snippet.text
        assert findings[0].cost.ms_per_step == launch
        assert (
            findings[0].evidence[0].text == "90 launches per step, 75 % of them in compiled graphs"
        )


def test_a_launch_bound_step_that_compiling_made_faster_is_information(make):
    (finding,) = launch_bound(make, eager=2.0)
    assert (finding.severity, finding.weighs) == ("info", True)


@pytest.mark.parametrize(
    ("waits", "severity", "cost"), [(0.2, "warning", 0.4), (0.4, "info", 0.2), (0.57, None, None)]
)
def test_launches_of_other_code_are_not_the_compiled_codes(make, waits, severity, cost):
    detail = {"stance": "compiled", "category": "idle_launch_bound", "what": "aten::mul_"}
    at = {"in_graph": False, "file": "/u/train.py", "line": 9, "ms": waits}
    findings = launch_bound(make, extra={"account_details": [{**detail, **at}]})
    assert [f.severity for f in findings] == ([severity] if severity else [])
    if severity:
        assert findings[0].cost.ms_per_step == pytest.approx(cost)
        assert findings[0].weighs is (severity == "warning")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"launches": 2.0, "graph_launches": 1.0}, "replayed already"),
        ({"launches": 1.0}, "too few launches"),
    ],
)
def test_launch_bound_is_information_where_a_cudagraph_gains_nothing(make, more, words):
    (finding,) = launch_bound(make, **more)
    assert (finding.severity, finding.snippet) == ("info", None)
    assert words in finding.what_to_do


@pytest.mark.parametrize(
    ("version", "command"),
    [("2.13.0", "TORCHINDUCTOR_CUDAGRAPH_OR_ERROR=1 python SCRIPT"), ("2.8.0", None)],
)
def test_cudagraphs_asked_in_vain_quote_the_reason(make, version, command):
    reason = "skipping cudagraphs due to skipping cudagraphs due to cpu device (arg0_1)"
    rows = {
        "cudagraph_events": [{"event": "skip", "reason": reason}],
        "runs": [{"torch_version": version}],
    }
    (finding,) = launch_bound(make, mode="reduce-overhead", extra=rows)
    assert "none was replayed: torch skipped a graph due to cpu device (arg0_1)." in (
        finding.what_to_do
    )
    assert (finding.severity, finding.snippet and finding.snippet.text) == ("info", command)


def test_cudagraphs_asked_in_vain_without_a_reason_ask_the_log(make):
    (finding,) = launch_bound(make, mode="reduce-overhead")
    assert finding.snippet.text == "TORCH_LOGS=+cudagraphs python SCRIPT"


@pytest.mark.parametrize(
    ("share", "ratio", "fires"), [(0.9, 1.02, True), (0.5, 1.02, False), (0.9, 1.5, False)]
)
def test_gemm_bound_is_information(make, share, ratio, fires):
    rows = [
        account("busy", category, ms, stance)
        for stance in ("eager", "compiled")
        for category, ms in (("gemm", share), ("elementwise", 1 - share))
    ]
    findings = found("ap-gemm-bound", make(accounting=rows, speedups=speedup(ratio, 1.0)))
    assert [f.severity for f in findings] == (["info"] if fires else [])


def test_gemm_bound_says_how_near_the_ceiling_it_is(make):
    rows = [account("busy", "gemm", 1.0, stance) for stance in ("eager", "compiled")]
    limit = {"stance": "compiled", "category": "gemm", "ms": 0.8, "floor_ms": 0.6}
    limit["of_ceiling"] = 0.75
    given = {"accounting": rows, "speedups": speedup(1.0, 1.0)}
    (finding,) = found("ap-gemm-bound", make(**given, kernel_limits=[limit]))
    text = "compiled: 0.800 ms in them, 0.600 ms at the measured ceilings"
    assert finding.evidence[-1].text == text
    unknown = {**limit, "of_ceiling": None}
    (finding,) = found("ap-gemm-bound", make(**given, kernel_limits=[limit, unknown]))
    assert "ceilings" not in finding.evidence[-1].text, "half of it is not known"


@pytest.mark.parametrize("way", ["aligned", "one product"])
def test_what_is_a_finding_of_its_own_is_no_setting(make, way):
    rows = [account("busy", "gemm", 1.0, stance) for stance in ("eager", "compiled")]
    gain = {"kind": "gemm", "way": way, "dtype": "bfloat16", "base_ms": 0.9, "ms": 0.1}
    gains = [{**gain, "share": 0.89, "shapes": 1}]
    tables = make(accounting=rows, speedups=speedup(1.0, 1.0), shape_gains=gains)
    (finding,) = found("ap-gemm-bound", tables)
    assert finding.remedy == ("mode=max-autotune-no-cudagraphs",)  # as without a trial
    assert way not in finding.what_to_do


HALF = {"kind": "gemm", "dtype": "float16", "shapes": 2, "base_ms": 0.8, "clock": "host"}
IN_FLOAT32 = {**HALF, "way": "float32", "ms": 0.096, "share": 0.88}
IN_BFLOAT16 = {**HALF, "way": "bfloat16", "ms": 0.04, "share": 0.95}


def in_half(make, *gains, ratio=1.0, dtype="float16", share=0.9, clock="host", **more):
    """A step of 10 ms, with ``share`` of it in products in ``dtype`` at line 7 and 3."""
    outcome = {1.0: "neutral", 1.6: "helped", 0.5: "hurt"}[ratio]
    accounts = [
        account("busy", category, ms, stance) | {"clock": clock}
        for stance in ("eager", "compiled")
        for category, ms in (("gemm", 10 * share), ("elementwise", 10 * (1 - share)))
    ]
    calls = [
        {"stance": stance, "category": "gemm", "dtype": dtype, "file": "/u/train.py"}
        | {"line": line, "ms": ms}
        for stance in ("eager", "compiled")
        for line, ms in ((3, 2.0), (7, 5.0))
    ]
    gains = [{**gain, "base_ms": 10 * gain["base_ms"], "dtype": dtype} for gain in gains]
    tables = make(
        accounting=accounts, matched_kernels=calls, shape_gains=gains,
        speedups=speedup(10 * ratio, 10.0, outcome=outcome), **more,
    )  # fmt: skip
    return found("ap-gemm-bound", tables)


def test_products_that_a_cpu_is_slow_in_are_not_just_products(make):
    site = {"name": "float16", "file": "/u/train.py", "line": 2, "function": "main"}
    (finding,) = in_half(make, IN_FLOAT32, IN_BFLOAT16, setting_sites=[site])
    assert finding.title.startswith("Matrix products in float16 take 90 % of the step")
    assert finding.title.endswith("the same shapes take 5.0 % of that time in bfloat16")
    assert "the longest at train.py:7" in finding.title
    assert (finding.location.line, [at.line for at in finding.also_at]) == (2, [7])
    assert (finding.severity, finding.confidence) == ("warning", "measured")
    assert finding.cost.ms_per_step == pytest.approx(0.95 * 9.0)
    assert "(float32: 12 %)" in finding.what_to_do
    assert "othing is wrong" not in finding.what_to_do
    assert len(finding.evidence) == 2
    for ratio in (1.6, 0.5):
        (finding,) = in_half(make, IN_FLOAT32, ratio=ratio)
        assert finding.severity == "info"
    assert "keeps" not in finding.what_to_do
    assert (finding.location.line, finding.snippet.text[:23]) == (7, "model = model.to(torch.")


def test_rates_of_the_cpu_say_it_where_no_shape_was_timed(make):
    rates = {"float32": 0.1, "float16": 0.015}
    ceilings = [
        {"device": "cpu", "kind": "matmul", "dtype": dtype, "value": value, "unit": "TFLOP/s"}
        for dtype, value in rates.items()
    ]
    (finding,) = in_half(make, ceilings=ceilings)
    assert finding.confidence == "derived"
    assert "they would take 15 % of that time in float32" in finding.title
    assert "15.0 GFLOP/s in float16 and 100 GFLOP/s in float32" in finding.evidence[0].text
    (finding,) = in_half(make, ceilings=ceilings, dtype="float32")
    assert finding.severity == "info"  # its products are in float32


@pytest.mark.parametrize(
    "known",
    [
        {"clock": "device"},
        {"share": 0.2},
        {"gain": {"share": 0.1}},
        {"gain": {"base_ms": 0.1}},  # most products have other shapes
        {"gain": {"way": "channels last"}},
    ],
)
def test_what_another_dtype_saves_little_of_is_no_matter(make, known):
    gain = IN_FLOAT32 | known.pop("gain", {})
    findings = in_half(make, gain | {"clock": known.get("clock", "host")}, **known)
    assert [f.severity for f in findings] in ([], ["info"])
    assert all("Nothing is wrong" in f.what_to_do for f in findings)


def test_matrix_products_do_not_bind_a_step_that_waits(make):
    rows = [
        account(kind, category, ms, stance)
        for stance in ("eager", "compiled")
        for kind, category, ms in (("busy", "gemm", 0.6), ("idle", "idle_launch_bound", 0.4))
    ]
    assert found("ap-gemm-bound", make(accounting=rows, speedups=speedup(1.0, 1.0))) == ()


def test_a_cudagraph_skip_points_at_the_write(make):
    event = {
        "event": "skip", "reason": "skipping cudagraphs due to mutated inputs (1 instances)",
        "user_file": "/u/train.py", "user_line": 31, "user_function": "forward",
    }  # fmt: skip
    idle = account("idle", "idle_launch_bound", 0.4)
    tables = make(compiles=[], cudagraph_events=[event], accounting=[idle])
    (finding,) = found("cg-skip-mutation", tables)
    assert (finding.location.line, finding.cost.ms_per_step) == (31, 0.4)


def test_arguments_that_a_graph_writes_into_can_be_marked(make):
    event = {"event": "skip", "reason": "skipping cudagraphs due to mutated inputs (2 instances)"}
    inputs = ("L_state_", "L_memory_0_1_", "L_self_buffers_mean_", "L_x_")
    head = ", ".join(f'{name}: "f32[4][1]cuda:0"' for name in inputs)
    lines = "\n".join(f"        {name[0].lower()}{name[1:]} = {name}" for name in inputs)
    text = f"""class GraphModule(torch.nn.Module):
    def forward(self, {head}):
{lines}
        copy_: "f32[4][1]cuda:0" = l_state_.copy_(l_x_);  copy_ = None
        half: "f32[2][1]cuda:0" = l_memory_0_1_[slice(0, 2, None)]
        add_: "f32[2][1]cuda:0" = half.add_(1);  half = add_ = None
        mul_: "f32[4][1]cuda:0" = l_self_buffers_mean_.mul_(2);  mul_ = None
        return (l_x_,)
"""
    sources = ("L['state']", "L['memory'][0][1]", "L['self']._buffers['mean']", "L['x']")
    tables = make(
        compiles=[{"compile_key": "1", "compile_id": "0/0"}],
        cudagraph_events=[event],
        graphs=[{"kind": "dynamo_output", "compile_id": "0/0", "compile_key": "1", "text": text}],
        guards=[{"compile_key": "1", "source_name": name} for name in sources],
    )
    (finding,) = found("cg-skip-mutation", tables)
    assert finding.remedy[0] == "static=state/memory[]"


def test_other_cudagraph_skips_are_another_matter(make):
    event = {"event": "skip", "reason": "skipping cudagraphs due to cpu device (arg1_1)"}
    assert found("cg-skip-mutation", make(compiles=[], cudagraph_events=[event])) == ()


@pytest.mark.parametrize(
    ("job", "seen", "severities"),
    [(100, 100, ["warning"]), (None, 100, ["info"]), (5000, 100, []), (None, 5000, [])],
)
def test_break_even_warns_only_where_the_job_is_known(make, job, seen, severities):
    row = speedup(
        2.0, 1.0, compile_s=1.0, break_even_steps=1000, job_steps=job, job_steps_from="option"
    )
    tables = make(speedups=row, runs=[{"pid": 1, "steps_seen": seen, "exit_kind": "exit"}])
    assert [f.severity for f in found("bm-no-break-even", tables)] == severities


def test_a_job_that_compiling_hurts_never_pays(make):
    row = speedup(1.0, 2.0, compile_s=1.0, job_steps=100, job_steps_from="option")
    assert "never pays" in found("bm-no-break-even", make(speedups=row))[0].title


@pytest.mark.parametrize(
    ("first", "loop", "fires"), [(500.0, True, True), (0.5, True, False), (500.0, False, False)]
)
def test_a_timer_around_the_compile(make, first, loop, fires):
    call = {"region_id": 0, "outermost": True, "host_ms": 0.1, "compiles_inside": 0}
    timer = {
        "region_id": 0, "file": "/u/train.py", "start_line": 30, "read_line": 34, "call_line": 32,
        "function": "main", "clock": "time.perf_counter", "calls_in_loop": loop,
        "spans_first_call": True,
    }  # fmt: skip
    tables = make(
        script_timers=[timer],
        calls=[{**call, "host_ms": first, "compiles_inside": 1}, *[call] * 99],
        compiles=[],
    )
    findings = found("bm-cold-in-timing", tables)
    assert [f.location.line for f in findings] == ([30] if fires else [])


@pytest.mark.parametrize("harmless", ["read_in_loop", "shown_whole", "starts_again", None])
def test_a_rate_as_the_job_goes_on_is_information(make, harmless):
    timer = {
        "region_id": 0, "file": "/u/train.py", "start_line": 30, "read_line": 34, "call_line": 32,
        "function": "main", "clock": "time.time", "calls_in_loop": True, "spans_first_call": True,
        **({harmless: True} if harmless else {}),
    }  # fmt: skip
    call = {"region_id": 0, "outermost": True, "host_ms": 99.0, "compiles_inside": 1}
    (finding,) = found("bm-cold-in-timing", make(script_timers=[timer], calls=[call]))
    assert finding.severity == ("info" if harmless else "warning")
    assert finding.title.endswith("in its first round") == (harmless == "starts_again")


def test_a_rule_whose_predictions_were_off_does_not_call_them_measured(make, monkeypatch):
    tables = make(graph_breaks=[BREAK], step_counts=counts(gap_ms=0.2))
    (finding,) = found("gb-item", tables)
    measured = replace(finding, confidence="measured")
    rule = replace(RULES["gb-item"], check=lambda _tables: [measured])
    assert run_rules(tables, [rule]) == ((measured,), ())
    monkeypatch.setitem(registry.OFF, "gb-item", "median error 60 % of 4 trials")
    assert run_rules(tables, [rule]) == ((replace(measured, confidence="derived"),), ())
    timed = replace(measured, cost=Cost(seconds=2.0))
    assert registry.as_scored(timed) == timed


def test_every_score_is_of_a_rule_and_says_what_it_rests_on():
    assert SCORED.keys() <= RULES.keys()
    assert all(re.search(r"\d+ % of \d+ trials", text) for text in SCORED.values())


@pytest.mark.parametrize(("idle", "severity"), [(0.5, "warning"), (0.0002, "info")])
def test_a_skipped_cudagraph_is_worth_what_the_gpu_waits_for_launches(make, idle, severity):
    event = {"event": "skip", "reason": "skipping cudagraphs due to mutated inputs (2 instances)"}
    account = {"stance": "compiled", "clock": "device", "category": "idle_launch_bound"}
    tables = make(
        compiles=[],
        cudagraph_events=[event],
        accounting=[{**account, "kind": "idle", "ms": idle}],
        speedups=[{"eager_ms": 3.6, "compiled_ms": 3.3, "speedup": 1.09, "outcome": "helped"}],
    )
    (finding,) = found("cg-skip-mutation", tables)
    assert (finding.severity, finding.cost.ms_per_step) == (severity, idle)
