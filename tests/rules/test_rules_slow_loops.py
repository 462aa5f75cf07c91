"""Rules on generated C++ kernels that compute one element at a time, on hand-made rows."""

import pytest

from traceview.diagnosis.tree import tree
from traceview.rules import catalogue

RULES = {rule.name: rule for rule in catalogue()}
LOOP = {
    "compile_key": "k", "compile_id": "0/0", "kernel_name": "cpp_fused_roll_tanh_0",
    "why": "wrapped_index", "functions": ["tanh"], "evaluations": 65536, "count": 1.0,
    "user_lines": ["/u/train.py:9"], "ms": 2.0, "slower_ms": 1.5,
}  # fmt: skip
STORE = "torch._inductor.config.realize_opcount_threshold=0"
SPEEDUP = {"eager_ms": 1.0, "compiled_ms": 2.5, "speedup": 0.4, "pairs_used": 9, "outcome": "hurt"}


def found(rule, make, *loops, outcome="hurt", **more):
    tables = make(
        speedups=[{**SPEEDUP, "outcome": outcome}],
        slow_loops=[{**LOOP, **loop} for loop in loops],
        **more,
    )
    return list(RULES[rule].check(tables))


def test_kernels_of_one_reason_are_one_finding_at_the_slowest_ones_line(make):
    smaller = {"slower_ms": 0.5, "user_lines": ["/u/train.py:20"], "functions": ["exp"]}
    (finding,) = found("ind-scalar-loop", make, smaller, {})
    assert (finding.location.line, finding.also_at[0].line) == (9, 20)
    assert finding.cost.ms_per_step == 2.0
    assert "tanh and exp" in finding.title
    assert finding.severity == "warning"


def test_where_compiling_helped_it_is_information(make):
    (finding,) = found("ind-scalar-loop", make, {}, outcome="helped")
    assert finding.severity == "info"


@pytest.mark.parametrize("slower", [0.0, None, 0.1])
def test_a_kernel_that_is_hardly_slower_than_eager_is_not_reported(make, slower):
    for rule, why in (("ind-scalar-loop", "wrapped_index"), ("ind-random-numbers", "random")):
        assert found(rule, make, {"why": why, "slower_ms": slower}) == []


def test_random_numbers_are_a_finding_of_their_own(make):
    row = {"why": "random", "functions": ["randn"]}
    assert found("ind-scalar-loop", make, row) == []
    (finding,) = found("ind-random-numbers", make, row)
    assert finding.snippet.text == "torch._inductor.config.fallback_random = True"


@pytest.mark.parametrize(
    ("drawn", "slower", "cost", "words"),
    [
        (1.8, 0.9, 1.8, "0.900 ms slower than eager (36 % of the step)"),
        (0.2, 0.9, 0.9, "0.900 ms slower than eager (36 % of the step)"),
        (1.8, 0.0, 1.8, "1.80 ms that eager would not take (72 % of the step)"),
        (0.3, 0.0, None, ""),
    ],
)
def test_random_numbers_cost_what_drawing_them_takes(make, drawn, slower, cost, words):
    row = {"why": "random", "functions": ["randn"], "drawn_ms": drawn, "slower_ms": slower}
    findings = found("ind-random-numbers", make, row)
    assert [each.cost.ms_per_step for each in findings] == ([cost] if cost else [])
    assert all(words in each.title for each in findings)


def test_a_function_of_two_arguments_has_no_operator_to_paste(make):
    row = {"why": "no_vector_form", "functions": ["igamma"]}
    (finding,) = found("ind-scalar-loop", make, row)
    assert finding.snippet is None
    (finding,) = found("ind-scalar-loop", make, {**row, "functions": ["erfinv"]})
    assert "torch.special.erfinv(x)" in finding.snippet.text


def test_what_reads_at_calculated_places_is_the_place(make):
    row = {"why": "loaded_index", "reader": "grid_sampler_2d"}
    row |= {"user_lines": ["/u/train.py:8", "/u/train.py:9"]}
    (finding,) = found("ind-scalar-loop", make, row)
    assert (finding.location.line, finding.also_at[0].line) == (8, 9)
    assert "tanh at train.py:9 is computed" in finding.title
    assert "grid_sampler_2d at train.py:8 reads" in finding.title
    assert "compiler.disable" in finding.snippet.text
    (finding,) = found("ind-scalar-loop", make, {**row, "reader": "index"})
    assert "compiled function of its own" in finding.what_to_do


