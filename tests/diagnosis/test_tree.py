"""Causes and their symptoms: who goes under whom, and what a tree costs."""

from itertools import permutations

import pytest
from msgspec.structs import replace

from traceview.diagnosis.tree import everyone, tree
from traceview.rules import catalogue
from traceview.rules.finding import Cost, Evidence, Finding, Location

FOLLOWS = {"limit": {"int", "size"}, "slow": {"limit", "int"}, "cut": {"item"}}
FORWARD, LOSS = "/u/net.py:10", "/u/loss.py:3"


def said(rule, *about, ms=None, seconds=None, line=10, severity="warning", also=()):
    place = Location("/u/net.py", line)
    return Finding(
        "TV000", rule, severity, f"{rule} at {line}", "", Cost(ms, seconds), "measured", place,
        (Evidence("seen", "compiles"),), "Nothing.", about=frozenset(about),
        also_at=tuple(Location("/u/net.py", number) for number in also),
    )  # fmt: skip


def shape(findings):
    return [(found.rule, shape(found.symptoms)) if found.symptoms else found.rule
            for found in findings]  # fmt: skip


def grown(*findings, follows=FOLLOWS):
    return tree(findings, follows, 1000)


def test_recompiles_the_limit_and_the_slow_step_are_one_finding():
    (cause,) = grown(
        said("slow", FORWARD, ms=0.5), said("limit", FORWARD, ms=0.5, severity="error"),
        said("int", FORWARD, seconds=8.0),
    )  # fmt: skip
    assert shape([cause]) == [("int", ["limit", "slow"])]
    assert (cause.whole_cost.ms_per_step, cause.whole_cost.seconds) == (0.5, 8.0)
    assert cause.cost == Cost(None, 8.0)
    assert cause.severity == "error", "as grave as what follows from it"


def test_a_limit_that_a_value_read_at_a_break_met_is_part_of_the_break():
    follows = {rule.name: rule.follows for rule in catalogue()}
    found = [
        said("rc-limit-hit", FORWARD, ms=0.3), said("gb-item", FORWARD, ms=0.1),
        said("rc-resumed-value", FORWARD, seconds=1.8),
    ]  # fmt: skip
    assert shape(grown(*found, follows=follows)) == [
        ("gb-item", [("rc-resumed-value", ["rc-limit-hit"])])
    ]


def test_information_stands_last_unless_it_weighs():
    cheap, dear = said("item", ms=0.2), said("slow", ms=3.0, severity="info")
    assert shape(grown(cheap, dear)) == ["item", "slow"]
    assert shape(grown(cheap, replace(dear, weighs=True))) == ["slow", "item"]


def test_a_symptom_may_have_symptoms():
    (cause,) = grown(said("slow", ms=0.5), said("limit", seconds=9.0), said("int", seconds=8.0))
    assert shape([cause]) == [("int", [("limit", ["slow"])])]
    assert (cause.whole_cost.ms_per_step, cause.whole_cost.seconds) == (0.5, 9.0)


def test_another_function_is_another_matter():
    assert shape(grown(said("limit", LOSS), said("int", FORWARD))) == ["limit", "int"]


def test_what_is_about_the_whole_script_fits_any_function():
    assert shape(grown(said("slow"), said("int", FORWARD))) == [("int", ["slow"])]
    assert shape(grown(said("slow", FORWARD), said("int"))) == [("int", ["slow"])]


def test_the_best_of_several_causes():
    here, dear, same = (
        said("int", seconds=1.0, line=1),
        said("int", FORWARD, seconds=9.0, line=2),
        said("size", FORWARD, seconds=2.0, line=3),
    )
    roots = grown(here, dear, same, said("limit", FORWARD, line=3))
    assert {f.rule: shape(f.symptoms) for f in roots if f.symptoms} == {"size": ["limit"]}
    roots = grown(here, dear, same, said("limit", FORWARD, line=8))
    assert next(f for f in roots if f.symptoms).location.line == 2, "about it, and dearest"


def test_of_causes_at_a_line_the_one_with_the_same_evidence_comes_first():
    row = (Evidence("0/8: len(ages) == 11", "recompiles"),)
    length = replace(said("size", FORWARD, seconds=1.0), evidence=row)
    limit = replace(said("limit", FORWARD), evidence=(*row, Evidence("seen", "warnings")))
    roots = grown(said("int", FORWARD, seconds=9.0), length, limit)
    assert {f.rule: shape(f.symptoms) for f in roots if f.symptoms} == {"size": ["limit"]}


def test_of_what_is_about_the_whole_script_a_common_line_says_little():
    roots = grown(said("int", ms=0.1, line=10), said("size", ms=9.0, line=2), said("limit"))
    assert shape(roots) == [("size", ["limit"]), "int"]


def test_a_cheap_thing_is_no_cause_of_a_dear_one_unless_it_is_the_very_line():
    cheap = said("item", FORWARD, ms=0.001, severity="info", line=5)
    assert shape(grown(cheap, said("cut", FORWARD, ms=1.0))) == ["cut", "item"]
    dear = said("cut", FORWARD, ms=1.0, also=(5, 6))
    (root,) = grown(cheap, dear)
    assert (shape([root]), root.severity) == ([("item", ["cut"])], "warning")


def test_what_several_causes_share_is_not_counted_twice():
    sites = [said("item", FORWARD, ms=ms, line=line) for line, ms in ((5, 0.2), (6, 0.1))]
    roots = grown(*sites, said("cut", FORWARD, ms=0.3, line=5))
    costs = [(f.whole_cost or f.cost).ms_per_step for f in roots]
    assert sum(costs) == pytest.approx(0.3)
    alone = grown(said("item", FORWARD, ms=0.2, line=5), said("cut", FORWARD, ms=0.3, line=5))
    assert alone[0].whole_cost.ms_per_step == pytest.approx(0.3)


def test_a_circle_of_rules_loses_nobody():
    follows = {"a": {"b"}, "b": {"c"}, "c": {"a"}}
    found = grown(said("a"), said("b"), said("c"), follows=follows)
    assert sorted(f.rule for f in everyone(found)) == ["a", "b", "c"]
    assert len(found) == 1


def test_every_finding_is_in_it_once_in_whatever_order_they_come():
    findings = [
        said("int", FORWARD, seconds=3.0), said("size", LOSS, seconds=2.0), said("limit", FORWARD),
        said("limit", LOSS), said("slow", ms=0.1), said("other", ms=9.0),
    ]  # fmt: skip
    shapes = {str(shape(grown(*order))) for order in permutations(findings)}
    assert shapes == {"['other', ('int', ['slow', 'limit']), ('size', ['limit'])]"}


def test_a_tree_stands_where_its_whole_cost_puts_it():
    roots = grown(said("other", seconds=5.0), said("int", seconds=1.0), said("limit", ms=8.0))
    assert shape(roots) == [("int", ["limit"]), "other"]
