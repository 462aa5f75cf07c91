"""A run's tables → the diagnosis: every part joined, attributed and bounded."""

import json
from types import SimpleNamespace

import pytest
from factories import (
    REPLACED,
    compiled,
    finding,
    graph_break,
    kernel,
    make_run,
    matched,
    recompile,
    rows,
    speedup,
    tables_of,
)
from msgspec.structs import replace

from traceview.diagnosis import build, from_json, ruling, to_json
from traceview.diagnosis.step import ALL_GRAPH_CHARACTERS
from traceview.reports import html, markdown, terminal
from traceview.tables import Tables


@pytest.fixture
def rules(monkeypatch):
    """What the rules say in this test; the catalogue itself is tested elsewhere."""
    said = SimpleNamespace(findings=(), missing=())
    monkeypatch.setattr(ruling, "run_rules", lambda *_: (said.findings, said.missing))
    return said


@pytest.fixture
def diagnose(tmp_path, rules):
    run = make_run(tmp_path)
    return lambda **changed: build.diagnose(run, tables_of(**changed))


def test_verdict(diagnose):
    verdict = diagnose().verdict
    assert (verdict.outcome, verdict.speedup, verdict.speedup_interval) == (
        "helped",
        6.9,
        (6.7, 7.0),
    )
    assert (verdict.blocks, verdict.blocks_measured) == (12, 13)
    assert verdict.ended == "stopped by traceview when the plan was complete"
    assert verdict.sentence == (
        "torch.compile helped: a step takes 50.0 µs instead of 345 µs (6.90×, 95 % interval "
        "6.70× to 7.00×, device time, 12 block pairs). Where the time went was not recorded: no "
        "profile shows the work of both sides."
    )


def test_a_region_has_its_costs_its_breaks_and_its_recompiles(diagnose):
    (region,) = diagnose().regions
    assert region.arguments == {"mode": "reduce-overhead"}
    assert (region.share, region.compile_seconds, region.compiles) == (0.8, 6.0, 2)
    assert (region.graph_breaks, region.recompiles) == (1, 1)


def test_what_was_not_recorded_is_null_and_never_zero(diagnose):
    found = diagnose(graph_breaks=None, recompiles=None, step_counts=None, memory=None)
    assert found.regions[0].graph_breaks is None
    assert found.regions[0].recompiles is None
    assert found.counts["eager"].kernels is None
    assert found.counts["eager"].peak_bytes is None


def test_recompiles_are_a_chain_of_deciding_guards(diagnose):
    (chain,) = diagnose().recompiles
    assert (chain.name, chain.compiles, chain.limit_hit) == ("forward", 2, False)
    (link,) = chain.links
    assert (link.guard, link.old, link.new, link.seconds) == ("x.size(0) == 4", "4", "5", 3.0)


def test_profiled_steps_that_are_other_steps_are_said_to_be(diagnose):
    counts = rows()["step_counts"][1] | {"timed_step_ms": 0.05, "unexplained_ms": -5.1}
    far = counts | {"step_ms": 6.6}
    said = "The profiled compiled steps took 6.60 ms, timed ones 50.0 µs."
    assert any(note.startswith(said) for note in diagnose(step_counts=[far]).notes)
    near = counts | {"unexplained_ms": -0.01}
    assert not any("other steps" in note for note in diagnose(step_counts=[near]).notes)


def test_the_limit_is_part_of_the_chain(diagnose):
    limited = compiled("0/2", outcome="limit", duration_us=None)
    (chain,) = diagnose(
        compiles=[*rows()["compiles"], limited], recompiles=[recompile(compile_key="0/2")]
    ).recompiles
    assert chain.limit_hit
    assert chain.links[0].seconds is None


def test_a_graph_break_that_two_logs_tell_is_one_break(diagnose):
    (site,) = diagnose().graph_breaks
    assert (site.gb_id, site.line, site.times) == ("GB0124", 9, 1)
    assert site.hints == ("set capture_scalar_outputs",)


def test_breaks_at_different_lines_are_different_sites(diagnose):
    other = [graph_break(user_line=11, compile_key=f"1/{n}") for n in range(3)]
    sites = diagnose(graph_breaks=[graph_break(), *other]).graph_breaks
    assert [(site.line, site.times) for site in sites] == [(11, 3), (9, 1)]


