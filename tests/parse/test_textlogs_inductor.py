import pytest
from textlog_runs import HEAD, lines, read, read_recorded

FUSION = f"V{HEAD}_inductor/scheduler.py:1] [0/0] [__fusion]"
HINTS = f"I{HEAD}_inductor/graph.py:1] [0/0] [__perf_hints]"


def test_fusion_decisions_of_forward_and_backward_stay_apart(tmp_path):
    found = read_recorded(tmp_path, "training")["fusions"]

    rounds = found.filter(decision="round").select(
        "compile_id", "round", "nodes_before", "nodes_after"
    )
    assert rounds.rows() == [
        ("0/0", 1, 7, 3), ("0/0", 2, 3, 3),
        ("0/0", 1, 10, 8), ("0/0", 2, 8, 7), ("0/0", 3, 7, 7),
        ("1/0", 1, 7, 7),
    ]  # fmt: skip
    fused = found.filter(decision="fused").select("node1", "node2").rows()
    assert fused[:4] == [
        ("op4", "op5"), ("op1", "op2"), ("op1_op2", "op3"), ("op1_op2_op3", "op4_op5"),
    ]  # fmt: skip
    refused = found.filter(decision="refused", node1="op3", node2="op5")["reason"].to_list()
    assert refused == ["intermediate nodes between node1 & node2", "no shared data"]


def test_a_pair_looked_at_in_two_rounds_is_one_row(tmp_path):
    found = read_recorded(tmp_path, "training")["fusions"]
    row = found.filter(decision="refused", node1="op7", node2="op9").row(0, named=True)
    assert (row["times"], row["round"], row["reason"]) == (2, 1, "no shared data")


@pytest.mark.parametrize(
    ("text", "node1", "speedup"),
    [
        (
            "can fuse (benchmark): fusing OrderedSet(['buf0']) with OrderedSet(['buf1']) cause "
            "\x1b[32m1.250\x1b[39mx speedup",
            "OrderedSet(['buf0'])",
            1.25,
        ),
        (
            "cannot fuse (benchmark): fusing {'buf0'} with {'buf1'} cause "
            "\x1b[31m1.600\x1b[39mx slowdown",
            "{'buf0'}",
            0.625,
        ),
        ("cannot fuse (benchmark): fusing causes \x1b[31m0.800\x1b[39mx slowdown", None, 0.8),
    ],
)
def test_a_benchmarked_fusion_says_its_speedup(tmp_path, text, node1, speedup):
    tables, _ = read(tmp_path, logs=lines(FUSION, text))
    row = tables["fusions"].row(0, named=True)
    assert (row["decision"], row["node1"]) == ("benchmarked", node1)
    assert row["speedup"] == pytest.approx(speedup)


def test_hints_are_sorted_into_kinds_and_counted(tmp_path):
    text = (
        "Using FallbackKernel: torch.ops.aten._fft_r2c.default\n"
        "possibly bad tiling: [{'y': 512, 'x': 8, 'r0_': 1}]\n"
        "\nReduction over non-contiguous dims.\n"
        "Consider setting config.triton.tile_reductions to True.\n"
        "Using FallbackKernel: torch.ops.aten._fft_r2c.default\n"
        "a hint of tomorrow <b>"
    )
    tables, _ = read(tmp_path, logs=lines(HINTS, text))

    hints = tables["perf_hints"].select("kind", "times", "message").rows()
    assert [(kind, times) for kind, times, _ in hints] == [
        ("fallback_kernel", 2),
        ("tiling", 1),
        ("non_contiguous_reduction", 1),
        ("other", 1),
    ]
    assert hints[3][2] == "a hint of tomorrow <b>"
    assert hints[2][2].endswith("Consider setting config.triton.tile_reductions to True.")


def test_fallback_kernels_of_a_real_compile(tmp_path):
    hints = read_recorded(tmp_path, "training")["perf_hints"]
    fallbacks = hints.filter(kind="fallback_kernel")["message"].to_list()
    assert "Using FallbackKernel: torch.ops.aten._fft_r2c.default" in fallbacks


