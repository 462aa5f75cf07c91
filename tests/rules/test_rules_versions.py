"""Scripts recorded by other versions of torch or elsewhere: the same cause and line, or why not.

What is expected is what the 2.13 recordings show (rule_scenarios.py). Times of an emulated machine
mean nothing, so a rule that goes by times is asked for on native recordings alone.
"""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from rule_scenarios import RUNS, SCENARIOS

from traceview.rules import catalogue, run_rules
from traceview.rules._recompiles import recompile_limit
from traceview.rules.kit import torch_version

ROOT = Path(__file__).resolve().parents[2]
RULES = {rule.name: rule for rule in catalogue()}
INDEX = json.loads((RUNS / "INDEX.json").read_text())
LABELLED = {name: line for name, line in INDEX.items() if line.get("label")}
EMULATED = "emulated"
#: They compare times: with each other, or with a threshold.
BY_TIME = {"ap-grad-inference", "bm-cold-in-timing", "gd-guard-overhead", "sv-cold-requests"}
#: Recordings without the cause, because that version does something else.
NOT_THERE = {
    "torch2_6-bad-rc_module_int_attr": "a module's int becomes symbolic when it first changes",
}


class Shown(NamedTuple):
    """A rule that a labelled recording shows, and the line that it names."""

    run: str
    rule: str
    line: int | None


def _shown():
    """Every rule that the script of a labelled recording shows."""
    by_script = {}
    for rule, (bad, _) in SCENARIOS.items():
        for scenario in bad:
            by_script.setdefault(f"scenarios/{scenario.name}.py", []).append((rule, scenario.line))
    for name, line in sorted(LABELLED.items()):
        for rule, number in by_script.get(line["scenario"], ()):
            if not (line["machine"].startswith(EMULATED) and rule in BY_TIME):
                yield Shown(name, rule, number)


SHOWN = list(_shown())


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: f"{shown.run}:{shown.rule}")
def test_the_same_rule_names_the_same_line(shown, tables_of):
    findings, unchecked = run_rules(tables_of(shown.run), [RULES[shown.rule]])
    assert unchecked == ()
    there = shown.run not in NOT_THERE
    assert [finding.rule for finding in findings] == [shown.rule] * there
    if there and shown.line is not None:
        place = findings[0].location
        assert Path(place.file).name == Path(LABELLED[shown.run]["scenario"]).name
        assert place.line == shown.line


@pytest.mark.parametrize("name", [name for name in LABELLED if "-healthy-" in name])
def test_healthy_scripts_get_no_warning(name, tables_of):
    findings, _ = run_rules(tables_of(name))
    by_time = BY_TIME if LABELLED[name]["machine"].startswith(EMULATED) else set()
    # Inductor found no vector instructions where these were recorded.
    scalar = {"ind-scalar-loop"} if name.startswith(("torch2_6-", "torch2_14-")) else set()
    told = [f for f in findings if f.severity != "info" and f.rule not in by_time | scalar]
    assert [f"{f.rule}: {f.title}" for f in told] == []


@pytest.mark.parametrize("name", sorted(LABELLED))
def test_everything_could_be_read(name, tables_of):
    assert tables_of(name)["unreadable"].is_empty()


@pytest.mark.parametrize("name", sorted(name for name in LABELLED if name.startswith("torch")))
def test_a_label_tells_the_version(name, tables_of):
    major, minor = torch_version(tables_of(name))
    assert LABELLED[name]["label"] == f"torch{major}_{minor}"


def test_the_docs_name_every_version_that_was_recorded():
    text = (ROOT / "docs" / "torch-versions.md").read_text()
    assert [line["torch"] for line in LABELLED.values() if line["torch"] not in text] == []


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("2.6.0+debian", "cache_size_limit"),
        ("2.7.1", "recompile_limit"),
        (None, "recompile_limit"),
    ],
)
def test_the_limit_is_called_as_that_torch_calls_it(make, version, name):
    tables = make(runs=[{"torch_version": version}])
    assert recompile_limit(tables) == f"torch._dynamo.config.{name}"