def test_what_turns_back_at_an_edge_is_the_place(make):
    row = {"why": "reversed_index", "reader": "reflection_pad2d"}
    (finding,) = found(
        "ind-scalar-loop", make, {**row, "user_lines": ["/u/train.py:8", "/u/t.py:9"]}
    )
    assert "reflection_pad2d at train.py:8 reads backwards or turns back" in finding.title
    assert finding.remedy == ("torch._inductor.config.cpp.enable_tiling_heuristics=False",)


MASKS = {"why": "masks", "functions": ["VecMask::store"], "evaluations": 786432}


@pytest.mark.parametrize(
    ("reader", "kept", "functions", "said", "done", "severity"),
    [
        (
            "amax",
            "backward",
            ["VecMask::store"],
            "for the backward",
            "x.max(dim=1).values",
            "warning",
        ),
        ("gt", "result", ["VecMask::store"], "as a result", ".float()", "warning"),
        ("gt", "backward", ["VecMask::store"], "for the backward", "compiler.disable", "info"),
        (None, None, ["VecMask::from"], "is read one element at a time", "mask.float()", "warning"),
    ],
)
def test_masks_say_what_to_do_by_what_they_are_for(
    make, reader, kept, functions, said, done, severity
):
    row = {**MASKS, "reader": reader, "kept": kept, "functions": functions}
    (finding,) = found("ind-stored-masks", make, row, outcome="neutral")
    assert said in finding.title
    assert "(786,432 bools)" in finding.title
    assert done in finding.snippet.text
    assert finding.severity == severity


def test_masks_of_a_kernel_that_beats_eager_count_where_they_are_much_of_a_step(make):
    row = {**MASKS, "slower_ms": 0.0, "converted_ms": 0.9}
    (finding,) = found("ind-stored-masks", make, row, outcome="helped")
    assert "up to 0.900 ms of the step" in finding.title
    assert finding.weighs
    assert found("ind-stored-masks", make, {**row, "converted_ms": 0.3}, outcome="helped") == []


def test_few_elements_say_how_many(make):
    (finding,) = found("ind-scalar-loop", make, {"why": "few_elements", "length": 3})
    assert "a last dimension of 3 elements" in finding.title
    assert "the dimension of 3 first" in finding.what_to_do
    row = {"why": "few_elements", "length": 2, "reader": "native_group_norm"}
    (finding,) = found("ind-scalar-loop", make, row)
    assert "the 2 channels of a group" in finding.what_to_do
    assert finding.location.line == 9


def switched(make, name="cpp.simdlen", value="0", source="std::exp(tmp0)", why="strided", **more):
    """The title and lines of what is found in a script that sets ``name``."""
    setting = {"section": "env" if name.isupper() else "inductor_config"}
    kernel = {"compile_key": "k", "source_code": source}
    tables = make(
        speedups=[SPEEDUP],
        slow_loops=[{**LOOP, "why": why}],
        generated_kernels=[kernel, {"compile_key": "other", "source_code": "at::vec::exp"}],
        environment=[{**setting, "name": name, "value": value}],
        setting_sites=[{"name": name, "file": "/u/train.py", "line": 3}],
        **more,
    )
    (finding,) = RULES["ind-scalar-loop"].check(tables)
    return finding


def test_a_setting_that_leaves_no_vectors_is_the_cause(make):
    finding = switched(make)
    assert (finding.location.line, finding.also_at[0].line) == (3, 9)
    assert finding.title.startswith("cpp.simdlen = 0 (train.py:3) leaves generated code without")
    assert "tanh is computed one element at a time, 1.50 ms slower" in finding.title
    assert finding.remedy == ("torch._inductor.config.cpp.simdlen=None",)
    assert switched(make, "ATEN_CPU_CAPABILITY", "default").what_to_do.startswith("Unset it")


@pytest.mark.parametrize(
    "known",
    [
        {"source": "at::vec::maximum(tmp0, tmp1)"},
        {"source": None},
        {"why": "no_vector_form"},
        {"value": "256"},
        {"name": "cpp.threads"},
        {"name": "ATEN_CPU_CAPABILITY", "value": "avx2"},
    ],
)
def test_what_has_another_cause_than_the_setting_keeps_it(make, known):
    assert switched(make, **known).location.line == 9