def test_compile_time_and_timeline(diagnose):
    found = diagnose()
    assert found.compile_time.seconds == 4.0
    assert found.compile_time.phases["dynamo_s"] == 2.0
    assert [row.started_s for row in found.compiles] == [2.0, 9.0]
    assert sum(found.compiles[0].phases.values()) == found.compiles[0].seconds == 3.0


def test_a_fused_kernel_with_the_eager_time_that_it_replaced(diagnose):
    (kernel,) = diagnose(**matched(REPLACED)).fused
    assert kernel.ms == 0.05
    assert kernel.eager_ms == pytest.approx(0.20)
    assert kernel.eager_count == 2.0


def test_no_eager_time_where_another_kernel_is_in_the_group(diagnose):
    first = rows()["generated_kernels"][0]
    second = first | {"kernel_name": "triton_poi_fused_add_1", "fused_ops": ["aten.add"]}
    tables = matched(REPLACED, REPLACED | {"name": "triton_poi_fused_add_1"})
    found = diagnose(generated_kernels=[first, second], **tables).fused
    assert [kernel.eager_ms for kernel in found] == [None, None]
    assert diagnose().fused[0].eager_ms is None  # nothing was matched


def test_graphs_with_their_code(diagnose):
    (graph,) = diagnose().graphs
    assert graph.output_code == "def call(args): ..."
    assert graph.graph_text == "def forward(x): ..."
    assert graph.kernels == ("triton_poi_fused_add_gelu_0",)
    assert graph.op_count == 35


def test_large_graphs_are_cut_and_the_cut_is_said(diagnose):
    huge = [
        {"pass": "cold", "compile_key": f"{n}/0", "compile_id": f"{n}/0", "kind": "output_code",
         "text": "x" * 100_000}
        for n in range(60)
    ]  # fmt: skip
    found = diagnose(graphs=huge)
    assert sum(len(graph.output_code or "") for graph in found.graphs) < 1.1 * ALL_GRAPH_CHARACTERS
    assert any("20 graphs are not shown" in note for note in found.notes)


def test_excerpts_come_from_the_runs_own_copies(diagnose, rules):
    rules.findings = (finding(line=9), finding(line=1))
    found = diagnose().excerpts
    assert [(item.line, item.lines[0][0], item.lines[-1][0]) for item in found[:2]] == [
        (1, 1, 4), (9, 6, 12),
    ]  # fmt: skip
    assert found[1].lines[3] == (9, "line_9 = 9")


def test_a_later_edit_of_the_users_file_shows_nowhere(tmp_path, diagnose, rules):
    mine = tmp_path / "train.py"
    mine.write_text("edited_since = True\n" * 20)
    places = finding(line=9), finding(line=3)
    rules.findings = tuple(
        replace(found, location=replace(found.location, file=str(mine))) for found in places
    )
    found = diagnose(sources=[{"pass": "cold", "file": str(mine), "copy": "raw/sources/train.py"}])
    shown = (html.render(found), markdown.render(found), terminal.render(found, 100, color=False))
    assert "line_9" in shown[0]
    assert not any("edited_since" in text for text in (*shown, str(to_json(found))))


@pytest.mark.parametrize("copy", ["/etc/passwd", "../../etc/passwd", "raw/sources/../../run.json"])
def test_a_copy_outside_the_sources_is_never_opened(diagnose, rules, copy):
    rules.findings = (finding(),)
    sources = [{"pass": "cold", "file": "/home/me/train.py", "copy": copy}]
    assert diagnose(sources=sources).excerpts == ()


def test_a_link_out_of_the_sources_is_never_followed(tmp_path, rules):
    run = make_run(tmp_path)
    (tmp_path / "secret").write_text("secret\n" * 20)
    copy = run.folder / "raw" / "sources" / "train.py"
    copy.unlink()
    copy.symlink_to(tmp_path / "secret")
    rules.findings = (finding(),)
    assert build.diagnose(run, tables_of()).excerpts == ()


