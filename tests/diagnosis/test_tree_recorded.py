"""On recorded runs: what belongs together is one finding, with its cause on top."""

import pytest

from traceview.diagnosis.tree import everyone, job_steps, tree
from traceview.rules import catalogue, run_rules

FOLLOWS = {rule.name: rule.follows for rule in catalogue()}
#: Recorded run: cause, symptom.
TREES = {
    "bad-rc_limit_hit": ("rc-python-constant", "rc-limit-hit"),
    "bad-rc_module_int_attr": ("rc-module-int-attr", "rc-limit-hit"),
    "bad-gb_fragmented": ("gb-disabled-hot", "gb-fragmented"),
    "gpu-tf32_off": ("ind-tf32-off", "ap-gemm-bound"),
    "gpu-cg_skip_mutation": ("cg-skip-mutation", "ap-launch-bound"),
    "truth-gpu-many_guards": ("gd-guard-overhead", "ap-call-overhead"),
}


def grown(tables):
    found, _ = run_rules(tables)
    roots = tree(found, FOLLOWS, job_steps(tables)[0])
    assert sorted(f.title for f in everyone(roots)) == sorted(f.title for f in found)
    return roots


@pytest.mark.parametrize("name", TREES)
def test_the_cause_comes_first_with_its_symptom_under_it(name, tables_of):
    cause, symptom = TREES[name]
    first = grown(tables_of(name))[0]
    assert first.rule == cause
    assert symptom in [found.rule for found in everyone(first.symptoms)]
    assert first.whole_cost is not None


def test_a_limit_costs_its_cause_the_slow_steps_and_the_seconds(tables_of):
    first = grown(tables_of("bad-rc_module_int_attr"))[0]
    assert first.whole_cost.ms_per_step == first.symptoms[0].cost.ms_per_step
    assert first.whole_cost.seconds == first.cost.seconds
