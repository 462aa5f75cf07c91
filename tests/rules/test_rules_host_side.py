"""Rules about what holds the host: collections, the driver, custom operators, threads, switches."""

import polars as pl
import pytest

from traceview.rules import catalogue, run_rules

RULES = {rule.name: rule for rule in catalogue()}
FILE = "/u/train.py"
COMPILED = {"stance": "compiled"}


def found(rule, tables):
    findings, unchecked = run_rules(tables, [RULES[rule]])
    assert unchecked == ()
    return findings


def step(*details, ops=(), calls=(), clock="device", **more):
    """A compiled step of 10 ms; operators and calls stand in four steps of the window."""
    at = {**COMPILED, "clock": clock, "count": 1.0}
    return {
        "speedups": [{"eager_ms": 10.0, "compiled_ms": 10.0, "outcome": "neutral"}],
        "step_counts": [
            {**COMPILED, "step_ms": 12.0, "steps": 4},
            {**COMPILED, "stance": "eager", "step_ms": 12.0, "steps": 4},
        ],
        "accounting": [{**COMPILED, "clock": clock, "category": "gemm", "kind": "busy", "ms": 1.0}],
        "account_details": [{**at, **detail} for detail in details],
        "cpu_ops": [
            {**COMPILED, "step": number, "op_id": 10 * number + index, "duration_ns": 1, **op}
            for number in range(4)
            for index, op in enumerate([{"name": "aten::mm"}, *ops])
        ],
        "kernel_launches": [{**COMPILED, **call, "kind": "alloc"} for call in calls],
        **more,
    }


# -- ap-garbage-collection --------------------------------------------------------------------


def collecting(ms, generation=2, steps=4, category="idle_gc", line=19):
    detail = {"category": category, "what": "garbage collection", "ms": ms}
    rows = step({**detail, "file": FILE, "line": line})
    mark = {**COMPILED, "name": f"traceview gc {generation}"}
    rows["cpu_ops"] += [{**mark, "step": number, "op_id": 90 + number} for number in range(steps)]
    return rows


@pytest.mark.parametrize("category", ["gc", "idle_gc"])
def test_a_collection_in_every_step_is_found_at_its_line(make, category):
    (finding,) = found("ap-garbage-collection", make(**collecting(4.0, category=category)))
    assert (finding.severity, finding.location.line) == ("warning", 19)
    assert finding.title.startswith("40 % of a step")
    assert "Leave gc.collect() out" in finding.what_to_do
    assert finding.snippet is None


def test_young_collections_are_no_call_of_the_users(make):
    (finding,) = found("ap-garbage-collection", make(**collecting(1.0, generation=0)))
    assert "gc.freeze()" in finding.snippet.text
    assert "Leave" not in finding.what_to_do


@pytest.mark.parametrize("rows", [collecting(4.0, steps=1), collecting(0.4)])
def test_a_collection_by_chance_or_of_no_cost_is_passed_over(make, rows):
    assert found("ap-garbage-collection", make(**rows)) == ()


def in_blocks(own_ms, *, full=1, every=2, clock="host", longer=None):
    """Ten blocks a stance of ten steps of 1 ms each; every second one holds a collection."""
    rows = step(clock=clock)
    rows["blocks"] = [
        {
            "stance": stance,
            "block_index": number,
            "pair_index": number,
            "steps": 10,
            "clock": clock,
            "duration_ms": 10.0 + (0.0 if number % every else longer or own_ms),
            "collections": int(number % every == 0),
            "full_collections": full if number % every == 0 else 0,
            "collection_ms": 0.0 if number % every else own_ms,
            "collection_file": FILE if full and number % every == 0 else None,
            "collection_line": 25 if full and number % every == 0 else None,
        }
        for number in range(10)
        for stance in ("eager", "compiled")
    ]
    return rows


def test_collections_that_the_window_misses_are_found_in_the_timed_blocks(make):
    tables = make(**in_blocks(30.0))
    (finding,) = found("ap-garbage-collection", tables)
    assert finding.title == "60 % of a step is Python's garbage collector (train.py:25)"
    assert finding.cost.ms_per_step == pytest.approx(1.5)
    assert "5 collections in 100 timed steps, 5 of all" in finding.evidence[0].text
    row = tables["block_collections"].row(by_predicate=pl.col("stance") == "eager", named=True)
    assert (row["with"], row["spread"] > 1, row["spread_without"]) == (5, True, 0.0)