def test_findings_by_what_they_cost_the_job(diagnose, rules):
    rules.findings = (
        finding(title="slow step", ms=2.0),
        finding(title="slow start", seconds=5.0),
        finding(title="unknown", severity="info"),
    )
    settings = [{"name": "assumed_steps", "value": 1000.0}]
    for seen, first in ((900, "slow start"), (5000, "slow step")):
        runs = [{**rows()["runs"][0], "steps_seen": seen}]
        titles = [item.title for item in diagnose(settings=settings, runs=runs).findings]
        assert titles[0] == first
        assert titles[-1] == "unknown"
    long_job = diagnose(speedups=[speedup(job_steps=1_000_000)])
    assert [item.title for item in long_job.findings] == ["slow step", "slow start", "unknown"]


def test_a_limit_stands_under_what_led_to_it(diagnose, rules):
    about = frozenset({"/home/me/train.py:5", "/home/me/net.py:2"})
    cause = replace(finding("rc-module-int-attr", seconds=8.0, line=7), about=about)
    limit = replace(finding("rc-limit-hit", "error", ms=0.2, title="the limit"), about=about)
    rules.findings = (limit, cause, finding(title="a break", ms=0.001))
    found = diagnose()
    first, _ = found.findings
    assert (first.rule, [item.rule for item in first.symptoms]) == (
        "rc-module-int-attr", ["rc-limit-hit"],
    )  # fmt: skip
    assert (first.severity, first.whole_cost.ms_per_step, first.whole_cost.seconds) == (
        "error", 0.2, 8.0,
    )  # fmt: skip
    assert {item.line for item in found.excerpts} >= {7, 9}, "a symptom's lines are shown too"
    data = to_json(found)
    assert data["findings"][0]["about"] == sorted(about)
    assert "ms_per_step" not in data["findings"][0]["cost"]
    assert data["findings"][0]["symptoms"][0]["cost"]["ms_per_step"] == 0.2
    assert from_json(json.loads(json.dumps(data))) == found


def test_information_comes_last_however_dear(diagnose, rules):
    rules.findings = (
        finding(title="one more compile", seconds=30.0, severity="info"),
        finding(title="slow step", ms=0.1),
    )
    assert [item.title for item in diagnose().findings] == ["slow step", "one more compile"]


def test_the_same_code_on_both_sides_has_no_speedup(diagnose):
    idle = speedup(outcome="not_compiled", speedup=0.93, reason="nothing was called")
    verdict = diagnose(speedups=[idle]).verdict
    assert (verdict.speedup, verdict.speedup_interval, verdict.compiled_ms) == (None, None, None)
    assert verdict.eager_ms == 0.345


def test_a_crash_is_named_by_its_error(diagnose):
    run = {**rows()["runs"][0], "exit_kind": "exit", "exit_code": 1, "error_type": "ValueError",
           "error_file": "/home/me/train.py", "error_line": 9}  # fmt: skip
    assert diagnose(runs=[run]).verdict.ended == "raised ValueError at train.py:9"
    assert diagnose(runs=[run | {"error_file": None}]).verdict.ended == "raised ValueError"


def test_notes_say_what_was_not_done_and_how_it_was_ordered(diagnose, rules):
    rules.findings = (finding(),)
    notes = "\n".join(diagnose().notes)
    for said in (
        "one rank only",
        "printed mix both: ignore them",
        "Left out 1 block pair: other work.",
        "cold start",
        "profiler window: CUPTI is not there",
        "Steps are slower under the profiler (eager 0.500 ms instead of 0.345 ms)",
        "over 5,000 steps, information last. The job has at least this many",
    ):
        assert said in notes
    runs = [{**rows()["runs"][0], "steps_seen": 20}]
    told = "over 2,000 steps, information last. That length is assumed"
    assert told in "\n".join(diagnose(runs=runs).notes)


def test_a_job_of_known_length_is_not_called_assumed(diagnose, rules):
    rules.findings = (finding(),)
    notes = "\n".join(diagnose(speedups=[speedup(job_steps=77)]).notes)
    assert "the job's 77 steps" in notes
    assert "assumed" not in notes


