"""Rules on recorded runs: bad ones fire at their line, good and healthy ones do not."""

from pathlib import Path

import pytest
from rule_scenarios import HEALTHY, SCENARIOS, SCRIPTS, marks, recorded

from traceview.rules import catalogue, run_rules
from traceview.tables import grouped

RULES = {rule.name: rule for rule in catalogue()}
RECORDED = recorded()
#: Recording → the scenarios that it is of, each with a rule that it shows (0) or does not (1).
SHOWS, HIDES = (
    grouped(
        ((rule, s) for rule, both in SCENARIOS.items() for s in both[which]),
        by=lambda pair: pair[1].run,
    )
    for which in (0, 1)
)


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_recording_shows_what_it_is_marked_with(name, tables_of):
    """Rules fire at their lines, those that come close are silent; severities are those stated."""
    tables = tables_of(name)
    unstated = [f for f in run_rules(tables)[0] if f.severity not in RULES[f.rule].severities]
    assert [f"{f.rule}: {f.severity}" for f in unstated] == []
    for rule, scenario in SHOWS[name]:
        fires_at_its_line(rule, scenario, *run_rules(tables, [RULES[rule]]))
    for rule, _ in HIDES[name]:
        findings, unchecked = run_rules(tables, [RULES[rule]])
        assert unchecked == (), f"{rule} must stay silent, and was not checked"
        assert [finding.title for finding in findings] == [], f"{rule} must stay silent"


def fires_at_its_line(rule, scenario, findings, unchecked):
    assert unchecked == ()
    assert [finding.rule for finding in findings] == [rule]
    place = findings[0].location
    if scenario.line is None:
        assert place is None
    else:
        assert Path(place.file).name == Path(scenario.name).name + ".py"
        assert place.line == scenario.line


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