def test_of_what_a_gpu_does_not_wait_for_a_block_knows_nothing(make):
    (finding,) = found("ap-garbage-collection", make(**in_blocks(30.0, clock="device")))
    assert finding.cost.ms_per_step == pytest.approx(1.5)
    hidden = in_blocks(30.0, clock="device", longer=0.1)
    assert found("ap-garbage-collection", make(**hidden)) == ()
    assert found("ap-garbage-collection", make(**in_blocks(30.0, clock="device", every=1))) == ()


def test_a_few_collections_in_all_blocks_or_short_ones_are_passed_over(make):
    assert found("ap-garbage-collection", make(**in_blocks(30.0, every=3))) == ()
    assert found("ap-garbage-collection", make(**in_blocks(0.5))) == ()
    (finding,) = found("ap-garbage-collection", make(**in_blocks(30.0, full=0)))
    assert (finding.location, "Leave" in finding.what_to_do) == (None, False)


def test_what_compiling_collects_is_not_the_steps(make):
    rows = in_blocks(30.0)
    rows["blocks"] = [{**row, "compiles_inside": 1} for row in rows["blocks"]]
    assert not make(**rows).has("block_collections")


def collect_calls(count, ms=200.0, every_ms=300.0):
    """Calls of ``gc.collect`` at one line, in steps of 10 ms; one is in a timed block."""
    calls = [
        {"pid": 1, "file": FILE, "line": 25, "host_ms": ms, "started_us": 1e3 * n * every_ms}
        for n in range(count)
    ]
    return in_blocks(0.0, every=10) | {"collect_calls": calls}


def test_calls_of_collect_that_are_far_apart_cost_their_part_of_the_time(make):
    (finding,) = found("ap-garbage-collection", make(**collect_calls(4)))
    assert finding.title == "67 % of a step is Python's garbage collector (train.py:25)"
    assert finding.cost.ms_per_step == pytest.approx(20.0)  # 200 ms in 10 steps
    assert "200 ms each time, and starts again after 300 ms: 4 calls" in finding.evidence[0].text
    assert "Leave gc.collect() out" in finding.what_to_do


@pytest.mark.parametrize("calls", [collect_calls(2), collect_calls(9, ms=1.0)])
def test_calls_of_collect_between_phases_or_of_no_cost_are_passed_over(make, calls):
    assert found("ap-garbage-collection", make(**calls)) == ()


# -- mem-driver-calls -------------------------------------------------------------------------


def freeing(ms=1.0, steps=4, name="cudaFree"):
    at = {"category": "idle_allocator", "file": FILE, "ms": ms, "count": 3.0}
    details = [{**at, "what": name, "line": 20}, {**at, "what": "cudaMalloc", "line": 50}]
    return step(*details, calls=[{"name": name, "step": number} for number in range(steps)])


@pytest.mark.parametrize(("ms", "severity"), [(1.0, "warning"), (0.01, "info")])
def test_memory_given_back_in_every_step_is_found_where_it_is(make, ms, severity):
    (finding,) = found("mem-driver-calls", make(**freeing(ms)))
    assert (finding.severity, finding.location.line) == (severity, 20)
    assert finding.cost.ms_per_step == pytest.approx(2 * ms)
    assert finding.evidence[0].text == "cudaFree: 3 per step, cudaMalloc: 3 per step"


@pytest.mark.parametrize("rows", [freeing(steps=1), freeing(name="cudaMalloc")])
def test_memory_that_is_only_taken_or_once_given_back_is_passed_over(make, rows):
    assert found("mem-driver-calls", make(**rows)) == ()


def test_the_driver_asked_in_every_step_of_a_recorded_run(tables_of):
    (finding,) = found("mem-driver-calls", tables_of("truth-gpu-allocator_pressure"))
    assert finding.severity == "warning"
    assert finding.location.file.endswith("allocator_pressure.py")


