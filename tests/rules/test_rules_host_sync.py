"""Waiting for a GPU for a value, and reading a clock without waiting for it."""

import pytest
from msgspec.structs import replace
from rule_scenarios import recorded

from traceview.derive.facts import add_facts
from traceview.rules import bm_no_sync
from traceview.rules.ap_host_sync import check
from traceview.rules.bm_no_sync import Pace
from traceview.tables import Tables, from_rows

AT = {"pass": "cold", "stance": "compiled"}
LINE = AT | {"file": "/u/train.py", "line": 7}
READ = LINE | {"asks": ".item()", "scalars": 1.0, "tensors": 0.0, "waited_ms": 1.0}
GPUS = sorted(name for name in recorded() if name.startswith(("gpu-", "truth-gpu-")))
SAID = {
    "ap-host-sync": {"gpu-ap_host_sync_print", "truth-gpu-item_each_score"},
    "bm-no-sync": {"gpu-bm_no_sync"},
}


def replay(ms, line=7, last=None, step=4.0):
    """A step that takes ``ms`` less without what ``line`` reads."""
    times = {"step_ms": step, "without_ms": step - ms}
    return LINE | {"line": line, "last_line": last or line} | times


def found(*reads, replays=(), breaks=()):
    """Findings in a compiled step of 4 ms."""
    speedups = [{"pass": "cold", "eager_ms": 5.0, "compiled_ms": 4.0, "outcome": "helped"}]
    made = {
        "host_reads": reads, "read_replays": replays, "speedups": speedups,
        "graph_breaks": breaks,
    }  # fmt: skip
    tables = Tables({name: from_rows(name, rows) for name, rows in made.items()})
    add_facts(tables)
    return list(check(tables))


@pytest.mark.parametrize(("ms", "severities"), [(0.5, ["warning"]), (0.1, ["info"]), (0.02, [])])
def test_a_line_that_waits_is_found_by_its_cost(ms, severities):
    assert [finding.severity for finding in found(READ, replays=[replay(ms)])] == severities


def test_the_dearest_line_stands_first():
    other = READ | {"line": 19}
    lines = found(READ, other, replays=[replay(0.3), replay(0.4, line=19)])
    costs = [(each.location.line, each.cost.ms_per_step) for each in lines]
    assert costs == [(19, pytest.approx(0.4)), (7, pytest.approx(0.3))]


def test_a_replay_counts_in_proportion_to_the_step_as_timed():
    (finding,) = found(READ, replays=[replay(0.5, step=5.0)])
    assert finding.cost.ms_per_step == pytest.approx(0.4)


def test_neighbours_that_read_equally_many_are_one_place():
    many = [READ | {"scalars": 8.0, "line": line} for line in (7, 8, 9)]
    (finding,) = found(*many, replays=[replay(1.0, last=9)])
    assert [finding.location.line, *(place.line for place in finding.also_at)] == [7, 8, 9]
    assert "train.py:7 to 9 wait for the GPU" in finding.title
    assert "24 copies" in finding.evidence[0].text


def test_tensors_that_leave_the_gpu_may_be_the_result():
    row = READ | {"asks": ".cpu()", "scalars": 0.0, "tensors": 1.0}
    assert [each.severity for each in found(row, replays=[replay(2.0)])] == ["info"]


def test_many_values_are_better_read_at_once():
    (finding,) = found(READ | {"scalars": 64.0}, replays=[replay(2.0)])
    assert "tolist()" in finding.what_to_do


@pytest.mark.parametrize(
    "row",
    [{"asks": None}, {"scalars": 0.1}, {"stance": "eager"}],
    ids=["a library asks", "every tenth step", "eager"],
)
def test_lines_that_are_left_alone(row):
    assert found(READ | row, replays=[replay(2.0)]) == []


def test_a_line_where_a_graph_breaks_is_another_rules():
    broken = [{"pass": "cold", "user_file": "/u/train.py", "user_line": 7}]
    assert found(READ, replays=[replay(2.0)], breaks=broken) == []


