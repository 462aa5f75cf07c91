"""Rules on recorded runs: bad ones fire at their line, good and healthy ones do not."""

from pathlib import Path

import pytest
from rule_scenarios import HEALTHY, SCENARIOS, SCRIPTS, marks, recorded

from traceview.rules import catalogue, run_rules

RULES = {rule.name: rule for rule in catalogue()}
RECORDED = recorded()
BAD = [(rule, s) for rule, (bad, _) in SCENARIOS.items() for s in bad if s.run in RECORDED]
GOOD = [(rule, s) for rule, (_, good) in SCENARIOS.items() for s in good if s.run in RECORDED]


def _ids(pairs):
    return [f"{rule}:{scenario.name}" for rule, scenario in pairs]


@pytest.mark.parametrize(("rule", "scenario"), BAD, ids=_ids(BAD))
def test_the_bad_scenario_fires_at_its_line(rule, scenario, tables_of):
    findings, unchecked = run_rules(tables_of(scenario.run), [RULES[rule]])
    assert unchecked == ()
    assert [finding.rule for finding in findings] == [rule]
    place = findings[0].location
    if scenario.line is None:
        assert place is None
    else:
        assert Path(place.file).name == Path(scenario.name).name + ".py"
        assert place.line == scenario.line


@pytest.mark.parametrize(("rule", "scenario"), GOOD, ids=_ids(GOOD))
def test_the_good_scenario_is_silent(rule, scenario, tables_of):
    findings, unchecked = run_rules(tables_of(scenario.run), [RULES[rule]])
    assert unchecked == ()
    assert [finding.title for finding in findings] == []


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_rule_gives_the_severities_that_it_states(name, tables_of):
    findings, _ = run_rules(tables_of(name))
    unstated = [f for f in findings if f.severity not in RULES[f.rule].severities]
    assert [f"{f.rule}: {f.severity}" for f in unstated] == []


@pytest.mark.parametrize("name", [n for n in HEALTHY if f"healthy-{n}" in RECORDED])
def test_healthy_scripts_get_no_warning(name, tables_of):
    findings, _ = run_rules(tables_of(f"healthy-{name}"))
    known = marks(SCRIPTS / "healthy" / f"{name}.py")  # torch's own limit, not the script's fault
    warnings = [f for f in findings if f.severity != "info" and f.rule not in known]
    assert [f"{f.rule}: {f.title}" for f in warnings] == []


def test_all_healthy_controls_are_looked_at():
    scripts = (SCRIPTS / "healthy").glob("*.py")
    assert {path.stem for path in scripts} == set(HEALTHY)
    assert len(HEALTHY) == 15


def test_every_scenario_is_recorded():
    scripts = SCRIPTS.glob("*/*.py")
    wanted = {f"{path.parent.name}-{path.stem}" for path in scripts if path.parent.name != "truth"}
    assert wanted - RECORDED == set(), "run: python fixtures/record.py"