# -- ap-algorithm-search ----------------------------------------------------------------------


def searching(ms=8.0, **more):
    at = {"category": "idle_search", "ms": ms, "count": 2.0}
    details = [{**at, "what": "aten::convolution_backward"}]
    details.append({**at, "what": "aten::cudnn_convolution", "file": FILE, "line": 29, "ms": 0.5})
    return step(*details, **more)


BENCHMARK = {
    "environment": [{"section": "precision", "name": "cudnn.benchmark", "value": "True"}],
    "setting_sites": [{"name": "cudnn.benchmark", "file": FILE, "line": 11}],
    "input_sizes": [{"sizes": "4x1x9x9", "calls": 1}, {"sizes": "4x1x7x7", "calls": 2}],
}


def test_a_search_in_every_step_is_found_at_the_setting(make):
    (finding,) = found("ap-algorithm-search", make(**searching(**BENCHMARK)))
    assert (finding.severity, finding.location.line) == ("warning", 11)
    assert [place.line for place in finding.also_at] == [29]
    assert finding.cost.ms_per_step == pytest.approx(8.5)
    assert [each.text for each in finding.evidence] == [
        "aten::convolution_backward: 2 calls per step, in which the GPU waits 8.00 ms",
        "aten::cudnn_convolution: 2 calls per step, in which the GPU waits 0.500 ms",
        "cudnn.benchmark: True",
        "2 combinations of sizes in 3 watched calls",
    ]


def test_without_its_setting_the_search_is_found_at_the_convolution(make):
    (finding,) = found("ap-algorithm-search", make(**searching()))
    assert finding.location.line == 29


def test_the_setting_alone_is_no_search(make):
    other = {"category": "idle_sync", "what": "cudaEventSynchronize", "ms": 8.0}
    assert found("ap-algorithm-search", make(**step(other, **BENCHMARK))) == ()


# -- ap-custom-op-on-host ---------------------------------------------------------------------

OPERATOR = "bridge::limits"
BODY = (
    {"op_id": 0, "name": "train.py:33", "kind": "line", "start_ns": 0, "duration_ns": 100,
     "self_ns": 1, "file": FILE, "line": 33},
    {"op_id": 1, "name": OPERATOR, "kind": "cpu_op", "start_ns": 10, "duration_ns": 80,
     "self_ns": 2, "file": FILE, "line": 33},
    {"op_id": 2, "name": "train.py:14", "kind": "line", "start_ns": 20, "duration_ns": 10,
     "self_ns": 10, "file": FILE, "line": 14},
    {"op_id": 3, "name": "train.py:15", "kind": "line", "start_ns": 40, "duration_ns": 50,
     "self_ns": 50, "file": FILE, "line": 15},
    {"op_id": 4, "name": "train.py:40", "kind": "line", "start_ns": 110, "duration_ns": 500,
     "self_ns": 500, "file": FILE, "line": 40},
)  # fmt: skip


def operator(ms, *, clock="device", body=BODY):
    category = "idle_custom_op" if clock == "device" else "user_kernel"
    detail = {"category": category, "what": OPERATOR, "in_graph": True, "ms": ms}
    lines = [{"stance": "eager", "tid": "1", **each} for each in body]
    return step(detail, ops=[{"name": OPERATOR}], clock=clock, line_ops=lines)


def test_a_custom_operator_on_the_host_is_found_at_the_slowest_line_of_its_body(make):
    (finding,) = found("ap-custom-op-on-host", make(**operator(8.0)))
    assert (finding.severity, finding.location.line) == ("warning", 15)
    assert [place.line for place in finding.also_at] == [33]
    assert finding.title == (
        "The GPU waits for 80 % of a step while custom operator bridge::limits runs on the host"
    )
    assert found("ap-custom-op-on-host", make(**operator(0.01))) == ()


def test_without_a_gpu_it_is_information_about_python_that_is_much_of_the_step(make):
    (finding,) = found("ap-custom-op-on-host", make(**operator(8.0, clock="host")))
    assert (finding.severity, finding.weighs) == ("info", True)
    assert found("ap-custom-op-on-host", make(**operator(2.0, clock="host"))) == ()
    compiled_code = operator(8.0, clock="host", body=BODY[:2])
    assert found("ap-custom-op-on-host", make(**compiled_code)) == ()