def test_environment_reading_counts_and_links(diagnose, tmp_path):
    logs = tmp_path / "run" / "raw" / "cold"
    logs.mkdir(parents=True)
    (logs / "torch_logs.txt").write_text("")
    (tmp_path / "run" / "tlparse" / "cold" / "rank_0").mkdir(parents=True)
    (tmp_path / "run" / "tlparse" / "cold" / "rank_0" / "index.html").write_text("")
    found = diagnose()
    assert found.environment["torch_version"] == "2.11.0"
    assert found.environment["argv"] == ["train.py", "--big"]
    assert found.environment["variables"] == {"TORCH_LOGS": "recompiles"}
    assert found.environment["settings"][0]["default"] == "8"
    assert (found.reading.records, found.reading.unknown_records, found.reading.unreadable) == (
        93,
        3,
        2,
    )
    assert found.counts["eager"].peak_bytes == 900
    assert found.counts["eager"].peak_source == "allocator"
    assert found.links["tlparse: cold/rank_0"] == "tlparse/cold/rank_0/index.html"
    assert found.links["cold: text log torch_logs.txt"] == "raw/cold/torch_logs.txt"


def test_not_checked_is_passed_on(diagnose, rules):
    rules.missing = (
        SimpleNamespace(rule="ap-gemm-bound", code="TV5", needs="kernels", command=None),
    )
    (item,) = diagnose().not_checked
    assert (item.rule, item.needs) == ("ap-gemm-bound", "kernels")


def test_a_rank_that_failed_fails_the_job(diagnose):
    other = speedup(rank=1, pid=2, outcome="failed", reason="the script was killed by SIGKILL")
    found = diagnose(speedups=[speedup(rank=0), other])
    assert found.verdict.outcome == "failed"
    assert found.verdict.sentence.startswith("Rank 1: the script was killed by SIGKILL.")
    assert any("first of 2 ranks" in note for note in found.notes)


def test_a_run_without_any_table_is_still_a_diagnosis(tmp_path, rules):
    found = build.diagnose(make_run(tmp_path), Tables())
    assert found.verdict.outcome == "not_measured"
    assert found.verdict.sentence == "No verdict: there are logs, but no timed run."
    assert found.regions == found.compiles == found.kernels == ()
    assert found.break_even_steps is None
    assert found.reading.records == 0


def test_a_kernel_that_a_recompile_wrote_again_is_one_kernel(diagnose):
    first = rows()["generated_kernels"][0]
    again = first | {"compile_key": "0/1", "compile_id": "0/1"}
    (kernel,) = diagnose(generated_kernels=[first, again], **matched(REPLACED)).fused
    assert (kernel.compile_id, kernel.ms) == ("0/0", 0.05)
    assert kernel.eager_ms == pytest.approx(0.20)


def test_kernels_of_one_name_in_two_graphs_are_told_apart_by_their_compile(diagnose):
    first = rows()["generated_kernels"][0]
    other = first | {"compile_key": "1/0", "compile_id": "1/0", "source_code": "@triton.jit # 2"}
    groups = [
        kernel("compiled", first["kernel_name"], ms, compile_id=compile_id)
        for ms, compile_id in ((0.05, "0/0"), (0.02, "1/0"))
    ]
    found = diagnose(generated_kernels=[first, other], kernel_groups=groups).fused
    assert [(item.compile_id, item.ms) for item in found] == [("0/0", 0.05), ("1/0", 0.02)]


def test_profiled_cpp_kernels_carry_their_graph(diagnose):
    first = rows()["generated_kernels"][0]
    groups = [kernel("compiled", "graph_0_" + first["kernel_name"], 0.07)]
    assert diagnose(kernel_groups=groups).fused[0].ms == 0.07


def test_figures_per_step_that_no_step_was_marked_for_are_no_rules_evidence(tmp_path):
    """Then the trace tells what ran and how long, but not how often that is in a step."""
    gemm = kernel("compiled", "sm80_xmma_gemm_f32f32", None, category="gemm")
    tables = tables_of(kernel_groups=[gemm], accounting=[], account_details=[])
    found = ruling.ruling(make_run(tmp_path), tables)
    lacking = {item.rule: item.needs for item in found.not_checked}
    assert "ind-tf32-off" in lacking
    assert tables["kernel_groups"].height == 1