def test_output_code_is_kept_with_its_aot_id_and_file(tmp_path):
    graphs = read_recorded(tmp_path, "training")["graphs"].to_dicts()

    assert [(g["compile_id"], g["aot_id"]) for g in graphs] == [
        ("0/0", "0_forward"),
        ("0/0", "0_backward"),
        ("1/0", "1_inference"),
    ]
    for graph in graphs:
        assert graph["kind"] == "output_code"
        compile(graph["text"], "generated", "exec")
        assert graph["file"].endswith(".py")
    assert "extern_kernels.addmm(" in graphs[0]["text"]


def test_kernels_of_the_code_are_listed(tmp_path):
    found = read_recorded(tmp_path, "training")["generated_kernels"].filter(aot_id="0_forward")
    kernels = {row["kernel_name"]: row for row in found.to_dicts()}

    fused = kernels["cpp_fused_gelu_native_layer_norm_0"]
    assert (fused["category"], fused["launch_sites"]) == ("cpp", 1)
    assert 'extern "C"' in fused["source_code"]
    assert kernels["extern_kernels.addmm"]["category"] == "extern"
    assert kernels["extern_kernels.addmm"]["source_code"] is None


def test_a_schedule_lists_its_nodes(tmp_path):
    prefix = f"V{HEAD}_inductor/codegen/simd.py:1] [0/0] [__schedule]"
    text = "Schedule:\n [SchedulerNode(name='op0'), SchedulerNode(name='op2'), DisableReduction]"
    tables, _ = read(tmp_path, logs=lines(prefix, text))
    assert tables["schedules"]["nodes"].to_list() == [["op0", "op2"]]


def test_the_nodes_of_a_graphs_first_round_are_its_candidates(tmp_path):
    found = read_recorded(tmp_path, "training")["fusions"]
    nodes = found.filter(decision="candidate")
    counts = nodes.group_by("compile_id", "graph_index", maintain_order=True).len().rows()
    assert counts == [("0/0", 0, 7), ("0/0", 1, 10), ("1/0", 0, 7)]  # as many as each round 1 says
    assert set(nodes["kind"]) == {"extern", "pointwise", "reduction"}
    externs = nodes.filter(kind="extern")
    assert externs["origins"].null_count() == externs.height > 0
    assert nodes.filter(nodes["kind"] != "extern")["origins"].null_count() == 0


@pytest.mark.parametrize(
    ("text", "kind", "origins"),
    [
        ("SchedulerNode(name='op1'), Pointwise(['[16, 256]', 'origins=OrderedSet([add, tanh])', "
         "'stack_traces = {', '  File \"/p/s.py\", line 20, in f', '}'])", "pointwise",
         ["add", "tanh"]),
        ("SchedulerNode(name='op1'), WelfordReduction(['[8]', 'welford_reduce', "
         "'origins=OrderedSet([var_mean])'])", "reduction", ["var_mean"]),
        ("SchedulerNode(name='op1')", "other", None),
        ("ExternKernelSchedulerNode(name='op1')", "extern", None),
        ("NopKernelSchedulerNode(name='op1')", "nop", None),
        ("ForeachKernelSchedulerNode(name='op1')", "foreach", None),
    ],
)  # fmt: skip
def test_a_candidate_says_its_kind_and_what_it_computes(tmp_path, text, kind, origins):
    round_1 = (
        f"===== attempting fusion (1/10): 1 nodes =====\nfuse_nodes_once, candidates:\n  {text}"
    )
    again = round_1.replace("(1/10)", "(2/10)").replace("op1", "op9")
    tables, _ = read(tmp_path, logs=lines(FUSION, round_1) + lines(FUSION, again))
    (row,) = tables["fusions"].to_dicts()  # what later rounds list are fusions of these
    assert (row["decision"], row["node1"], row["kind"]) == ("candidate", "op1", kind)
    assert (row["origins"], row["graph_index"]) == (origins, 0)