def test_the_work_of_a_custom_operator_on_the_gpu_is_no_stall(make):
    detail = {"category": "user_kernel", "what": "my_kernel", "ms": 8.0}
    rows = step(detail, ops=[{"name": OPERATOR}])
    assert make(**rows)["host_stalls"].is_empty()


# -- ap-busy-thread ---------------------------------------------------------------------------


def looking(waited_ms, ran_ms, *, looks=4, file=FILE, calls=0):
    """The lock is away for ``waited_ms`` at each look, and the thread runs for ``ran_ms``."""
    block = {**COMPILED, "pair_index": 0, "host_ms": 100.0, "thread_ms": 40.0, "queued_ms": 10.0}
    at = {"name": "watch", "native_id": 7, "file": file, "function": "run", "interval_ms": 5.0}
    rows = step(blocks=[{**block, "other_thread_calls": calls}])
    rows["thread_looks"] = [
        {**at, "look": number, "ran_ms": ran_ms, "waited_ms": waited_ms,
         "line": 30 if number else 29}
        for number in range(looks)
    ]  # fmt: skip
    return rows


def test_a_thread_that_holds_pythons_lock_is_named_with_its_line(make):
    (finding,) = found("ap-busy-thread", make(**looking(5.1, 4.0)))
    assert (finding.severity, finding.location.line) == ("warning", 30)
    assert finding.cost.ms_per_step == pytest.approx(5.0)
    assert finding.title == (
        "Thread watch runs Python at train.py:30 and holds Python's lock: each step waits for up "
        "to 5.00 ms"
    )
    assert "in 4 of 4 looks" in finding.evidence[0].text


def pool_of_threads(ran_ms, *, gpu_ms=0.0):
    """Two threads of a pool rest at each look, and run for ``ran_ms`` of a block of 100 ms.

    The steps' thread wants no processor for half of the time: 5 of 10 ms.
    """
    rows = looking(0.04, 0.0)
    rows["thread_looks"] = [
        {**row, "name": f"Pool-0_{n}", "file": None, "line": None, "function": None}
        for row in rows["thread_looks"]
        for n in range(2)
    ]
    rows["thread_blocks"] = [
        {"stance": "compiled", "name": f"Pool-0_{n}", "ran_ms": ran_ms / 2} for n in range(2)
    ]
    place = {"name": "Pool-0_1", "file": FILE, "function": "read"}
    rows["threads_seen"] = [{**place, "line": line, "seen": line} for line in (12, 14)]
    account = {"stance": "compiled", "clock": "device", "kind": "busy", "category": "gemm"}
    rows["accounting"] = [*rows.get("accounting", ()), {**account, "ms": gpu_ms}]
    return rows


def test_threads_of_a_pool_that_work_while_the_steps_wait_are_one(make):
    (finding,) = found("ap-busy-thread", make(**pool_of_threads(40.0)))
    assert finding.location.line == 14
    assert finding.cost.ms_per_step == pytest.approx(4.0)
    assert finding.title == (
        "Threads Pool-0_* run Python at train.py:14 for 4.00 ms of a step: each step waits for up "
        "to 4.00 ms"
    )


@pytest.mark.parametrize("rows", [pool_of_threads(10.0), pool_of_threads(40.0, gpu_ms=4.0)])
def test_a_pool_that_works_little_or_while_the_gpu_does_is_passed_over(make, rows):
    assert found("ap-busy-thread", make(**rows)) == ()


@pytest.mark.parametrize(
    "rows",
    [
        looking(0.04, 0.03),  # works in code that lets go of the lock
        looking(5.1, 0.0),  # another thread holds it, none of Python's
        looking(5.1, 4.0, looks=2),
        looking(5.1, 4.0, file=None),
        looking(5.1, 4.0, calls=3),
        step(thread_looks=[{"look": 0, "name": None}]),
    ],
)
def test_threads_that_wait_or_let_go_of_the_lock_are_passed_over(make, rows):
    assert found("ap-busy-thread", make(**rows)) == ()


