"""The measured speedup: interval, outcome, break-even, and what is said without one."""

from random import Random

import pytest

from traceview.derive.bootstrap import median_interval, ratio_interval, weighted_median
from traceview.derive.pairs import block_pairs
from traceview.derive.speedup import compile_seconds, speedups
from traceview.tables import Tables, from_rows

RUN = {
    "pass": "cold", "pid": 1, "exit_kind": "stopped", "exit_code": 0, "wall_s": 20.0,
    "steps_seen": 5000,
}  # fmt: skip
REGION = {"pass": "cold", "pid": 1, "region_id": 0, "calls": 5000, "first_call_ms": 900.0}


def blocks(times, **more):
    """One block per stance and pair from (eager, compiled) ms per step."""
    return [
        {
            "pass": "cold",
            "pid": 1,
            "pair_index": index,
            "stance": stance,
            "steps": 50,
            "clock": "device",
            "duration_ms": 50 * ms,
            "host_ms": 50 * ms,
            "region_calls": 50,
            "compiles_inside": 0,
        }
        | more
        for index, both in enumerate(times)
        for stance, ms in zip(("eager", "compiled"), both, strict=True)
    ]


def steps(stance, times, pass_name="cold", pid=1, phase="warmup", compiles=0):
    return [
        {
            "pass": pass_name,
            "pid": pid,
            "step": index,
            "phase": phase,
            "stance": stance,
            "host_ms": ms,
            "compiles_inside": compiles,
        }
        for index, ms in enumerate(times)
    ]


def row_of(run=None, region=None, settings=None, runs=None, **tables):
    frames = {"runs": runs or [RUN | (run or {})], "regions": [REGION | (region or {})], **tables}
    made = Tables({name: from_rows(name, rows) for name, rows in frames.items()})
    return speedups(made, block_pairs(made), settings or {}).to_dicts()[0]


def noisy(ratio, pairs=12, spread=0.02, seed=0):
    random = Random(seed)
    return [(ratio * random.gauss(1, spread), random.gauss(1, spread)) for _ in range(pairs)]


def test_the_interval_covers_the_true_median_as_often_as_it_says():
    random = Random(7)
    covered = 0
    for _ in range(150):
        low, high = median_interval([random.gauss(2.0, 0.1) for _ in range(12)])
        covered += low <= 2.0 <= high
    assert covered >= 0.88 * 150  # the bootstrap of a median of twelve is a little too narrow


@pytest.mark.parametrize("count", [3, 4, 5])
def test_few_values_cover_the_true_median_as_often_as_many(count):
    random = Random(9)
    covered = 0
    for _ in range(200):
        low, high = median_interval([random.lognormvariate(0.0, 0.1) for _ in range(count)])
        covered += low <= 1.0 <= high
    assert covered >= 0.92 * 200


def measured(random, lengths, *, outliers=0.0, drift=0.0, between=0.02, within=0.15):
    """Ratios of pairs with a true one of 1.5: scatter of steps, of blocks, outliers, drift."""
    made = []
    for at, length in enumerate(lengths):
        # eager and compiled run first by turns: a drift makes one of them slower by turns
        sigma = (between**2 + within**2 / length) ** 0.5
        ratio = 1.5 * random.lognormvariate(0, sigma) * (1 + drift * (-1) ** at * length / 100)
        made.append(ratio * (random.choice((0.5, 2.0)) if random.random() < outliers else 1.0))
    return made


@pytest.mark.parametrize(
    "noise", [{}, {"outliers": 0.1}, {"drift": 0.1}, {"between": 0.0, "within": 0.5}]
)
@pytest.mark.parametrize("few", [True, False])
def test_the_interval_of_unequal_pairs_covers_the_true_median(noise, few):
    lengths = [3, 3, 3, 6, 8, 10, 13] if few else [3, 3, 3, 6, 8, 10, 13, 16, 20, 24, 30, 36, 44]
    weights = [min(n, max(lengths) / 2) for n in lengths]
    random = Random(11)
    covered = 0
    for _ in range(100):
        low, high = median_interval(measured(random, lengths, **noise), weights)
        covered += low <= 1.5 <= high
    assert covered >= 89, "95 % less what a hundred tries may miss it by"


def test_equal_weights_are_no_weights():
    values = [1.0, 1.2, 1.1, 1.5, 1.3, 1.4, 1.15]
    assert median_interval(values, [7.0] * 7) == median_interval(values)
    assert weighted_median(values, [0.1] * 7) == 1.2
    assert weighted_median(values[:4], [3.0] * 4) == pytest.approx(1.15)
    assert weighted_median([1.0, 5.0, 9.0], [1.0, 1.0, 3.0]) == 9.0


