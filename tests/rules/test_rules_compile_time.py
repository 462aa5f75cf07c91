"""Rules about compile time, caches and serving, on hand-made rows."""

import json

import pytest

from traceview.rules import catalogue, run_rules
from traceview.rules.ct_repeated_blocks import Operation, operations, repeated
from traceview.rules.finding import Location

RULES = {rule.name: rule for rule in catalogue()}
KEY = "cold:1:0:0/0"
CODE = {"co_name": "forward", "co_filename": "/u/train.py", "co_firstlineno": 10}
COMPILE = {
    "compile_key": KEY, "compile_id": "0/0", "pid": 1, "epoch": 0, "frame_id": 0,
    "frame_compile_id": 0, "is_forward": True, **CODE, "duration_us": 9e6, "aot_us": 8e6,
    "inductor_us": 6e6, "started_us": 0.0, "outcome": "ok",
}  # fmt: skip
LOOK_UP = {"compile_key": KEY, "compile_id": "0/0", "cache": "fx_graph"}
REGION = {
    "pid": 1, "region_id": 0, "kind": "module", "name": "Net", "call_file": "/u/train.py",
    "call_line": 20, "call_function": "main", "target_file": "/u/train.py", "target_line": 10,
    "is_anchor": True, "calls": 300,
}  # fmt: skip
RUN = {"pid": 1, "torch_version": "2.13.0", "device_name": "cpu", "cpu_count": 4}


def found(rule, tables):
    findings, unchecked = run_rules(tables, [RULES[rule]])
    assert unchecked == ()
    return findings


def job(steps, ms=1.0, **more):
    return [{"compiled_ms": ms, "eager_ms": 2 * ms, "job_steps": steps, "compile_s": 9.0, **more}]


# -- ct-cache-disabled ---------------------------------------------------------------------------


def switched(name="force_disable_caches", value="True", set_by="user"):
    return [{"section": "compiler_config", "name": name, "value": value, "set_by": set_by}]


def test_disabled_caches_cost_what_a_cache_would_keep(make):
    site = {"name": "force_disable_caches", "file": "/u/conf.py", "line": 3, "function": "<module>"}
    tables = make(
        cache_events=[{**LOOK_UP, "event": "disabled"}], compiles=[COMPILE],
        environment=switched(), setting_sites=[site], regions=[REGION],
    )  # fmt: skip
    (finding,) = found("ct-cache-disabled", tables)
    assert finding.cost.seconds == 8.0
    assert finding.severity == "info", "nobody knows how long the job is"
    assert (finding.location.file, finding.location.line) == ("/u/conf.py", 3)


@pytest.mark.parametrize(
    ("steps", "severity"), [(10_000, "warning"), (10_000_000, "info"), (None, "info")]
)
def test_seconds_of_a_start_are_held_against_the_job(make, steps, severity):
    tables = make(
        cache_events=[{**LOOK_UP, "event": "disabled"}], compiles=[COMPILE],
        environment=switched(), speedups=job(steps),
    )  # fmt: skip
    assert found("ct-cache-disabled", tables)[0].severity == severity


def test_a_cache_that_is_off_through_an_option_of_the_call_names_the_call(make):
    region = {**REGION, "options": json.dumps({"fx_graph_cache": False})}
    tables = make(
        cache_events=[{**LOOK_UP, "event": "disabled"}], compiles=[COMPILE], environment=[],
        regions=[region],
    )  # fmt: skip
    assert found("ct-cache-disabled", tables)[0].location.line == 20


@pytest.mark.parametrize(
    "rows",
    [
        {"environment": switched(set_by="traceview")},
        {"environment": switched(value="False")},
        {"environment": switched(), "compiles": [{**COMPILE, "aot_us": 1e5, "inductor_us": 1e5}]},
        {"environment": switched(), "cache_events": [{**LOOK_UP, "event": "miss"}]},
    ],
    ids=["ours", "not off", "cheap", "not disabled"],
)
def test_no_word_about_caches(make, rows):
    base = {"cache_events": [{**LOOK_UP, "event": "disabled"}], "compiles": [COMPILE]}
    assert found("ct-cache-disabled", make(**{**base, **rows})) == ()