# -- ap-debug-switch --------------------------------------------------------------------------


def settings(*rows, device="NVIDIA H100", **more):
    known = [{"section": "torch", "name": name, "value": value} for name, value in rows]
    return step(environment=known, runs=[{"pid": 1, "device_name": device}], **more)


ANOMALY = "autograd.detect_anomaly"
CHECKED = (
    {"name": "autograd::engine::evaluate_function: MulBackward0", "duration_ns": 9_000_000},
    {"name": "aten::isnan", "duration_ns": 600_000},
    {"name": "aten::_is_any_true", "duration_ns": 1_800_000},
)


def checks(rows):
    """The operators of ``CHECKED`` in every step, the first around the others."""
    for number in range(4):
        top = 100 * (number + 1)
        rows["cpu_ops"] += [
            {**COMPILED, "step": number, "op_id": top + index, "parent_id": top if index else None,
             **op}
            for index, op in enumerate(CHECKED)
        ]  # fmt: skip
    return rows


@pytest.mark.parametrize("known", [[(ANOMALY, "True")], [(ANOMALY, "False")], []])
def test_anomaly_detection_costs_what_its_checks_take(make, known):
    site = {"name": ANOMALY, "file": FILE, "line": 50, "function": "main"}
    rows = checks(settings(("grad_enabled_steps", "True"), *known, setting_sites=[site]))
    (finding,) = found("ap-debug-switch", make(**rows))
    assert (finding.severity, finding.location.line) == ("warning", 50)
    assert finding.cost.ms_per_step == pytest.approx(10.0 * 2.4 / 12.0)
    assert finding.evidence[1].text == "1 tensor checked per step, 2.00 ms"


@pytest.mark.parametrize(
    ("options", "line"), [('{"nan_asserts": true}', 54), ("null", 50), ('{"max_autotune": 1}', 50)]
)
def test_checks_of_what_graphs_take_cost_what_they_take(make, options, line):
    call = {"region_id": 0, "call_file": FILE, "call_line": 54, "options": options}
    site = {"name": "nan_asserts", "file": FILE, "line": 50, "function": "main"}
    rows = settings(("grad_enabled_steps", "True"), setting_sites=[site], regions=[call])
    ops = [("## Call CompiledFxGraph fabc ##", 9.0), ("aten::isnan", 0.6), ("aten::any", 1.8)]
    for step_number in range(4):
        top = 100 * (step_number + 1)
        rows["cpu_ops"] += [
            {**COMPILED, "step": step_number, "op_id": top + index, "name": name,
             "parent_id": top if index else None, "duration_ns": int(1e6 * ms)}
            for index, (name, ms) in enumerate(ops)
        ]  # fmt: skip
    (finding,) = found("ap-debug-switch", make(**rows))
    assert (finding.severity, finding.location.line) == ("warning", line)
    assert finding.title.startswith("Compiled code checks its inputs")
    where = "options" if line == 54 else "torch._inductor.config"
    assert finding.remedy == (f"{where}.nan_asserts=False",)
    assert finding.cost.ms_per_step == pytest.approx(10.0 * 2.4 / 12.0)


@pytest.mark.parametrize("shown", [True, False])
def test_memory_that_every_tensor_takes_from_the_driver_costs_its_calls(make, shown):
    calls = [("cudaMalloc", 2_000_000, "alloc"), ("cudaFree", 2_000_000, "alloc")]
    calls.append(("cudaLaunchKernel", 2_000_000, "launch"))
    launches = [
        {**COMPILED, "step": number, "name": name, "kind": kind, "duration_ns": ns}
        for number in range(4)
        for name, ns, kind in calls
    ]
    on = ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
    rows = settings(on, kernel_launches=launches)
    if not shown:  # the profiler recorded no work of the GPU
        window = {**COMPILED, "purpose": "time", "steps": 4, "host_ms": 80.0}
        rows |= {"step_counts": [], "profile_windows": [window]}
    (finding,) = found("ap-debug-switch", make(**rows))
    assert finding.cost.ms_per_step == pytest.approx(10.0 * 4.0 / (12.0 if shown else 20.0))
    assert finding.evidence[1].text.startswith("2 calls for memory per step, ")