TIMER = {
    "pass": "cold", "region_id": 0, "file": "/u/bench.py", "start_line": 3, "read_line": 6,
    "call_line": 5, "function": "main", "clock": "time.perf_counter", "calls_in_loop": True,
    "spans_first_call": False, "waits": False, "calls": 100,
}  # fmt: skip


def unsynchronised(make, *, host=0.5, syncs=0.0, ended="stopped", seen=900, **timer):
    """Findings where a step takes the device 1 ms."""
    block = AT | {"pair_index": 0, "clock": "device", "compiles_inside": 0}
    made = make(
        script_timers=[TIMER | timer],
        blocks=[block | {"steps": 10, "duration_ms": 10.0, "host_ms": 10 * host}],
        step_counts=[AT | {"syncs": syncs, "launches": 4.0}],
        speedups=[{"compiled_ms": 1.0, "outcome": "helped"}],
        runs=[{"exit_kind": ended}],
        regions=[{"region_id": 0, "outermost_calls": seen}],
    )
    return list(bm_no_sync.check(made))


@pytest.mark.parametrize(
    ("host", "kind", "calls", "fires"),
    [(0.25, "call", 12, True), (0.95, "call", 12, False), (0.25, "optimizer", 12, False),
     (0.25, "call", 3, False)],
)  # fmt: skip
def test_calls_that_are_timed_one_by_one(make, host, kind, calls, fires):
    call = {**AT, "region_id": 0, "outermost": True, "host_ms": host, "compiles_inside": 0}
    made = make(
        script_timers=[TIMER | {"calls_in_loop": False, "calls": None}],
        calls=[call] * calls,
        blocks=[],
        step_counts=[AT | {"syncs": 0.05, "launches": 4.0}],
        speedups=[{"compiled_ms": 1.0, "outcome": "neutral"}],
        runs=[{"exit_kind": "stopped", "step_kind": kind}],
        regions=[{"region_id": 0, "outermost_calls": 900, "is_anchor": True}],
    )
    findings = list(bm_no_sync.check(made))
    assert [each.severity for each in findings] == ["warning"] * fires
    assert all("75 % of the time of a call is missing" in each.cost.about for each in findings)


def test_a_short_loop_of_known_length_is_a_warning(make):
    (finding,) = unsynchronised(make)
    assert (finding.severity, finding.location.line) == ("warning", 6)
    assert "50 % of the time of 100 calls is missing" in finding.cost.about


def test_a_loop_of_unknown_length_is_information(make):
    (finding,) = unsynchronised(make, calls=None)
    assert finding.severity == "info"
    assert "one of 5,120 calls or more less than 5 %" in finding.cost.about


def test_a_script_that_ended_shows_how_long_the_loop_was_at_most(make):
    (finding,) = unsynchronised(make, calls=None, ended="exit", seen=103)
    assert finding.severity == "warning"
    assert unsynchronised(make, calls=None, ended="exit", seen=10_000) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"calls": 10_000},
        {"host": 0.9},
        {"syncs": 1.0},
        {"waits": None},
        {"clock": "torch.cuda.Event"},
        {"clock": "time.process_time"},
        {"spans_first_call": True},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_clocks_that_are_right_or_nearly_so(make, changed):
    assert unsynchronised(make, **changed) == []


def test_nanoseconds_are_the_same_clock(make):
    assert len(unsynchronised(make, clock="time.perf_counter_ns")) == 1


def test_the_queue_bounds_what_is_missing():
    pace = Pace(device=1.0, host=0.5, launches=1.0)
    assert pace.missing(100) == 0.5
    assert pace.missing(10_240) == pytest.approx(0.1)
    assert replace(pace, launches=8.0).missing(10_240) == pytest.approx(0.0125)


@pytest.mark.parametrize("name", GPUS)
def test_recordings_of_a_gpu_hear_it_only_where_it_is_so(name, tables_of):
    tables = tables_of(name)
    said = {each.rule for each in (*check(tables), *bm_no_sync.check(tables))}
    assert said == {rule for rule, names in SAID.items() if name in names}


def test_reading_every_score_by_itself_is_a_warning(tables_of):
    (finding,) = check(tables_of("truth-gpu-item_each_score"))
    assert (finding.severity, finding.location.line) == ("warning", 17)
    assert "tolist()" in finding.what_to_do