def test_a_width_that_the_cpu_may_lack_is_the_cause_where_nothing_else_is(make):
    assert switched(make, value="512", why="not_vectorized").location.line == 3


def test_an_option_of_the_compile_call_that_leaves_no_vectors(make):
    region = {"call_file": "/u/train.py", "call_line": 5, "options": '{"cpp.simdlen": 1}'}
    finding = switched(make, "cpp.threads", regions=[region])
    assert finding.location.line == 5
    assert finding.remedy == ()


@pytest.mark.parametrize(
    ("ms", "outcome", "severities"),
    [(0.1, "hurt", []), (0.6, "hurt", ["warning"]), (0.6, "helped", ["info"])],
)
@pytest.mark.parametrize("why", ["layout", "dtype"])
def test_weights_that_are_copied_in_every_call(make, why, ms, outcome, severities):
    copied = {
        "compile_key": "k", "compile_id": "0/0", "kernel_name": "cpp_fused_convolution_1",
        "weights": 2, "bytes": 4096, "user_lines": ["/u/net.py:7"], "ms": ms, "share": 1.0,
        "why": why, "dtype": "bfloat16",
    }  # fmt: skip
    tables = make(speedups=[{**SPEEDUP, "outcome": outcome}], weight_copies=[copied])
    rules = {"layout": "ind-weight-layout", "dtype": "ind-weight-casts"}
    assert not list(RULES[rules.pop("dtype" if why == "layout" else "layout")].check(tables))
    findings = list(RULES[rules[why]].check(tables))
    assert [finding.severity for finding in findings] == severities
    assert [finding.location.line for finding in findings] == [7] * len(severities)


@pytest.mark.parametrize(
    ("ms", "outcome", "severities"),
    [(0.1, "hurt", []), (0.6, "hurt", ["warning"]), (0.6, "helped", ["info"])],
)
def test_a_forward_that_the_backward_computes_again_by_a_setting(make, ms, outcome, severities):
    again = {"effect": "recompute", "what": "aten::addmm ×2", "ms": ms}
    again |= {"file": "/u/net.py", "line": 9}
    setting = {"section": "functorch_config", "name": "activation_memory_budget"}
    setting |= {"value": "0.0", "default": "1.0"}
    site = {"name": "activation_memory_budget", "file": "/u/net.py", "line": 4}
    known = {"speedups": [{**SPEEDUP, "outcome": outcome}], "waterfall_rows": [again]}
    check = RULES["mem-forward-again"].check
    findings = list(check(make(**known, environment=[setting], setting_sites=[site])))
    assert [finding.severity for finding in findings] == severities
    assert [(f.location.line, f.also_at[0].line) for f in findings] == [(4, 9)] * len(severities)
    assert not list(check(make(**known, environment=[])))  # the partitioner's own choice


def test_what_is_computed_again_says_how_often(make):
    row = {"why": "recomputed", "functions": ["pow"], "evaluations": 131072, "distinct": 1024}
    assert found("ind-scalar-loop", make, row) == []
    (finding,) = found("ind-recomputed", make, row)
    assert "pow at train.py:9 is computed 128 times for each value" in finding.title
    assert "131,072 pow a run, for 1,024 different values" in finding.evidence[0].text
    assert "each row of a broadcast" in finding.explanation
    (finding,) = found("ind-recomputed", make, row | {"looked_up": True})
    assert "each look-up computes the value that it reads" in finding.explanation
    assert finding.what_to_do.startswith("Compute what is looked up in a compiled function")
    row |= {"evaluations": 221184, "distinct": 96, "looked_up": True}
    row |= {"reader": "embedding", "reader_line": "/u/train.py:12"}
    (finding,) = found("ind-recomputed", make, row)
    times = "2,304 times for each value, in the look-ups of embedding at train.py:12"
    assert times in finding.title