@pytest.mark.parametrize(
    ("row", "device", "severity"),
    [
        ((ANOMALY, "True"), "cpu", "warning"),
        (("autograd.profiler", "True"), "cpu", "warning"),
        (("deterministic_algorithms", "True"), "cpu", "info"),
        (("CUDA_LAUNCH_BLOCKING", "1"), "NVIDIA H100", "warning"),
        (("PYTORCH_NO_CUDA_MEMORY_CACHING", "1"), "NVIDIA H100", "warning"),
        (("CUDA_LAUNCH_BLOCKING", "1"), "cpu", None),
        (("CUDA_LAUNCH_BLOCKING", "0"), "NVIDIA H100", None),
        ((ANOMALY, "False"), "cpu", None),
        (("cudnn.enabled", "True"), "NVIDIA H100", None),
        (("cudnn.enabled", "False"), "cpu", None),
        (("cudnn.enabled", "False"), "NVIDIA H100", "info"),
    ],
)
def test_each_switch_that_is_on_has_its_finding(make, row, device, severity):
    findings = found("ap-debug-switch", make(**settings(row, device=device)))
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    undone = {
        ANOMALY: "detect_anomaly=False",
        "deterministic_algorithms": "deterministic_debug_mode=default",
        "cudnn.enabled": "torch.backends.cudnn.enabled=True",
    }
    for finding in findings:  # a variable that torch reads once is no setting
        assert finding.remedy[:1] == ((undone[row[0]],) if row[0] in undone else ())


@pytest.mark.parametrize(
    ("name", "value", "op", "ms", "severity"),
    [
        ("deterministic_algorithms", "True", "aten::_index_put_impl_", 3.0, "warning"),
        ("deterministic_algorithms", "True", "aten::_index_put_impl_", 0.01, "info"),
        ("deterministic_algorithms", "True", "aten::index", 3.0, "info"),
        ("cudnn.enabled", "False", "aten::_slow_conv2d_backward", 3.0, "warning"),
        ("cudnn.enabled", "False", "aten::_thnn_fused_lstm_cell", 3.0, "warning"),
        ("cudnn.enabled", "False", "aten::mm", 3.0, None),
    ],
)
def test_a_switch_costs_the_kernels_that_run_because_of_it(make, name, value, op, ms, severity):
    ran = {"stance": "compiled", "clock": "device", "cpu_op": op, "count": 7.0, "ms": ms}
    eager = {**ran, "stance": "eager", "cpu_op": "aten::_slow_conv2d_forward"}
    findings = found("ap-debug-switch", make(**settings((name, value), kernel_groups=[ran, eager])))
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    counted = severity and op != "aten::index"
    assert [each.cost.ms_per_step for each in findings if counted] == ([ms] if counted else [])
    assert all(("7 kernels" in each.evidence[-1].text) == bool(counted) for each in findings)


MATH = "aten::_scaled_dot_product_attention_math"
FLASH, EFFICIENT, CUDNN = "cuda.flash_sdp", "cuda.mem_efficient_sdp", "cuda.cudnn_sdp"
EVERY = (FLASH, EFFICIENT, CUDNN)
HALF, FULL = "c10::BFloat16", "float"


def separate_attention(*known, dtype=HALF, sites=(), device="NVIDIA H100", **more):
    """Attention at line 38, with 5 of 10 ms of the step there; ``sites``: name, line."""
    op = {"name": MATH, "input_types": f'["{dtype}", "{dtype}", "{dtype}", ""]'}
    rows = settings(
        ("grad_enabled_steps", "False"),
        *known,
        device=device,
        setting_sites=[{"name": name, "file": FILE, "line": line} for name, line in sites],
        line_ops=[{"stance": "eager", "name": MATH, "file": FILE, "line": 38}],
        **more,
    )
    rows["cpu_ops"] += [{**op, "stance": "eager", "step": 0, "op_id": 0}]
    ran = [
        ("gemm", "aten::bmm", 38, 3.0),
        ("generated_reduction", "triton_red_0", 38, 2.0),
        ("gemm", "aten::mm", 38, 0.5),
        ("gemm", "aten::bmm", 41, 0.25),
        ("elementwise", "aten::add", 41, 0.25),
    ]
    rows["matched_kernels"] = [
        {**COMPILED, "clock": "device", "category": category, "cpu_op": op, "name": op,
         "file": FILE, "line": line, "ms": ms, "count": 2.0}
        for category, op, line, ms in ran
    ]  # fmt: skip
    return rows