def test_code_that_autograds_cache_keeps_whole_is_not_lost(make):
    kept = {**LOOK_UP, "cache": "aotautograd", "event": "miss"}
    tables = make(
        cache_events=[{**LOOK_UP, "event": "disabled"}, kept], compiles=[COMPILE],
        environment=switched(),
    )  # fmt: skip
    assert found("ct-cache-disabled", tables) == ()


# -- ct-cache-bypass -----------------------------------------------------------------------------


def bypass(reason, cache="fx_graph"):
    return {**LOOK_UP, "cache": cache, "event": "bypass", "reason": reason}


def test_a_bypass_of_both_caches_is_one_finding(make):
    reason = "Unsupported joint custom pass"
    events = [bypass(reason, "aotautograd"), bypass(reason)]
    (first,) = found("ct-cache-bypass", make(cache_events=events, compiles=[COMPILE]))
    assert first.cost.seconds is None, "a first start would have compiled it anyway"
    again = [*events, {**bypass(reason), "pass": "warm"}]
    (finding,) = found("ct-cache-bypass", make(cache_events=again, compiles=[COMPILE]))
    assert (first.severity, finding.cost.seconds) == ("info", 8.0)
    assert "CustomGraphPass" in finding.what_to_do
    assert finding.about == {"/u/train.py:10"}


def test_a_bypass_of_autograds_cache_alone_costs_its_own_part(make):
    event = bypass("SAC context_fn …", "aotautograd")
    tables = make(cache_events=[event, {**event, "pass": "warm"}], compiles=[COMPILE])
    (finding,) = found("ct-cache-bypass", tables)
    assert finding.cost.seconds == pytest.approx(2.0)
    assert finding.title.startswith("AOTAutograd's cache bypasses 1 compile")


def test_inductors_reason_stands_for_a_compile_that_both_caches_pass_over(make):
    events = [bypass("freezing enabled", "aotautograd"), bypass("mkldnn tensors unpickleable")]
    (finding,) = found("ct-cache-bypass", make(cache_events=events, compiles=[COMPILE]))
    assert finding.title.endswith("1 compile: mkldnn tensors unpickleable")


def test_a_graph_split_for_ddp_always_passes_over_autograds_cache(make):
    tables = make(
        cache_events=[bypass("whatever torch says", "aotautograd")], compiles=[COMPILE],
        graphs=[{"compile_key": KEY, "kind": "ddp_split", "text": ""}],
    )  # fmt: skip
    assert found("ct-cache-bypass", tables) == ()


def test_a_cache_that_is_off_is_no_bypass(make):
    tables = make(
        cache_events=[bypass("FX graph cache is not enabled", "aotautograd")], compiles=[COMPILE]
    )
    assert found("ct-cache-bypass", tables) == ()


# -- ct-cache-miss-warm --------------------------------------------------------------------------

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[{size}][1]cpu"):
        l_x_ = L_x_
        # File: /u/train.py:18 in forward, code: return x / self.t
        truediv: "f32[{size}][1]cpu" = l_x_ / {value};  l_x_ = None
        return (truediv,)