@pytest.mark.parametrize(
    ("op", "name", "remedy"),
    [
        ("prims._low_memory_max_pool_with_offsets", "cpp_fused_roll_tanh_0", ()),
        ("aten.roll", "cpp_fused_roll_tanh_0", (STORE,)),
        ("aten.avg_pool2d", "cpp_fused_other_1", (STORE,)),
    ],
)
def test_no_option_keeps_what_a_pooling_reads(make, op, name, remedy):
    row = {"why": "recomputed", "functions": ["pow"], "evaluations": 131072, "distinct": 1024}
    kernel = {"compile_key": "k", "kernel_name": name, "fused_ops": ["aten.pow", op]}
    (finding,) = found("ind-recomputed", make, row, generated_kernels=[kernel])
    assert finding.remedy == remedy
    assert ("Leave the pooling in eager" in finding.what_to_do) == (not remedy)


@pytest.mark.parametrize(
    ("repeated", "outcome", "severities"),
    [
        (1.9, "helped", ["info"]),
        (1.9, "neutral", ["warning"]),
        (0.4, "helped", []),
        (None, "hurt", []),
    ],
)
def test_what_is_computed_again_costs_a_kernel_that_beats_eager_too(
    make, repeated, outcome, severities
):
    row = {"why": "recomputed", "functions": ["pow"], "evaluations": 131072, "distinct": 1024}
    row |= {"slower_ms": 0.0, "repeated_ms": repeated}
    findings = found("ind-recomputed", make, row, outcome=outcome)
    assert [finding.severity for finding in findings] == severities
    for finding in findings:
        assert finding.title.endswith("128 times for each value, up to 1.90 ms of the step (76 %)")
        assert finding.cost.about.startswith("at most")


@pytest.mark.parametrize(
    ("eager", "compiled", "severities"),
    [(1.0, 0.1, []), (0.4, 0.4, ["info"]), (None, 1.2, ["warning"]), (1.0, None, [])],
)
def test_new_memory_in_every_step(make, eager, compiled, severities):
    effect = {"effect": "page_faults", "eager_ms": eager, "compiled_ms": compiled}
    counts = [
        {"stance": stance, "page_faults": faults}
        for stance, faults in (("eager", 0.0), ("compiled", 8192.0))
    ]
    fault = {"device": "cpu", "kind": "page_fault", "value": 0.15, "unit": "us"}
    preloaded = {"section": "env", "name": "LD_PRELOAD", "value": "libjemalloc.so.2"}
    tables = make(speedups=[SPEEDUP], waterfall=[effect], step_counts=counts, ceilings=[fault])
    findings = list(RULES["mem-page-faults"].check(tables))
    assert [finding.severity for finding in findings] == severities
    assert all("MALLOC_MMAP_MAX_=0" in finding.snippet.text for finding in findings)
    tables = make(
        speedups=[SPEEDUP], waterfall=[effect], step_counts=counts, ceilings=[fault],
        environment=[preloaded],
    )  # fmt: skip
    for finding in RULES["mem-page-faults"].check(tables):
        assert finding.snippet.text.startswith("MALLOC_CONF=")


@pytest.mark.parametrize(("pages_ms", "follows"), [(1.0, True), (0.1, False)])
def test_new_memory_follows_from_writes_that_make_most_of_it(make, pages_ms, follows):
    effect = {"effect": "page_faults", "eager_ms": 0.0, "compiled_ms": 1.2}
    counts = [{"stance": stance, "page_faults": 8192.0} for stance in ("eager", "compiled")]
    tables = make(
        speedups=[SPEEDUP], waterfall=[effect], step_counts=counts,
        ceilings=[{"device": "cpu", "kind": "page_fault", "value": 0.15, "unit": "us"}],
        compiles=[{"compile_key": "k", "co_filename": "/u/train.py", "co_firstlineno": 3}],
        partial_writes=[{**WRITE, "to_input": False, "pages_ms": pages_ms}],
    )  # fmt: skip
    found = [RULES[name].check(tables) for name in ("ind-partial-write", "mem-page-faults")]
    rules = {rule.name: rule.follows for rule in RULES.values()}
    (cause, *others) = tree([finding for each in found for finding in each], rules, 1000)
    assert [each.code for each in cause.symptoms] == (["TV419"] if follows else [])
    assert len(others) == (not follows)


