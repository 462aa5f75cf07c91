import pytest
from textlog_runs import HEAD, lines, read, read_recorded, recorded

TABLE = """Autotune Choices Stats:
{"num_choices": 21, "num_triton_choices": 20, "best_kernel": "triton_mm_17", "best_time": 0.032384}
AUTOTUNE addmm(2048x4096, 2048x1024, 1024x4096)
strides: [0, 1], [1024, 1], [1, 1024]
dtypes: torch.float16, torch.float16, torch.float16
  triton_mm_17 0.0324 ms 100.0% ACC_TYPE='tl.float32', ALLOW_TF32=False, BLOCK_K=64
  addmm 0.0440 ms 73.5%
  decompose_k_mm_4_split_12 inf ms 0.0%
SubProcess AUTOTUNE benchmarking takes 0.3625 seconds and 4.6779 seconds precompiling for 3 choices
"""


def test_a_ranking_keeps_the_candidates_and_what_the_table_cost(tmp_path):
    tables, _ = read(tmp_path, stderr=TABLE)

    found = tables["autotune_choices"].to_dicts()
    assert [(r["choice"], r["backend"], r["time_ms"], r["is_best"]) for r in found] == [
        ("triton_mm_17", "triton", 0.032384, True),
        ("addmm", "aten", 0.044, False),
        ("decompose_k_mm_4_split_12", "other", None, False),
    ]
    best = found[0]
    assert (best["op"], best["shapes"]) == ("addmm", "2048x4096, 2048x1024, 1024x4096")
    assert best["strides"] == "[0, 1], [1024, 1], [1, 1024]"
    assert best["details"].startswith("ACC_TYPE='tl.float32'")
    assert {(r["benchmark_s"], r["precompile_s"]) for r in found} == {(0.3625, 4.6779)}
    assert best["raw_line"] == 6


def test_a_real_table_belongs_to_the_compile_around_it(tmp_path):
    found = read_recorded(tmp_path, "autotune")["autotune_choices"].to_dicts()
    assert [row["compile_id"] for row in found] == ["0/0", "0/0"]
    assert found[0]["choice"].startswith("cpp_CppMicroGemm")
    assert [row["backend"] for row in found] == ["cpp", "aten"]
    assert found[0]["time_ms"] < found[1]["time_ms"]


def test_statistics_without_a_table_name_the_winner(tmp_path):
    stats = 'Autotune Choices Stats:\n{"num_choices": 3, "best_kernel": "convolution", '
    stats += '"best_time": 0.5, "best_triton_kernel": "triton_convolution2d_1", '
    stats += '"best_triton_time": 0.75}\n'
    tables, _ = read(tmp_path, stderr=stats + TABLE)

    found = tables["autotune_choices"].select("table_index", "choice", "time_ms", "is_best").rows()
    assert found[:2] == [(0, "convolution", 0.5, True), (0, "triton_convolution2d_1", 0.75, False)]
    assert [row[0] for row in found[2:]] == [1, 1, 1]


def test_another_processs_lines_may_stand_inside_a_table(tmp_path):
    cut = TABLE.splitlines(keepends=True)
    other = "V1121 10:00:00.001000 99 torch/_inductor/x.py:1] [7/0] [__autotuning] busy\n"
    tables, _ = read(tmp_path, stderr="".join([*cut[:6], "step 3 done\n", other, *cut[6:]]))
    assert tables["autotune_choices"].height == 3
    assert tables["autotune_choices"]["benchmark_s"].null_count() == 0


def test_the_scripts_own_noise_hides_nothing(tmp_path):
    tables = read_recorded(tmp_path, "noise")

    found = tables["warnings"].select("kind", "category", "message", "line").rows()
    assert found[0] == ("python_warning", "UserWarning", "the first\nof two lines <i>here</i>", 107)
    assert found[1] == ("python_warning", "DeprecationWarning", "old way", 108)
    assert found[2][:2] == ("complex_fallback", "UserWarning")
    assert len(found) == 3