"""


def two_starts(make, second=None, key="k", **more):
    warm = {"pass": "warm", "compile_key": "warm:2:0:0/0"}
    text = GRAPH.format(size=8, value=0.5)
    graph = {"compile_key": KEY, "kind": "dynamo_output", "text": text}
    return make(
        compiles=[COMPILE, {**COMPILE, **warm, "aot_us": 5e6}],
        graphs=[graph, {**graph, **warm, "text": second or text}],
        cache_events=[
            {**LOOK_UP, "event": "miss", "key": "k"},
            {**LOOK_UP, **warm, "event": "miss", "key": key},
        ],
        **more,
    )


def test_a_constant_that_changes_is_quoted_with_its_line(make):
    tables = two_starts(make, GRAPH.format(size=8, value=0.75), key="other")
    (finding,) = found("ct-cache-miss-warm", tables)
    assert finding.cost.seconds == 6.0
    assert (finding.location.line, finding.location.function) == (18, "forward")
    assert [e.text for e in finding.evidence[:2]] == [
        "first start: truediv = l_x_ / 0.5", "second start: truediv = l_x_ / 0.75"
    ]  # fmt: skip


def test_other_shapes_are_other_work(make):
    tables = two_starts(make, GRAPH.format(size=9, value=0.5), key="other")
    assert found("ct-cache-miss-warm", tables) == ()


def test_the_same_graph_under_another_key_is_a_matter_of_settings(make):
    settings = [
        {"section": "env", "name": "OMP_NUM_THREADS", "value": "1", "set_by": "user"},
        {"section": "env", "name": "OMP_NUM_THREADS", "value": "2", "set_by": "user",
         "pass": "warm"},
    ]  # fmt: skip
    (finding,) = found("ct-cache-miss-warm", two_starts(make, key="other", environment=settings))
    assert "OMP_NUM_THREADS: 1 → 2" in finding.evidence[0].text


def test_the_same_key_that_is_not_there_is_a_matter_of_the_folder(make):
    site = {
        "name": "TORCHINDUCTOR_CACHE_DIR", "file": "/u/train.py", "line": 4, "function": "<module>"
    }  # fmt: skip
    (finding,) = found("ct-cache-miss-warm", two_starts(make, setting_sites=[site]))
    assert finding.location.line == 4
    assert "save_cache_artifacts" in finding.what_to_do


def test_without_a_second_start_it_is_not_checked_and_the_command_is_said(make):
    tables = make(cache_events=[], compiles=[COMPILE], graphs=[], runs=[RUN])
    findings, (unchecked,) = run_rules(tables, [RULES["ct-cache-miss-warm"]])
    assert findings == ()
    assert unchecked.command == "traceview diagnose --warm SCRIPT"


# -- ct-autotune-cost ----------------------------------------------------------------------------


def phase(number, name, duration_s, parent=None, **more):
    return {
        "compile_key": KEY, "compile_id": "0/0", "pid": 1, "phase_id": number, "parent_id": parent,
        "name": name, "started_us": 1e6 * number, "duration_us": 1e6 * duration_s, "aside": False,
        **more,
    }  # fmt: skip


def autotuned(make, mode, **more):
    return make(
        compile_phases=[
            phase(0, "inductor_compile", 8), phase(1, "mm_template_autotuning", 5, 0),
            phase(2, "async_compile.wait", 1, 1), phase(3, "mm_template_precompiling", 1, 0),
        ],
        autotune_choices=[{"table_index": 0, "op": "mm", "shapes": "8x8, 8x8", "choice": "mm",
                           "backend": "aten", "is_best": True, "benchmark_s": 1.0}],
        regions=[{**REGION, "mode": mode}], compiles=[COMPILE], **more,
    )  # fmt: skip


def test_autotuning_counts_its_outermost_spans(make):
    (finding,) = found("ct-autotune-cost", autotuned(make, "max-autotune"))
    assert finding.cost.seconds == 6.0
    assert finding.location.line == 20
    assert "would have been used anyway" in finding.explanation


def test_autotuning_that_nobody_asked_for_is_not_mentioned(make):
    assert found("ct-autotune-cost", autotuned(make, None)) == ()


# -- ct-workers ----------------------------------------------------------------------------------

KERNELS = [
    phase(0, "code_gen", 9),
    phase(1, "compile_file", 5, 0),
    phase(2, "PyCodeCache.load_by_key_path", 4, 0),
    phase(3, "compile_file", 1, 2),
    phase(4, "compile_file", 1, 2),
    phase(5, "compile_file", 2, 2),
]


def test_one_thread_costs_what_others_would_have_shared(make):
    tables = make(
        compile_phases=KERNELS, runs=[RUN], regions=[REGION],
        environment=[{"section": "env", "name": "TORCHINDUCTOR_COMPILE_THREADS", "value": "1",
                      "set_by": "user"}],
    )  # fmt: skip
    (finding,) = found("ct-workers", tables)
    assert finding.cost.seconds == 2.0, "three kernels of 4 s together, the longest of 2 s"
    assert finding.title.startswith("3 kernels")


@pytest.mark.parametrize("processors", [None, 1])
def test_one_thread_on_one_processor_costs_nothing(make, processors):
    tables = make(
        compile_phases=KERNELS, runs=[{**RUN, "cpu_count": processors}],
        environment=[{"section": "inductor_config", "name": "compile_threads", "value": "1",
                      "set_by": "user"}],
    )  # fmt: skip
    assert found("ct-workers", tables) == ()


@pytest.mark.parametrize(("kind", "hung"), [("timeout", True), ("exit", False)])
def test_a_wait_without_an_end_in_a_run_that_was_ended(make, kind, hung):
    waiting = phase(1, "async_compile.wait", 0, 0, duration_us=None)
    run = {**RUN, "exit_kind": kind, "started_us": 0.0, "wall_s": 100.0}
    tables = make(compile_phases=[phase(0, "code_gen", 9), waiting], runs=[run], environment=[])
    findings = found("ct-workers", tables)
    assert [finding.severity for finding in findings] == ["warning"] * hung
    assert [finding.cost.seconds for finding in findings] == [99.0] * hung


# -- ct-repeated-same-compile --------------------------------------------------------------------


def resets(make, texts, **more):
    rows = [
        {**COMPILE, "compile_key": f"cold:1:{epoch}:0/0", "epoch": epoch, "duration_us": 2e6}
        for epoch in range(len(texts))
    ]
    graphs = [
        {"compile_key": row["compile_key"], "kind": "dynamo_output", "text": text}
        for row, text in zip(rows, texts, strict=True)
    ]
    return make(compiles=rows, graphs=graphs, **more)


def test_the_same_graph_after_resets_is_found_at_the_reset(make):
    calls = [{"file": "/u/serve.py", "line": 7, "function": "answer", "step": n} for n in range(3)]
    (finding,) = found("ct-repeated-same-compile", resets(make, ["g"] * 4, resets=calls))
    assert (finding.location.file, finding.location.line) == ("/u/serve.py", 7)
    assert finding.cost.seconds == 6.0
    assert finding.about == {"/u/train.py:10"}


def test_resets_on_every_call_cost_the_steps_own_loss(make):
    run = {**RUN, "never_quiet": True}
    tables = resets(make, ["g"] * 4, runs=[run], speedups=job(None, ms=100.0, eager_ms=1.0))
    (finding,) = found("ct-repeated-same-compile", tables)
    assert (finding.severity, finding.cost.ms_per_step) == ("warning", 99.0)
    assert finding.location.line == 10, "no reset was recorded: the function itself"


def test_resets_that_go_on_cost_every_step_their_part(make):
    blocks = [{"stance": "eager", "steps": 90, "skipped_steps": 10}]
    run = {**RUN, "never_quiet": False, "steps_seen": 300}
    tables = resets(make, ["g"] * 6, runs=[run], blocks=blocks, speedups=job(None))
    (finding,) = found("ct-repeated-same-compile", tables)
    assert (finding.severity, finding.confidence) == ("warning", "derived")
    assert finding.cost.ms_per_step == 50.0, "five compiles of 2 s over 200 steps"


@pytest.mark.parametrize("texts", [["g", "g"], ["g", "h", "i", "k"]], ids=["two", "other graphs"])
def test_resets_between_different_things_are_fine(make, texts):
    assert found("ct-repeated-same-compile", resets(make, texts)) == ()


def made_anew(make, count, **more):
    rows = [
        {**COMPILE, "compile_key": f"cold:1:0:{n}/0", "epoch": 0, "frame_id": n,
         "compile_id": f"{n}/0", "duration_us": 2e6}
        for n in range(count)
    ]  # fmt: skip
    keys = [row["compile_key"] for row in rows]
    graphs = [{"compile_key": key, "kind": "dynamo_output", "text": "g"} for key in keys]
    return make(compiles=rows, graphs=graphs, **more)


def test_a_function_that_is_created_again_is_compiled_again(make):
    (finding,) = found("ct-repeated-same-compile", made_anew(make, 4))
    assert "4 times for the same inputs: the function is created again" in finding.title
    assert (finding.cost.seconds, finding.location.line) == (6.0, 10)
    assert found("ct-repeated-same-compile", made_anew(make, 2)) == ()


def test_steps_of_callables_that_take_over_from_each_other_count_together(make):
    site = {"call_file": "/u/rules.py", "call_line": 12, "outermost_calls": 1000}
    regions = [{**site, "region_id": n, "is_anchor": n == 0} for n in range(5)]
    run = {**RUN, "never_quiet": False, "steps_seen": 40, "step_kind": "call"}
    tables = made_anew(make, 6, regions=regions, runs=[run], speedups=job(None))
    (finding,) = found("ct-repeated-same-compile", tables)
    assert finding.cost.ms_per_step == 2.0, "five compiles of 2 s over 5,000 calls"


# -- sv-cold-requests ----------------------------------------------------------------------------

SERVE, WARM_UP = 30, 15


def service(make, *, line=SERVE, newest=(0, 0, 1), steps=280, **more):
    """Four compiles, the later three called from ``line``; ``newest``: the entry tried first."""

    def stack(at):
        frames = [at if isinstance(at, tuple) else ("/u/serve.py", at, "main"),
                  ("/u/serve.py", SERVE, "answer"), ("/lib/torch/module.py", 1, "call"),
                  ("/u/serve.py", 3, "forward")]  # fmt: skip
        return json.dumps([dict(zip(("file", "line", "function"), f, strict=True)) for f in frames])

    compiles = [
        {**COMPILE, "compile_key": f"cold:1:0:0/{n}", "compile_id": f"0/{n}",
         "frame_compile_id": n, "stack": stack(line), "started_us": 1e7 * n}
        for n in range(4)
    ]  # fmt: skip
    rows = {
        "runs": [{**RUN, "step_kind": "call", "steps_seen": steps}],
        "regions": [REGION],
        "compiles": compiles,
        "recompiles": [
            {"compile_key": f"cold:1:0:0/{n + 1}", "failed_compile_id": f"0/{old}", "order": 0}
            for n, old in enumerate(newest)
        ],
        "compile_intervals": [
            {"started_us": 1e7 * n, "duration_ms": 2000.0, "step": 40 * n} for n in range(4)
        ],
        "calls": [
            {"region_id": 0, "stance": "compiled", "outermost": True, "compiles_inside": 0,
             "host_ms": 5.0}
            for _ in range(20)
        ],
        "line_ops": [{"kind": "line", "name": f"/u/serve.py:{SERVE}", "stance": "compiled"}],
    }  # fmt: skip
    return make(**{**rows, **more})


def test_late_compiles_are_the_tail_of_a_service(make):
    (finding,) = found("sv-cold-requests", service(make))
    assert finding.title.startswith("3 of 280 requests waited for a compile")
    assert finding.cost.seconds == 6.0
    assert finding.location.line == 20


@pytest.mark.parametrize(
    "changed",
    [
        {"line": WARM_UP},
        {"line": ("/u/warm.py", 4, "warm"), "sources": [{"file": "/u/warm.py"}]},
        {"newest": (0, 1, 2)},
        {"steps": 80},
        {"steps": 1000},
        {"runs": [{**RUN, "step_kind": "optimizer", "steps_seen": 300}]},
        {"calls": [{"region_id": 0, "stance": "compiled", "outermost": True,
                    "compiles_inside": 0, "host_ms": 900.0}]},
    ],
    ids=["warm-up", "warm-up in another file", "sweep", "few", "rare", "training", "slow anyway"],
)  # fmt: skip
def test_what_is_no_cold_request(make, changed):
    assert found("sv-cold-requests", service(make, **changed)) == ()


# -- ct-repeated-blocks --------------------------------------------------------------------------


def graph(blocks, ops=("torch.linear", "torch.gelu", "+", ".view"), shape="f32[4, 8]"):
    """A graph of equal blocks between two operations of its own."""
    own = {"torch.embedding": 5, "torch.mean": 9}
    names = ["torch.embedding", *(ops * blocks), "torch.mean"]
    return [Operation(op, shape, Location("/u/net.py", own.get(op, 20))) for op in names]


def test_equal_blocks_in_a_row_are_counted():
    blocks = repeated(graph(12))
    ops = ["torch.linear", "torch.gelu", "+", ".view"]
    assert (blocks.count, [one.op for one in blocks.operations]) == (12, ops)
    assert blocks.place.line == 20
    assert blocks.share == pytest.approx(44 / 50)


def test_calls_of_one_function_are_equal_blocks_with_others_between_them():
    field = [Operation(op, "f32[4]", Location("/u/net.py", 16, "forward"))
             for op in ("torch.linear", "torch.tanh", "torch.linear", "+")]  # fmt: skip
    between = [
        [Operation("*", "f32[4]", Location("/u/net.py", 27 + n, "advance"))] * (n + 1)
        for n in range(9)
    ]
    steps = [one for other in between for one in (*field, *other)]
    blocks = repeated(steps, 8)
    assert (blocks.count, blocks.operations, blocks.in_a_row) == (9, tuple(field), False)
    assert repeated(steps, 10) is None


def test_blocks_of_growing_shapes_are_not_equal():
    grown = [one._replace(meta=f"f32[4, {n}]") for n, one in enumerate(graph(12))]
    assert repeated(grown) is None


def test_nested_regions_are_compiled_once_already():
    called = "torch.ops.higher_order.invoke_subgraph"
    assert repeated(graph(12, ops=(called, "[]", "+", ".view"))) is None


def test_operations_are_read_without_names():
    text = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4][1]cpu"):
        l_x_ = L_x_

        # File: /u/net.py:20 in cell, code: return torch.tanh(x[0] @ w + 0.5).view(-1)
        x: "f32[4][1]cpu" = l_x_[0]
        matmul: "f32[4][1]cpu" = x @ l_x_;  x = None
        add: "f32[4][1]cpu" = matmul + 0.5;  matmul = None
        tanh: "f32[4][1]cpu" = torch.tanh(add);  add = None
        view: "f32[4][1]cpu" = tanh.view(-1);  tanh = None

        # File: /lib/python3.11/site-packages/torch/nn/x.py:3 in forward, code: return x
        split = torch.split(view, 2);  view = None
        return (split,)
"""
    found = operations(text)
    assert [one.op for one in found] == ["[]", "@", "+", "torch.tanh", ".view", "torch.split"]
    assert found[0].place == Location("/u/net.py", 20, "cell")
    assert (found[-1].place, found[-1].meta) == (None, None)