FUSION = {
    "compile_key": "k", "compile_id": "0/0", "kernel_name": "cpp_fused_index_0", "kernels": 1,
    "operators": 2.0, "user_lines": ["/u/train.py:9"], "eager_ms": 0.5, "compiled_ms": 2.0,
    "slower_ms": 1.5, "effect_ms": 1.5, "explained_ms": 0.0, "clock": "host", "single": 0.9,
    "looked_up": 4096, "functions": ["floor"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "count"),
    [
        ({}, 1),
        ({"explained_ms": 0.8}, 0),  # other rules say most of it
        ({"explained_ms": 0.2}, 1),
        ({"effect_ms": -0.5}, 0),  # other groups gain more
        ({"slower_ms": 0.2}, 0),  # less than a tenth of the step
    ],
)
def test_what_fusion_loses_without_another_finding(make, columns, count):
    tables = make(speedups=[SPEEDUP], slow_fusions=[{**FUSION, **columns}])
    findings = list(RULES["ind-slower-fusion"].check(tables))
    assert len(findings) == count
    for finding in findings:
        assert (finding.location.line, finding.severity) == (9, "warning")
        assert "takes 2.00 ms of a step" in finding.title
        assert "90 % of the slowest kernel's instructions" in finding.explanation


def test_a_kernel_of_separate_attention_is_left_to_the_switch_that_makes_it(make):
    switch = {"name": "fused_attention", "user_lines": ["/u/train.py:9"]}
    tables = make(speedups=[SPEEDUP], slow_fusions=[FUSION], slow_switches=[switch])
    assert list(RULES["ind-slower-fusion"].check(tables)) == []


@pytest.mark.parametrize(
    ("reader", "looking_up", "line"),
    [("grid_sampler_2d", 0.9, 12), ("grid_sampler_2d", 0.3, 9), ("index", 0.9, 9), (None, 0.9, 9)],
)
def test_sampling_that_most_of_a_kernel_is_for_is_the_place(make, reader, looking_up, line):
    row = {"reader": reader, "reader_line": reader and "/u/train.py:12", "looking_up": looking_up}
    tables = make(speedups=[SPEEDUP], slow_fusions=[{**FUSION, **row}])
    (finding,) = RULES["ind-slower-fusion"].check(tables)
    assert finding.location.line == line
    named = finding.title.startswith("grid_sample at train.py:12 is slower in generated code")
    assert named == ("index arithmetic" in finding.explanation) == (line == 12)
    assert ("this call" in finding.what_to_do) == (line == 12)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ({"single": 0.003}, "The slowest kernel reads 4,096 elements a run"),
        ({"single": 0.0, "looked_up": 0}, "The slowest kernel's loops call floor"),
        ({"single": 0.0, "looked_up": 0, "functions": []}, "shows no reason"),
    ],
)
def test_only_what_is_a_reason_is_said_of_a_kernel(make, shown, text):
    tables = make(speedups=[SPEEDUP], slow_fusions=[{**FUSION, **shown}])
    (finding,) = RULES["ind-slower-fusion"].check(tables)
    assert text in finding.explanation
    assert "at a time" not in finding.explanation
    assert finding.what_to_do.startswith("Leave these lines in eager")


WRITE = {
    "compile_key": "k", "compile_id": "0/0", "kernel_name": "cpp_fused_copy_0", "writes": 1,
    "elements": 5_120_000, "changed": 20_000, "to_input": True, "share": 0.9, "ms": 1.0,
    "user_lines": ["/u/train.py:9"], "slower_ms": 0.8,
}  # fmt: skip


def test_a_write_to_one_of_several_views_of_a_storage(make):
    views = {**WRITE, "merged": True, "clock": "device"}
    back = {**views, "kernel_name": "triton_poi_fused_3", "slower_ms": 0.3}
    (row,) = RULES["ind-partial-write"].check(
        make(speedups=[SPEEDUP], partial_writes=[views, back, back])
    )
    assert "to one of several views of one storage copies all 5,120,000" in row.title
    assert row.cost.ms_per_step == pytest.approx(1.4)
    assert [e.text.partition(":")[0] for e in row.evidence] == [
        "cpp_fused_copy_0",
        "triton_poi_fused_3",
    ]
    assert "of the bytes that it moves" in row.evidence[0].text
    assert ".clone()" in row.what_to_do