def test_long_pairs_that_are_few_are_few():
    """Ten blocks of two steps and two long ones are worth about two, so Student's t counts."""
    values = [1.5] * 10 + [1.4, 1.6]
    low, high = median_interval(values, [1.0] * 10 + [100.0] * 2)
    assert high / low > 2.0
    assert median_interval(values) == (1.5, 1.5)


def test_replayed_pairs_are_counted():
    rows = blocks([(2.0, 1.0)] * 6)
    rows = [row | {"replayed": row["pair_index"] > 1} for row in rows]
    assert row_of(blocks=rows)["pairs_replayed"] == 4
    assert row_of(blocks=blocks([(2.0, 1.0)] * 6))["pairs_replayed"] == 0


def test_the_interval_of_two_runs_covers_the_true_ratio():
    random = Random(8)
    covered = 0
    for _ in range(60):
        eager = [random.gauss(3.0, 0.2) for _ in range(30)]
        compiled = [random.gauss(2.0, 0.2) for _ in range(30)]
        low, high = ratio_interval(eager, compiled)
        covered += low <= 1.5 <= high
    assert covered >= 53


def test_the_same_tables_give_the_same_interval():
    assert median_interval([1.0, 2.0, 3.0, 4.0]) == median_interval([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(("ratio", "outcome"), [(2.0, "helped"), (1.0, "neutral"), (0.8, "hurt")])
def test_outcomes_by_the_interval(ratio, outcome):
    row = row_of(blocks=blocks(noisy(ratio)))
    assert row["outcome"] == outcome
    assert row["speedup_low"] <= row["speedup"] <= row["speedup_high"]
    assert row["speedup"] == pytest.approx(ratio, rel=0.04)
    assert row["basis"] == "paired_blocks"
    assert row["clock"] == "device"
    assert row["reason"] is None


def test_identical_blocks_are_neutral():
    row = row_of(blocks=blocks([(1.0, 1.0)] * 6))
    assert row["outcome"] == "neutral"
    assert (row["speedup_low"], row["speedup"], row["speedup_high"]) == (1.0, 1.0, 1.0)


def test_two_per_cent_is_no_help_however_sure():
    assert row_of(blocks=blocks([(1.02, 1.0)] * 8))["outcome"] == "neutral"


def test_a_disqualified_pair_does_not_count():
    times = [(2.0, 1.0)] * 6
    rows = blocks(times)
    rows[-1] |= {"duration_ms": 5000.0, "compiles_inside": 1}
    row = row_of(blocks=rows)
    assert (row["pairs_used"], row["pairs_measured"], row["speedup"]) == (5, 6, 2.0)


@pytest.mark.parametrize(("compile_ms", "outcome"), [(1.0, "helped"), (500.0, "hurt")])
def test_compiles_that_come_again_and_again_are_part_of_the_job(compile_ms, outcome):
    rows = blocks([(2.0, 1.0)] * 12)
    for block in rows[3::8]:  # the compiled block of every fourth pair
        block |= {"duration_ms": 50.0 + compile_ms, "compiles_inside": 1}
    row = row_of(blocks=rows)
    assert (row["outcome"], row["compiles_between"]) == (outcome, 3)
    assert (row["eager_ms"], row["compiled_ms"], row["speedup_low"]) == (2.0, 1.0, 2.0)
    assert row["compiled_mean_ms"] == pytest.approx(1 + 3 * compile_ms / (12 * 50))


def test_replayed_calls_hide_no_compiles_of_the_script():
    rows = blocks([(2.0, 1.0)] * 36)
    for block in rows[3:24:8]:
        block |= {"duration_ms": 550.0, "compiles_inside": 1}
    for block in rows[24:]:
        block["replayed"] = True
    row = row_of(blocks=rows)
    assert (row["outcome"], row["pairs_replayed"], row["compiles_between"]) == ("hurt", 24, 3)
    assert row["compiled_mean_ms"] == pytest.approx(1 + 3 * 500 / (12 * 50))


def test_other_work_without_a_compile_decides_nothing():
    rows = blocks(
        [(2.0, 1.0)] * 9 + [(2.0, 30.0), (2.0, 1.0), (2.0, 30.0), (2.0, 1.0), (2.0, 30.0)]
    )
    row = row_of(blocks=rows)
    assert (row["outcome"], row["compiles_between"]) == ("helped", 0)


def test_two_pairs_are_too_few_but_are_shown():
    row = row_of(blocks=blocks([(2.0, 1.0)] * 2))
    assert row["outcome"] == "not_measured"
    assert row["speedup"] == 2.0
    assert row["speedup_low"] is None
    assert row["reason"] == (
        "3 usable block pairs are needed, 2 were measured; let the script take more steps, "
        "or allow more blocks (--blocks)"
    )


def test_a_baseline_pass_gives_what_the_pairs_could_not():
    runs = [RUN, RUN | {"pass": "baseline", "pid": 2}]
    rows = steps("compiled", [9.0] * 3 + [1.0] * 10) + steps("eager", [2.0] * 10, "baseline", 2)
    row = row_of(runs=runs, steps=rows)
    assert row["basis"] == "two_runs"
    assert row["clock"] == "host"
    assert row["speedup"] == 2.0
    assert row["outcome"] == "helped"
    assert row["steps_timed"] == 17  # the first three of each are settling


def test_two_steady_steps_are_too_few():
    runs = [RUN, RUN | {"pass": "baseline", "pid": 2}]
    rows = steps("compiled", [1.0] * 2) + steps("eager", [2.0] * 9, "baseline", 2)
    row = row_of(runs=runs, steps=rows)
    assert row["outcome"] == "not_measured"
    assert row["basis"] == "none"
    assert row["eager_ms"] == 2.0
    assert row["compiled_ms"] is None


def test_steps_before_the_last_compile_are_not_steady():
    rows = steps("compiled", [50.0, 40.0]) + steps("compiled", [1.0] * 8)
    rows = [row | {"step": i, "compiles_inside": int(i < 2)} for i, row in enumerate(rows)]
    assert row_of(steps=rows)["compiled_ms"] == 1.0


def test_profiled_steps_are_never_figures():
    row = row_of(steps=steps("compiled", [7.0] * 9, phase="profile"))
    assert row["compiled_ms"] is None


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({"exit_kind": "exit", "exit_code": 3}, "exit code 3"),
        ({"exit_kind": "signal", "exit_code": None, "exit_signal": 9}, "SIGKILL"),
        ({"exit_kind": "timeout"}, "time limit"),
        (
            {"exit_kind": "exit", "exit_code": 1, "error_type": "RuntimeError", "error_line": 4,
             "error_file": "train.py", "error_message": "boom\nmore"},
            "RuntimeError at train.py:4: boom",
        ),
    ],
)  # fmt: skip
def test_a_target_that_failed_on_its_own(run, said):
    row = row_of(run=run)
    assert row["outcome"] == "failed"
    assert said in row["reason"]


