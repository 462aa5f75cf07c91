"""Not checked: what a rule lacks in a run, in words, and the command that would record it."""

import pytest

from traceview.rules import needs
from traceview.rules.needs import in_words, unmet
from traceview.schema import all_tables
from traceview.tables import Tables

ON_GPU = {"pid": 1, "device_name": "NVIDIA H200", "torch_version": "2.6.0"}
RUN = "traceview diagnose SCRIPT"


def test_every_table_has_words_and_a_command():
    assert set(needs.RECORD_OF) == set(all_tables())
    for table in all_tables():
        words, command = in_words([table])
        assert words
        assert command.endswith(("SCRIPT", "PATH"))


@pytest.mark.parametrize(
    ("need", "is_known"),
    [
        ("compiles", True),
        ("compiles.guard_latency_us", True),
        ("cache_events:warm", True),
        ("environment|warnings", True),
        ("environment|no_such", False),
        ("step_counts:eager", True),
        ("no_such", False),
        ("compiles.no_such", False),
        ("compiles:eager", False),
        ("step_counts:cold", False),
        ("", False),
    ],
)
def test_what_can_be_needed(need, is_known):
    assert (needs.unknown([need]) == []) == is_known


@pytest.mark.parametrize(
    ("wanted", "words", "command"),
    [
        (["recompiles"], "a log of recompiles", "TORCH_LOGS=recompiles python SCRIPT"),
        (["graphs", "compiles"], "torch's structured log", "TORCH_TRACE=DIR python SCRIPT"),
        (["fusions"], "a log of fusion decisions", "TORCH_LOGS=fusion python SCRIPT"),
        (["compiles", "speedups"], "and timed blocks of eager and compiled steps", RUN),
        (["step_counts:eager"], "profiler windows of eager steps", RUN),
        (["cache_events:warm"], "on the warm cache", "traceview diagnose --warm SCRIPT"),
    ],
)
def test_logs_without_a_measurement(make, wanted, words, command):
    lacking = unmet(make(warnings=[]), wanted)
    assert words in lacking[0]
    assert lacking[1] == command


def test_what_is_there_is_not_missed(make):
    tables = make(
        runs=[ON_GPU, {**ON_GPU, "pass": "warm"}],
        compiles=[{"compile_key": "k", "guard_latency_us": None}, {"guard_latency_us": 3.0}],
        recompiles=[],
        cache_events=[{"pass": "warm"}],
        step_counts=[{"stance": "eager"}],
        speedups=[{"speedup": 2.0}],
    )
    wanted = ("compiles", "compiles.guard_latency_us", "recompiles", "recompiles.old",
              "cache_events:warm", "recompiles:warm", "step_counts:eager", "speedups")  # fmt: skip
    assert [need for need in wanted if unmet(tables, [need])] == []
    assert unmet(tables, wanted, gpu_only=True) is None


def test_a_cpu_says_only_that(make):
    tables = make(runs=[{"pid": 1, "device_name": "cpu"}])
    said = ("a GPU: this run was on a CPU", None)
    assert unmet(tables, ["compiles", "speedups"], gpu_only=True) == said
    assert unmet(Tables(), ["compiles"], gpu_only=True)[1] == "TORCH_TRACE=DIR python SCRIPT"


def test_a_column_that_this_torch_does_not_fill(make):
    tables = make(runs=[ON_GPU], compiles=[{"compile_key": "k"}])
    assert unmet(tables, ["compiles.guard_latency_us"]) == (
        "`guard_latency_us` in table compiles: torch 2.6.0 did not record it", None,
    )  # fmt: skip


def test_without_eager_steps(make):
    """--no-baseline: there are figures of the compiled side alone."""
    compiled = [{"stance": "compiled"}]
    tables = make(
        runs=[ON_GPU],
        blocks=compiled,
        step_counts=compiled,
        speedups=[{"compiled_ms": 1.0, "reason": "eager steps were not measured"}],
    )
    assert unmet(tables, ["step_counts"]) is None
    for need in ("step_counts:eager", "speedups", "waterfall"):
        words, command = unmet(tables, [need])
        assert "eager steps: this run has none (--no-baseline leaves them out)" in words
        assert command == RUN


def test_without_a_warm_start(make):
    tables = make(runs=[ON_GPU], cache_events=[{"cache": "fx_graph"}])
    assert unmet(tables, ["cache_events:warm"]) == (
        "a second start on the warm cache", "traceview diagnose --warm SCRIPT",
    )  # fmt: skip


def test_what_the_same_command_would_not_record_either(make):
    both = [{"stance": "eager"}, {"stance": "compiled"}]
    reason = "the script ended after 3 steps, before both sides were measured"
    short = make(runs=[ON_GPU], blocks=both, speedups=[{"reason": reason}])
    assert unmet(short, ["speedups"]) == (f"timed blocks of both stances: {reason}", None)
    assert unmet(short, ["accounting", "speedups"])[0] == (
        f"profiler windows and timed blocks of both stances: {reason}"
    )
    unknown = make(runs=[ON_GPU], regions=[])
    assert unmet(unknown, ["accounting"])[0].endswith("usually because it had too few steps")
    failed = make(runs=[ON_GPU], profile_windows=[{"stance": "eager", "error": "CUPTI is taken"}])
    assert unmet(failed, ["accounting"]) == (
        "profiler windows: here the profiler failed (CUPTI is taken)", None,
    )  # fmt: skip
    assert unmet(short, ["compiles", "recompiles", "speedups"]) == (
        f"a log of compiles: torch wrote none in this run; timed blocks of both stances: {reason}",
        None,
    )


def test_a_warm_cache_hides_what_torch_writes_when_it_lowers_a_graph(make):
    hit = {"cache": "fx_graph", "event": "hit"}
    warm = make(runs=[ON_GPU], cache_events=[hit], fusions=[])
    assert unmet(warm, ["fusions"]) == (
        "a log of fusion decisions: every graph of this run was in a warm cache", RUN,
    )  # fmt: skip
    cold = make(runs=[ON_GPU], cache_events=[hit, {**hit, "event": "miss"}], fusions=[])
    assert unmet(cold, ["fusions"]) is None


def test_what_an_older_collector_did_not_record(make):
    assert unmet(make(runs=[ON_GPU], regions=[]), ["setting_sites"]) == (
        "the script's source and its settings: this run was recorded without", RUN,
    )  # fmt: skip
    assert unmet(make(runs=[ON_GPU]), ["setting_sites"])[1] is None


def test_one_of_several(make):
    need = ["environment|warnings"]
    assert unmet(make(compiles=[], warnings=[]), need) is None
    assert unmet(make(compiles=[], environment=[]), need) is None
    assert unmet(make(compiles=[]), need) == (
        "traceview's own record of the run or what torch wrote to stderr", RUN,
    )  # fmt: skip


def test_measurements_without_rows_were_not_made(make):
    tables = make(runs=[ON_GPU], memory=[], recompiles=[])
    assert unmet(tables, ["recompiles"]) is None
    assert unmet(tables, ["memory"])[0].startswith("memory peaks")