def test_a_part_that_is_written_costs_the_whole_tensor(make):
    chain = {"writes": 48, "to_input": False, "slower_ms": 0.5}
    tables = make(speedups=[SPEEDUP], partial_writes=[WRITE, {**WRITE, **chain}])
    whole, row = RULES["ind-partial-write"].check(tables)
    assert "train.py:9 goes through all 5,120,000 elements of a tensor to change 20" in whole.title
    assert "48 writes in a row at train.py:9" in row.title
    assert (whole.cost.ms_per_step, row.cost.ms_per_step) == (0.8, 0.5)
    assert "torch.stack" in row.what_to_do
    assert "Assign to the tensor itself" in whole.what_to_do
    tables = make(speedups=[SPEEDUP], partial_writes=[{**WRITE, "slower_ms": 0.01}])
    assert list(RULES["ind-partial-write"].check(tables)) == []


def test_tensors_that_writes_in_a_row_leave_behind_cost_new_memory(make):
    chain = {"to_input": False, "slower_ms": 0.1, "copies": 42, "pages_ms": 4.0}
    tables = make(speedups=[SPEEDUP], partial_writes=[{**WRITE, **chain}])
    (finding,) = RULES["ind-partial-write"].check(tables)
    assert finding.cost.ms_per_step == pytest.approx(4.1)
    assert "generated code makes 42, in memory that eager does not need" in finding.explanation
    assert "42 further tensors of that size" in finding.evidence[0].text
    assert "4.00 ms of page faults" in finding.evidence[0].text


def test_a_kernel_of_a_gpu_says_what_its_source_computes(make):
    triton = {"single": None, "looked_up": None, "functions": ["cos", "sin"], "calls": 96}
    shown = {"operations": 340, "float64": True}
    tables = make(speedups=[SPEEDUP], slow_fusions=[{**FUSION, **triton, **shown}])
    (finding,) = RULES["ind-slower-fusion"].check(tables)
    assert "340 values an element in float64 and calls cos and sin 96 times" in finding.explanation
    assert finding.what_to_do.startswith("Cast the float64 input to float32")


CACHED = {
    "file": "/u/train.py", "line": 20, "function": "weights", "in_file": "/u/train.py",
    "first_line": 5, "last_line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("eager_line", "ms", "severity"),
    [(None, 1.2, "warning"), (20, 1.2, "warning"), (7, None, "info")],
)
def test_a_cached_function_costs_what_eager_does_not_compute(make, eager_line, ms, severity):
    kernel = {"stance": "compiled", "name": "cpp_fused_exp_0", "ms": 1.2, "compile_id": "0/0"}
    eager = {"stance": "eager", "name": "aten::exp", "file": "/u/train.py", "line": eager_line}
    tables = make(
        speedups=[SPEEDUP],
        cached_calls=[CACHED],
        kernel_groups=[{**kernel, "user_lines": ["/u/train.py:21", "/u/train.py:8"]}],
        matched_kernels=[eager],
    )
    (finding,) = RULES["cap-cached-function"].check(tables)
    assert (finding.cost.ms_per_step, finding.severity) == (ms, severity)
    assert finding.location.line == 20


FEW = {
    "why": "few_programs", "functions": [], "evaluations": None, "programs": 1,
    "multiprocessors": 132, "reduced": 233_411, "made_for": 128, "profiled_ms": 2.0,
    "kernel_name": "triton_red_fused_sum_0", "idle_ms": 1.9,
}  # fmt: skip


def test_a_reduction_made_for_a_smaller_call_says_both_sizes(make):
    (finding,) = found("ind-few-programs", make, FEW)
    assert "1 program on 132 multiprocessors" in finding.title
    assert "128 elements" in finding.explanation
    assert "233,411" in finding.explanation
    assert (finding.severity, finding.remedy) == ("warning", ("dynamic=False",))


def test_a_long_row_that_was_not_split_is_no_question_of_sizes(make):
    (finding,) = found("ind-few-programs", make, {**FEW, "made_for": 262_144})
    assert finding.remedy == ()
    assert "two steps" in finding.what_to_do


def test_idle_multiprocessors_count_where_the_kernel_is_no_slower_than_eager(make):
    (finding,) = found("ind-few-programs", make, {**FEW, "slower_ms": 0.0}, outcome="helped")
    assert finding.cost.ms_per_step == 1.9
    assert "up to" in finding.title
    assert found("ind-few-programs", make, {**FEW, "slower_ms": 0.0, "idle_ms": 0.4}) == []