def test_a_crash_after_measuring_keeps_the_figures():
    run = {"exit_kind": "exit", "exit_code": 1, "error_type": "ValueError"}
    row = row_of(run=run, blocks=blocks([(2.0, 1.0)] * 6))
    assert row["outcome"] == "failed"
    assert row["speedup"] == 2.0


def test_the_time_limit_is_no_failure_once_measured():
    row = row_of(run={"exit_kind": "timeout"}, blocks=blocks([(2.0, 1.0)] * 6))
    assert row["outcome"] == "helped"


@pytest.mark.parametrize(
    ("run", "region", "said"),
    [
        ({"dynamo_disabled": True}, {}, "switched off"),
        ({"user_stance": "force_eager"}, {}, "force_eager"),
        ({}, {"disable": True}, "disable=True"),
        ({}, {"calls": 0}, "never called"),
    ],
)
def test_not_compiled_says_why(run, region, said):
    row = row_of(run=run, region=region, blocks=blocks([(1.0, 1.0)] * 6))
    assert row["outcome"] == "not_compiled"
    assert said in row["reason"]


def test_a_script_without_torch_compile():
    row = row_of(regions=[])
    assert (row["outcome"], row["reason"]) == (
        "not_compiled",
        "the script never calls torch.compile",
    )


@pytest.mark.parametrize("kind", ["interrupted", "unknown"])
@pytest.mark.parametrize("outcome", ["skipped", "unfinished"])
def test_a_run_that_was_cut_short_in_its_first_compile_says_nothing_of_compiling(kind, outcome):
    compiles = [{"pass": "cold", "pid": 1, "compile_key": "a", "outcome": outcome}]
    cut = {"exit_kind": kind, "exit_code": None, "steps_seen": 1}
    for calls in (0, 1):
        row = row_of(run=cut, region={"calls": calls}, compiles=compiles)
        assert row["outcome"] == "not_measured"
        assert row["compile_s"] is None


