"""Choosing rules: words into rules, settings into thresholds, and what is wrong said in words."""

import pytest

from traceview.errors import UsageError
from traceview.rules import Rule, catalogue, run_rules
from traceview.rules.choice import Asked, choose
from traceview.rules.ignores import Silenced, UnusedIgnore
from traceview.rules.plugins import Installed, Refused
from traceview.rules.used import rules_used

NAMES = {rule.name for rule in catalogue()}


def names(*asked, installed=None):
    return {rule.name for rule in choose(installed, *asked).rules}


def toy(tables, *, most: int = 3, share: float = 0.5, loud: bool = False):
    yield from ()


def with_settings():
    rule = Rule(
        "xx-toy", "XX101", frozenset(), {}, toy, __name__,
        settings={"most": 3, "share": 0.5, "loud": False},
    )  # fmt: skip
    return Installed((*catalogue(), rule), (Refused("xx-broken", "xx-rules 1.0", "it is broken"),))


def asked(rule="xx-toy", **settings):
    return Asked(settings={rule: settings}, where="/p/pyproject.toml")


@pytest.mark.parametrize(
    ("word", "some"),
    [
        ("gb-item", {"gb-item"}),
        ("GB-Item", {"gb-item"}),
        ("TV101", {"gb-item"}),
        ("tv101", {"gb-item"}),
        ("rc", {name for name in NAMES if name.startswith("rc-")}),
        ("TV2", {rule.name for rule in catalogue() if rule.code.startswith("TV2")}),
        ("TV", NAMES),
        ("all", NAMES),
    ],
)
def test_what_a_word_stands_for(word, some):
    assert names(Asked(select=(word,))) == some != set()
    assert names(Asked(ignore=(word,))) == NAMES - some


@pytest.mark.parametrize("word", ["gb-i", "T", "r", "V1", "TV1x", "-", "rc*"])
def test_half_a_word_stands_for_nothing(word):
    with pytest.raises(UsageError, match="no rule called"):
        choose(None, Asked(ignore=(word,)))


def test_the_command_line_wins_over_the_file():
    file = Asked(select=("gb", "rc"), ignore=("gb-item",))
    assert names(file) == {n for n in NAMES if n[:3] in ("gb-", "rc-")} - {"gb-item"}
    assert names(file, Asked(select=("gb-item",))) == {"gb-item"}
    assert names(file, Asked(ignore=("rc",))) == {n for n in NAMES if n[:3] == "gb-"} - {"gb-item"}
    assert names(file, Asked()) == names(file)


def test_nothing_asked_for_is_everything_and_needs_no_word():
    choice = choose()
    assert choice.rules == catalogue()
    assert rules_used(choice).notes == ()


def test_a_word_that_is_nearly_right():
    with pytest.raises(UsageError) as caught:
        choose(None, Asked(ignore=("gb-itm",), where="--here"))
    assert caught.value.fact == "There is no rule called gb-itm (--here)."
    assert caught.value.remedy.startswith("Did you mean gb-item?")


def test_a_setting_reaches_the_rule():
    choice = choose(with_settings(), asked(share=1, most=7))
    (rule,) = (rule for rule in choice.rules if rule.name == "xx-toy")
    assert rule.settings == {"most": 7, "share": 1.0, "loud": False}
    assert {(change.setting, change.value) for change in choice.changed} == {
        ("share", 1.0),
        ("most", 7),
    }
    assert "xx-toy.most is 7 instead of 3" in rules_used(choice).notes[0]
    assert choose(with_settings(), asked(rule="xx101", most=3)).changed == ()


def test_check_is_called_with_the_settings_in_force(make):
    seen = {}

    def check(tables, *, most: int = 3):
        seen["most"] = most
        yield from ()

    rule = Rule("xx-toy", "XX101", frozenset(), {}, check, __name__, settings={"most": 3})
    run_rules(make(), choose(Installed((rule,)), asked(most=9)).rules)
    assert seen == {"most": 9}


@pytest.mark.parametrize(
    ("settings", "fact", "remedy"),
    [
        ({"mst": 1}, "xx-toy has no setting called mst", "Did you mean most?"),
        ({"most": 0.5}, "xx-toy.most must be a whole number, not 0.5", "Its default is 3"),
        ({"most": True}, "must be a whole number, not True", "Its default is 3"),
        ({"share": "0.5"}, "must be a number, not '0.5'", "Its default is 0.5"),
        ({"share": float("nan")}, "must be a number, not nan", "Its default is 0.5"),
        ({"share": True}, "must be a number, not True", "Its default is 0.5"),
        ({"loud": 1}, "must be true or false, not 1", "Its default is False"),
        ({"share": {"a": 1}}, "must be a number", "`traceview explain xx-toy`"),
    ],
)
def test_wrong_settings(settings, fact, remedy):
    with pytest.raises(UsageError) as caught:
        choose(with_settings(), asked(**settings))
    assert fact in caught.value.fact
    assert "(/p/pyproject.toml)" in caught.value.fact
    assert remedy in caught.value.remedy


def test_settings_of_no_rule():
    with pytest.raises(UsageError, match="no rule called gb-itm to give settings to"):
        choose(None, asked("gb-itm", most=1))
    with pytest.raises(UsageError) as caught:
        choose(None, asked("gb-item", most=1))
    assert caught.value.remedy == "It has no settings."


def test_words_for_a_rule_that_could_not_be_loaded_are_no_mistake():
    words = Asked(ignore=("xx-broken",), settings={"xx-broken": {"most": 1}})
    choice = choose(with_settings(), words)
    assert rules_used(choice).refused == (
        "The rule xx-broken of xx-rules 1.0 is not used: it is broken.",
    )


def test_what_was_left_out_and_silenced_is_said():
    choice = choose(None, Asked(ignore=("gb-item",), where="the command line"))
    silenced = [Silenced("rc-limit-hit", "TV202", "…", "/u/train.py", 7)]
    unused = [UnusedIgnore("/u/train.py", 9, "# traceview: ignore", "silences nothing.")]
    used = rules_used(choice, silenced, unused)
    assert used.left_out == ("gb-item",)
    assert used.notes == (
        "1 rule was not asked for (the command line): gb-item.",
        "1 finding is silenced by comments in the source: rc-limit-hit at train.py:7.",
        "train.py:9: `# traceview: ignore` silences nothing.",
    )
