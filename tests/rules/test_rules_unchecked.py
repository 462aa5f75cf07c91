"""Where a record is poorer, a rule that found something still does, or says "not checked"."""

from functools import lru_cache

import polars as pl
import pytest
from recordings import RUNS, made, run_of
from rule_scenarios import SCENARIOS, recorded

from traceview.parse import structured
from traceview.parse.damage import Damage
from traceview.rules import catalogue, run_rules
from traceview.tables import Tables

RECORDED = recorded()


def size(run):
    return (RUNS / f"{run}.tar.xz").stat().st_size


#: Of the runs that show a rule, the smallest.
RULES = {
    rule.name: (rule, min(runs, key=size))
    for rule in catalogue()
    if (runs := [s.run for s in SCENARIOS.get(rule.name, ((),))[0] if s.run in RECORDED])
}
PROFILED = ("kernels", "kernel_launches", "cpu_ops", "line_ops")


def without_eager(run, tables):
    """As with --no-baseline."""
    for name in tables:
        kept = tables[name].filter(pl.col("pass") != "baseline")
        if "stance" in kept.columns:
            kept = kept.filter(pl.col("stance") != "eager")
        yield name, kept


def without_profile(run, tables):
    """As where the script ended before its profiler windows."""
    yield from ((name, tables[name]) for name in tables if name not in PROFILED)


def structured_log_alone(run, tables):
    """As where somebody set TORCH_TRACE and kept nothing else."""
    yield from structured.read_pass(run, run.manifest.passes[0], Damage()).items()


@lru_cache(maxsize=3)
def poorer(name, keep):
    """What is kept of a recorded run, and derived from that alone."""
    return made(name, keep.__name__, lambda tables: Tables(dict(keep(run_of(name), tables))))


KEPT = (without_eager, without_profile, structured_log_alone)
#: Each rule with one of them by default, and with the others where there is time.
CASES = [
    pytest.param(name, keep, marks=[] if number % len(KEPT) == at else [pytest.mark.thorough])
    for number, name in enumerate(RULES)
    for at, keep in enumerate(KEPT)
]


@pytest.mark.parametrize(("name", "keep"), CASES)
def test_it_is_never_silent_for_want_of_a_record(name, keep, tables_of):
    rule, run = RULES[name]
    found = run_rules(tables_of(run), [rule])[0]
    findings, unchecked = run_rules(poorer(run, keep), [rule])
    assert len(findings) >= len(found) or unchecked