def test_processes_of_the_scripts_own_that_compile_are_told_of():
    compiles = [{"pass": "cold", "pid": 77, "compile_key": "a", "outcome": "ok"}]
    row = row_of(run={"steps_seen": 0}, regions=[], compiles=compiles)
    assert row["outcome"] == "not_measured"
    assert "processes that the script starts itself" in row["reason"]


def test_frames_that_were_all_left_in_eager_are_not_compiled():
    compiles = [{"pass": "cold", "pid": 1, "compile_key": "a", "outcome": "skipped"}]
    row = row_of(compiles=compiles, blocks=blocks([(1.0, 1.0)] * 6))
    assert row["outcome"] == "not_compiled"


def test_steps_that_try_to_compile_in_vain_are_slower_though_nothing_is_compiled():
    compiles = [{"pass": "cold", "pid": 1, "compile_key": "a", "outcome": "failed"}]
    row = row_of(compiles=compiles, blocks=blocks([(1.0, 36.0)] * 6))
    assert row["outcome"] == "hurt"
    assert row["reason"].startswith("Dynamo looked at the code and compiled no graph")


def test_compile_seconds_are_a_union_and_pay_off_after_so_many_steps():
    spans = [(0.0, 4000.0), (1e6, 1000.0), (6e6, 1000.0)]
    intervals = [
        {"pass": "cold", "pid": 1, "started_us": start, "duration_ms": ms} for start, ms in spans
    ]
    row = row_of(blocks=blocks([(3.0, 1.0)] * 6), compile_intervals=intervals)
    assert row["compile_s"] == pytest.approx(5.0)
    assert row["break_even_steps"] == 2500


def test_what_does_not_help_never_pays_off():
    intervals = [{"pass": "cold", "pid": 1, "started_us": 0.0, "duration_ms": 1000.0}]
    row = row_of(blocks=blocks([(1.0, 1.2)] * 6), compile_intervals=intervals)
    assert row["break_even_steps"] is None
    assert row["compile_s"] == 1.0


def test_the_length_of_the_job():
    known = row_of(settings={"job_steps": 123.0})
    assert (known["job_steps"], known["job_steps_from"]) == (123, "option")
    ended = row_of(run={"exit_kind": "exit", "wall_s": 61.0})
    assert (ended["job_steps"], ended["job_steps_from"]) == (5000, "observed")
    for run in ({"exit_kind": "exit", "wall_s": 59.0}, {"wall_s": 61.0}):
        assert row_of(run=run)["job_steps"] is None
    compiled = [{"pass": "cold", "pid": 1, "started_us": 0.0, "duration_ms": 80_000.0}]
    slow = {"exit_kind": "exit", "wall_s": 120.0}
    assert row_of(run=slow, compile_intervals=compiled)["job_steps"] is None


def test_loops_of_more_than_a_minute_say_how_long_a_job_is_that_was_stopped():
    def of(steps, exit_kind="stopped", region_id=None, step_ms=(20.0, 10.0)):
        lengths = [{"pass": "cold", "pid": 1, "region_id": region_id, "steps": steps}]
        pairs = blocks([step_ms] * 6)
        row = row_of(run={"exit_kind": exit_kind}, blocks=pairs, job_lengths=lengths)
        return row["job_steps"], row["job_steps_from"]

    assert of(8000) == (8000, "loops")
    assert of(4000) == (None, None), "40 s, as it is compiled, may be a shortened job"
    assert of(4000, step_ms=(10.0, 20.0)) == (None, None), "and 40 s as it is in eager"
    assert of(8000, exit_kind="exit") == (None, None), "it went on and ended before"
    assert of(8000, region_id=7) == (None, None), "calls of another callable"


def test_a_worker_process_is_not_the_one_that_is_measured():
    runs = [RUN | {"pid": 9, "steps_seen": 0}, RUN]
    row = row_of(runs=runs, blocks=blocks([(2.0, 1.0)] * 6))
    assert row["pid"] == 1
    assert row["outcome"] == "helped"


def test_each_rank_has_its_own_row():
    runs = [RUN | {"rank": 1, "pid": 2}, RUN | {"rank": 0}]
    rows = blocks([(2.0, 1.0)] * 6, rank=0) + blocks([(3.0, 1.0)] * 6, rank=1, pid=2)
    made = Tables({"runs": from_rows("runs", runs), "blocks": from_rows("blocks", rows)})
    found = speedups(made, block_pairs(made), {})
    assert found.select("rank", "speedup").rows() == [(0, 2.0), (1, 3.0)]