def unrolled(function):
    """Rows of a graph of ten equal blocks that ``function`` makes."""
    lines = ['        x: "f32[4]" = torch.embedding(l_x_)']
    for n in range(10):
        lines.append(f"        # File: /u/net.py:20 in {function}, code: x = block(x)")
        lines += [f'        a{n}_{k}: "f32[4]" = torch.op{k}(x)' for k in range(5)]
    return [{"compile_key": KEY, "compile_id": "0/0", "kind": "dynamo_output",
             "text": "\n".join(lines)}]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "what", "code"),
    [
        ("smooth", "Compile smooth() instead", "smooth = torch.compile(smooth)"),
        ("forward", "Compile the module whose forward() is at net.py:20", "block.compile()"),
    ],
)
def test_what_makes_the_blocks_is_what_to_compile(make, function, what, code):
    tables = make(compiles=[COMPILE], graphs=unrolled(function))
    (finding,) = found("ct-repeated-blocks", tables)
    assert finding.what_to_do.startswith(what)
    assert finding.snippet.text.startswith(code)


def test_blocks_cost_their_part_of_the_compile(make):
    tables = make(compiles=[COMPILE], graphs=unrolled("forward"))
    (finding,) = found("ct-repeated-blocks", tables)
    assert finding.title == "10 identical blocks of 5 operations are compiled separately"
    assert finding.cost.seconds == pytest.approx(9.0 * 45 / 51)
    assert (finding.severity, finding.location.line) == ("info", 20)


def test_a_minute_for_blocks_is_worth_a_warning_in_any_job(make):
    tables = make(compiles=[{**COMPILE, "duration_us": 80e6}], graphs=unrolled("forward"))
    (finding,) = found("ct-repeated-blocks", tables)
    assert finding.severity == "warning"
