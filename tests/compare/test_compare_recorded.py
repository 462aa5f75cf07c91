"""Pairs of recorded runs: what came and went is found, and of equal runs nothing is claimed."""

import pytest
from sides import changed, moved, side

from traceview.compare import compare

CLAIMS = {"better", "worse", "changed"}


def causes(comparison, *changes):
    return [(c.rule, c.change) for c in comparison.causes if c.change in changes]


def figure(comparison, key):
    (found,) = (pair for pair in comparison.figures if pair.key == key)
    return found


PAIRS = [
    ("gb_item", "gb-item"),
    ("rc_limit_hit", "rc-limit-hit"),
    ("gb_side_effect_io", "gb-side-effect-io"),
    ("rc_python_constant", "rc-python-constant"),
]


@pytest.mark.parametrize(("name", "rule"), PAIRS)
def test_a_fixed_script_has_lost_its_cause(name, rule):
    bad, good = side(f"bad-{name}"), side(f"good-{name}")
    assert (rule, "went") in causes(compare(bad, good), "went")
    assert (rule, "came") in causes(compare(good, bad), "came")


def test_the_fixed_break_is_gone_and_counted():
    comparison = compare(side("bad-gb_item"), side("good-gb_item"))
    assert [(b.change, b.before.line) for b in comparison.breaks] == [("went", 16)]
    breaks = figure(comparison, "graph_breaks")
    assert (breaks.before, breaks.after, breaks.change) == (1.0, 0.0, "better")
    assert [(f.name, f.change) for f in comparison.frames] == [
        ("forward", "same"), ("forward (resumed)", "went"),
    ]  # fmt: skip
    assert figure(comparison, "fx_graph_cache_misses").after == 1.0


def test_recompiles_of_a_function():
    (chain,) = compare(side("bad-rc_limit_hit"), side("good-rc_limit_hit")).recompiles
    assert (chain.before_recompiles, chain.after_recompiles, chain.change) == (8, 1, "shrank")
    assert (chain.before_limit_hit, chain.after_limit_hit) == (True, False)
    assert (chain.before_guards, chain.after_guards) == (("name",), ("bonus",))


@pytest.mark.parametrize("name", ["bad-gb_item", "bad-rc_limit_hit", "gpu-transformer_training"])
def test_a_run_beside_itself(name):
    comparison = compare(side(name), side(name))
    assert comparison.outcome == "no_difference_shown"
    assert {pair.change for pair in comparison.figures} & CLAIMS == set()
    assert {c.change for c in comparison.causes} <= {"same"}
    assert not any(c.moved for c in comparison.causes)
    assert comparison.environment == ()


@pytest.mark.parametrize("older", ["torch2_6", "torch2_8", "torch2_10", "torch2_14"])
def test_the_same_script_by_another_torch_has_the_same_cause(older):
    comparison = compare(side(f"{older}-bad-gb_item"), side("bad-gb_item"))
    (item,) = (c for c in comparison.causes if c.rule == "gb-item")
    assert item.before is not None
    assert item.after is not None
    assert not item.moved
    assert [b.change for b in comparison.breaks] == ["same"]
    assert {f.change for f in comparison.frames} & {"came", "went"} == set()
    assert ("versions", "torch_version") in {(d.section, d.name) for d in comparison.environment}
    assert any(note.startswith("The torch version differs: ") for note in comparison.notes)


ABOVE = '"""A docstring."""\n\nimport os\n\n\ndef unused(x):\n    return x\n\n\n'


@pytest.mark.parametrize("renamed", [None, "trainer.py"])
@pytest.mark.parametrize("name", ["bad-gb_item", "bad-gb_side_effect_io", "bad-rc_limit_hit"])
def test_moved_lines_and_a_renamed_file_are_the_same_causes(name, renamed):
    before = side(name)
    comparison = compare(before, moved(before, ABOVE, renamed))
    placed = [c for c in comparison.causes if c.before]
    assert placed
    for pair in (
        *comparison.causes,
        *comparison.frames,
        *comparison.breaks,
        *comparison.recompiles,
    ):
        assert pair.change == "same", pair
        assert pair.moved == (pair.before is not None)
    assert {c.after.line - c.before.line for c in placed} == {ABOVE.count("\n")}
    said = any("at least half of their lines are the same" in note for note in comparison.notes)
    assert said == (renamed is not None)


def test_without_sources_only_what_the_report_quotes_is_known():
    before = side("bad-gb_item")
    bare = changed(before, lambda data: None, lambda file: None)
    after = moved(before, ABOVE)
    quoted = changed(after, lambda data: None, lambda file: None)
    (item,) = (c for c in compare(bare, quoted).causes if c.rule == "gb-item")
    assert (item.change, item.matched_by) == ("same", "function and text of the line")


def test_what_could_not_be_checked_has_not_come():
    before, after = side("bad-gb_item"), side("good-gb_item")

    def unchecked(data):
        row = {"rule": "gb-item", "code": "TV101", "needs": "a log", "command": None}
        data["not_checked"].append(row)

    def silenced(data):
        data["rules"]["left_out"] = ["gb-item"]

    blind = compare(before, changed(after, unchecked))
    (item,) = (c for c in blind.causes if c.rule == "gb-item")
    assert (item.change, item.why) == ("unknown", "after: not checked, it needs a log")
    blind = compare(changed(after, silenced), before)
    (item,) = (c for c in blind.causes if c.rule == "gb-item")
    assert (item.change, item.why) == ("unknown", "before: this rule was not selected")


def test_a_cost_that_trebles_has_grown():
    before = side("gpu-transformer_training")
    costly = next(f for f in before.diagnosis.findings if f.cost.ms_per_step)

    def slower(data):
        for found in data["findings"]:
            if found["code"] == costly.code:
                found["cost"]["ms_per_step"] *= 4
                found["whole_cost"] = None

    comparison = compare(before, changed(before, slower))
    assert (costly.rule, "grew") in causes(comparison, "grew")
    assert (costly.rule, "shrank") in causes(compare(changed(before, slower), before), "shrank")