def test_compiles_that_overlap_count_once():
    spans = [(0.0, 5.0), (3.0, 4.0), (10.0, 1.0), (None, 3.0), (20.0, None)]
    rows = [
        {"pass": "cold", "pid": 1, "started_us": start, "duration_us": length}
        for start, length in spans
    ]
    assert compile_seconds(Tables({"compiles": from_rows("compiles", rows)}), RUN) == 8e-6


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        (
            {"error_type": "ValueError", "exit_kind": "exit", "exit_code": 1},
            "the script fails without torch.compile as well: raised ValueError",
        ),
        ({"steps_seen": 400}, "does not fail)"),
        ({"steps_seen": 30}, ": no"),
    ],
)
def test_whether_a_failure_is_torch_compiles(baseline, said):
    run = {"exit_kind": "exit", "exit_code": 1, "error_type": "ValueError", "steps_seen": 301}
    runs = [RUN | run | {"error_message": "no"}, RUN | {"pass": "baseline", "pid": 2} | baseline]
    assert row_of(runs=runs)["reason"].endswith(said)


def test_the_steps_behind_the_figure_are_those_of_the_used_blocks():
    rows = blocks([(2.0, 1.0)] * 6)
    rows[0] |= {"steps": 60, "duration_ms": 120.0, "region_calls": 60}
    rows[-1] |= {"compiles_inside": 1}
    assert row_of(blocks=rows)["steps_timed"] == 10 * 50 + 10


def test_calls_that_never_led_to_a_compile_are_not_compiled():
    measured = blocks([(1.0, 1.0)] * 6)
    row = row_of(blocks=measured, compile_intervals=[])
    assert (row["outcome"], row["speedup"]) == ("not_compiled", 1.0)
    assert row["reason"] == "compiled callables were called, but Dynamo compiled nothing"
    assert row_of(blocks=measured)["outcome"] == "neutral"  # nobody watched


def test_the_error_that_torch_quotes_is_the_reason():
    message = (
        "RuntimeError when making fake tensor call\n"
        "  Explanation: Dynamo failed to run FX node with fake tensors: "
        "got RuntimeError('There was no fake impl for <my::op>. Please use it.')\n"
    )
    row = row_of(run={"exit_kind": "exit", "exit_code": 1, "error_type": "TorchRuntimeError",
                      "error_message": message})  # fmt: skip
    assert row["reason"] == (
        "the script raised TorchRuntimeError: RuntimeError when making fake tensor call "
        "(There was no fake impl for <my::op>)"
    )


def test_a_module_used_through_a_method_only_is_named_so():
    row = row_of(region={"calls": 0, "methods_used": ["sample"]})
    assert row["outcome"] == "not_compiled"
    assert "only through .sample()" in row["reason"]


class TestOtherWork:
    """What recurs between the steps is no part of the median, and is said as a mean."""

    TIMES = ((4.0, 1.0), (4.1, 1.0), (3.9, 1.0), (4.0, 1.1), (4.0, 1.0), (4.1, 1.0), (4.0, 0.9))

    def means(self, times):
        row = row_of(blocks=blocks(times))
        assert row["speedup"] == pytest.approx(4.0, rel=0.03)
        return row["eager_mean_ms"], row["compiled_mean_ms"]

    def test_work_that_comes_back_counts_on_average(self):
        times = [*self.TIMES[:3], (4.0, 3.0), *self.TIMES[3:], (4.0, 3.2), (4.1, 3.1)]
        eager, compiled = self.means(times)
        assert eager == pytest.approx(sum(pair[0] for pair in times) / len(times))
        assert compiled == pytest.approx(sum(pair[1] for pair in times) / len(times))

    def test_a_compile_that_does_not_come_back_is_no_part_of_it(self):
        times = [*self.TIMES[:3], (4.0, 3.0), *self.TIMES[3:], (4.0, 3.2), (4.1, 3.1)]
        rows = blocks([(4.0, 1.0), *times])
        rows[1] |= {"duration_ms": 9_000.0, "compiles_inside": 1}
        row = row_of(blocks=rows)
        assert (row["outcome"], row["compiles_between"]) == ("helped", 0)
        assert row["compiled_mean_ms"] == pytest.approx(sum(pair[1] for pair in times) / len(times))

    def test_what_happens_once_does_not(self):
        assert self.means([*self.TIMES, (4.0, 9.0)]) == (None, None)

    def test_nor_what_has_ended(self):
        assert self.means([(4.0, 3.0), (4.0, 3.1), (4.0, 3.2), *self.TIMES]) == (None, None)

    def test_nothing_else_happened(self):
        assert self.means(self.TIMES) == (None, None)