OFF = tuple((name, "False") for name in EVERY)
SWITCHED = tuple((name, 19 + index) for index, name in enumerate(EVERY))


@pytest.mark.parametrize(
    ("known", "dtype", "sites", "line"),
    [
        (OFF, HALF, SWITCHED, 19),
        (OFF, HALF, (), 38),
        (OFF[:2], HALF, (), 38),  # a torch without cudnn's
        (OFF, FULL, SWITCHED, 20),  # which only one backend takes
        (((FLASH, "True"), OFF[1]), HALF, SWITCHED, None),
        (((FLASH, "True"), OFF[1]), FULL, SWITCHED, 20),
        (((FLASH, "True"), (EFFICIENT, "True")), HALF, SWITCHED, None),  # switched on again
        (((FLASH, "True"), (EFFICIENT, "True")), HALF, [("sdpa_kernel", 37)], 37),
        ((), HALF, SWITCHED, 19),  # an older recording
        ((), HALF, SWITCHED[:2], None),
        (OFF, "double", SWITCHED, None),  # no fused backend takes it
    ],
)
def test_attention_without_its_fused_backends(make, known, dtype, sites, line):
    findings = found(
        "ap-debug-switch", make(**separate_attention(*known, dtype=dtype, sites=sites))
    )
    assert [finding.location.line for finding in findings] == ([line] if line else [])
    for finding in findings:
        assert finding.title.startswith(f"Attention at {FILE[3:]}:38 runs as separate operators")
        assert (finding.severity, finding.cost.ms_per_step) == ("warning", 5.0)
        assert finding.evidence[0].text == "4 kernels of attention per compiled step, 5.00 ms"
        assert bool(finding.remedy) is (line != 37)


def test_on_a_cpu_one_backend_takes_all_attention(make):
    rows = separate_attention((FLASH, "False"), (EFFICIENT, "True"), dtype=FULL, device="cpu")
    (finding,) = found("ap-debug-switch", make(**rows))
    assert finding.remedy[0] == "sdpa=FLASH_ATTENTION"
    rows = separate_attention((FLASH, "True"), (EFFICIENT, "False"), dtype=FULL, device="cpu")
    assert found("ap-debug-switch", make(**rows)) == ()


@pytest.mark.parametrize(
    ("flash_ms", "share", "cost"), [(0.4, 0.95, 4.6), (1.0, 0.8, 4.0), (7.9, 0.01, None)]
)
def test_what_the_best_backend_saves_of_attention_is_timed(make, flash_ms, share, cost):
    gain = {"kind": "attention", "dtype": "bfloat16", "shapes": 1, "base_ms": 8.0}
    gains = [
        {**gain, "way": "flash attention", "ms": flash_ms, "share": share},
        {**gain, "way": "math", "ms": 0.1, "share": 0.99},
    ]
    (*findings,) = found("ap-debug-switch", make(**separate_attention(*OFF, shape_gains=gains)))
    assert [each.cost.ms_per_step for each in findings] == ([pytest.approx(cost)] if cost else [])
    for finding in findings:
        assert finding.confidence == "measured"
        assert "SDPBackend.FLASH_ATTENTION" in finding.snippet.text
        assert finding.remedy[0] == "sdpa=FLASH_ATTENTION"


@pytest.mark.parametrize(("line", "ms"), [(None, 6.0), (41, 5.0)])
def test_products_that_a_pattern_made_have_no_line(make, line, ms):
    rows = separate_attention(*OFF)
    rows["matched_kernels"][3] |= {"file": line and FILE, "line": line, "ms": 1.0}
    (finding,) = found("ap-debug-switch", make(**rows))
    assert finding.cost.ms_per_step == ms
