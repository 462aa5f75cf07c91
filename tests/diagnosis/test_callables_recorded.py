"""Recorded scripts with several callables, and with several threads."""

import pytest
from recordings import diagnosis_of, parsed

TWO, LOOP, THREADS = (
    f"healthy-{name}" for name in ("two_callables", "backends_loop", "worker_threads")
)


@pytest.fixture
def two():
    return diagnosis_of(TWO)


def test_each_callable_has_a_verdict_of_its_own(two):
    large, small = two.regions
    assert (large.name, small.name) == ("large", "small")
    assert (large.headline, small.headline) == (True, False)
    for each in (large, small):
        low, high = each.speedup_interval
        assert low <= each.speedup <= high
        assert each.blocks >= 3
    assert large.step_compiled_ms > small.step_compiled_ms
    assert (two.verdict.speedup, two.verdict.eager_ms) == (large.speedup, large.step_eager_ms)
    assert "the second of 2 callables" in two.verdict.sentence
    assert f"Timed as well: {small.sentence.split(':')[0]}" in two.verdict.sentence


def test_every_section_is_about_the_headline(two):
    tables = parsed(TWO)
    assert set(tables["cpu_ops"]["anchor_region_id"]) == {0, 1}, "both were profiled"
    large, small = two.regions
    assert (small.eager_ms, small.share) == (None, None), "not called in those steps: not zero"
    assert large.share > 0.5
    # large() has 8 operators of each kind, small() four.
    (tanh,) = (row for row in two.kernels if (row.stance, row.name) == ("eager", "aten::tanh"))
    assert tanh.count == 8
    assert {pair["steps"] > 0 for pair in two.pairs} == {True}
    assert two.verdict.blocks_measured == len(two.pairs)


def test_a_line_that_was_never_reached_is_listed(two):
    (line,) = two.unreached
    assert line.line == 32
    assert "two_callables.py:32: --run-to-end" in two.verdict.sentence


def test_a_loop_over_backends_is_a_table_and_the_verdict_is_about_inductor():
    found = diagnosis_of(LOOP)
    by_backend = {region.arguments["backend"]: region for region in found.regions}
    assert set(by_backend) == {"eager", "inductor"}
    assert by_backend["inductor"].headline
    assert found.verdict.speedup == by_backend["inductor"].speedup
    assert by_backend["eager"].speedup == pytest.approx(1.0, abs=0.25)
    assert not [f.code for f in found.findings if f.code == "TV111"], "it compares backends"


def test_calls_of_two_threads_are_measured():
    found, blocks = diagnosis_of(THREADS), parsed(THREADS)["blocks"]
    assert found.verdict.blocks >= 6
    assert found.verdict.blocks > found.verdict.blocks_measured / 2
    assert blocks["other_thread_calls"].sum() > blocks["steps"].sum() / 20
    assert (blocks["region_calls"] - blocks["steps"]).abs().max() <= 3
    # Without traceview: 1.4 ms eager, 3.1 ms compiled, whose kernels hold Python's lock.
    assert found.verdict.speedup == pytest.approx(0.5, abs=0.05)
    assert any("several threads" in note for note in found.notes)