def test_a_warning_without_its_source_line_keeps_its_first_line_only(tmp_path):
    stderr = "<string>:1: UserWarning: alone\n" + "loss 1.0\n" * 30 + "  indented\n"
    tables, _ = read(tmp_path, stderr=stderr)
    assert tables["warnings"]["message"].to_list() == ["alone"]


def test_a_suppressed_failure_names_frame_and_exception(tmp_path):
    row = read_recorded(tmp_path, "suppressed")["warnings"].row(0, named=True)

    assert row["kind"] == "suppressed_failure"
    assert row["category"] == "torch._dynamo.exc.BackendCompilerFailed"
    assert (row["file"], row["line"], row["function"]) == ("/project/scenarios.py", 98, "doomed")
    assert "NotImplementedError: no <kernel> for this graph" in row["message"]


def test_the_recompile_limit_names_the_function(tmp_path):
    row = read_recorded(tmp_path, "recompiles")["warnings"].row(0, named=True)
    assert (row["kind"], row["compile_id"]) == ("recompile_limit", "1/3")
    assert (row["file"], row["line"], row["function"]) == ("/project/scenarios.py", 44, "forward")
    assert "last reason: 1/2: self.step == 2" in row["message"]


def test_the_older_wording_of_the_limit_is_understood(tmp_path):
    text = "torch._dynamo hit config.cache_size_limit (8)\n   function: 'f' (/p/s.py:3)\n"
    text += "   last reason: 0/0: L['x'].size()[0] == 2"
    stderr = lines(f"W{HEAD}_dynamo/convert_frame.py:1] [0/8]", text)
    row = read(tmp_path, stderr=stderr)[0]["warnings"].row(0, named=True)
    assert (row["kind"], row["function"], row["line"]) == ("recompile_limit", "f", 3)


def test_item_is_pointed_at_in_the_users_code(tmp_path):
    row = read_recorded(tmp_path, "breaks")["warnings"].row(0, named=True)
    assert (row["kind"], row["file"], row["line"]) == ("item_break", "/project/scenarios.py", 19)


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        (
            "/x/torch/_inductor/compile_fx.py:322: UserWarning: TensorFloat32 tensor cores for "
            "float32 matrix multiplication available but not enabled. Consider setting "
            "`torch.set_float32_matmul_precision('high')` for better performance.\n"
            "  warnings.warn(\n",
            "tf32",
        ),
        (
            f"W{HEAD}_inductor/utils.py:1953] [0/0] Not enough SMs to use max_autotune_gemm mode\n",
            "few_sms",
        ),
        (f"E{HEAD}_inductor/x.py:1] something else\n", "other"),
    ],
)
def test_kinds_of_warnings(tmp_path, stderr, kind):
    tables, _ = read(tmp_path, stderr=stderr)
    assert tables["warnings"]["kind"].to_list() == [kind]


def test_a_message_in_both_files_counts_once(tmp_path):
    logs, stderr = recorded("recompiles")
    assert b"hit config.recompile_limit" in logs
    assert b"hit config.recompile_limit" in stderr
    assert read_recorded(tmp_path, "recompiles")["warnings"].height == 1


def test_without_a_log_file_stderr_is_read_for_everything(tmp_path):
    stderr = recorded("breaks")[1]
    tables, _ = read(tmp_path, stderr=stderr)
    assert tables["graph_breaks"]["gb_id"].to_list() == ["GB0059", "GB0170", "GB0124", "GB0025"]


def test_a_warning_of_torchs_cpp_half(tmp_path):
    line = (
        "\r 10%|#[rank1]:[W1121 11:59:41.761288268 ProcessGroupNCCL.cpp:12] Warning: <b>slow</b>\n"
    )
    row = read(tmp_path, stderr=line)[0]["warnings"].row(0, named=True)
    assert (row["rank"], row["category"], row["file"], row["line"]) == (
        1, "W", "ProcessGroupNCCL.cpp", 12,
    )  # fmt: skip
    assert row["message"] == "Warning: <b>slow</b>"
