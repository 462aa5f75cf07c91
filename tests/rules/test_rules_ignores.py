"""``# traceview: ignore[…]``: which findings it silences, and when it silences none."""

import pytest

from traceview.rules import catalogue
from traceview.rules.finding import Cost, Evidence, Finding, Location
from traceview.rules.ignores import silence

FILE = "/u/train.py"
CHECKED = {rule.name for rule in catalogue()}


def finding(line=2, rule="gb-item", also=(), file=FILE):
    code = next(item.code for item in catalogue() if item.name == rule)
    return Finding(
        code, rule, "warning", f"at {line}", "", Cost(), "measured",
        None if line is None else Location(file, line), (Evidence("x", "graph_breaks"),), "",
        also_at=tuple(Location(file, at) for at in also),
    )  # fmt: skip


def silenced(text, *findings, checked=CHECKED):
    """(titles that stay, (rule, line of the comment), (line, what is said of an idle comment))."""
    kept, gone, unused = silence(findings, [FILE], {FILE: text}.get, catalogue(), checked)
    return (
        [item.title for item in kept],
        [(item.rule, item.line) for item in gone],
        [(item.line, item.comment, item.why) for item in unused],
    )


@pytest.mark.parametrize(
    "comment",
    [
        "# traceview: ignore[gb-item]",
        "# traceview: ignore[TV101]",
        "# traceview: ignore[tv101, rc-limit-hit]",
        "# traceview: ignore",
        "#traceview:ignore[GB-Item]",
        "# noqa: E501  # traceview: ignore[gb-item]  (it is for the log)",
    ],
)
def test_a_comment_silences_what_is_found_on_its_line(comment):
    kept, gone, _ = silenced(f"import x\ny.item()  {comment}\nz\n", finding(2), finding(3))
    assert kept == ["at 3"]
    assert gone == [("gb-item", 2)]


@pytest.mark.parametrize(
    "line",
    [
        "y.item()  # traceview: ignore[rc]",
        "y.item()  # traceview: ignored",
        "y.item()  # traceview: ignore-this",
        "y.item(' # traceview: ignore[gb-item]')",
        "y.item()  # traceview: ignore[]",
        "y.item()",
    ],
)
def test_what_is_no_such_comment(line):
    assert silenced(f"import x\n{line}\n", finding(2))[0] == ["at 2"]


def test_other_rules_files_and_places():
    text = "import x\ny.item()  # traceview: ignore[gb-item]\n"
    others = (finding(2, "rc-limit-hit"), finding(None), finding(2, file="/u/other.py"))
    kept, gone, unused = silenced(text, *others)
    assert len(kept) == 3
    assert gone == []
    assert [line for line, _, _ in unused] == [2]


def test_also_at():
    text = "import x\ny.item()  # traceview: ignore[gb-item]\n"
    assert silenced(text, finding(9, also=(5, 2)))[1:] == ([("gb-item", 2)], [])


def test_a_comment_counts_for_all_lines_of_its_statement():
    text = (
        "def f(x):\n"
        "    y = g(\n"
        "        x.item(),\n"
        "        # traceview: ignore[gb-data-dependent]\n"
        "    )  # traceview: ignore[gb-item]\n"
        "    return y\n"
    )
    both = (finding(3), finding(2, "gb-data-dependent"), finding(6))
    assert silenced(text, *both)[0] == ["at 6"]


def test_a_comment_on_a_line_of_its_own_is_for_no_other_line():
    text = "# traceview: ignore[gb-item]\ny.item()\n"
    kept, _, unused = silenced(text, finding(2))
    assert kept == ["at 2"]
    assert unused == [
        (1, "# traceview: ignore[gb-item]", "silences nothing in this run: take it away.")
    ]


def test_each_name_of_a_comment_must_be_of_use():
    text = "x\ny.item()  # traceview: ignore[gb-item, rc-limit-hit]\n"
    assert silenced(text, finding(2))[2] == [
        (2, "# traceview: ignore[rc-limit-hit]", "silences nothing in this run: take it away.")
    ]


def test_of_a_rule_that_was_not_checked_nothing_is_said():
    text = "x\ny.item()  # traceview: ignore[rc-limit-hit]\n"
    assert silenced(text, checked={"gb-item"})[2] == []


def test_a_comment_for_all_rules_that_silences_none():
    assert silenced("x\ny  # traceview: ignore\n", checked={"gb-item"})[2] == [
        (2, "# traceview: ignore", "silences nothing that was checked in this run.")
    ]


def test_a_hostile_file_costs_little():
    words = ",".join(f"no-rule-{n}" for n in range(500))
    text = f"y.item()  # traceview: ignore[{words}]\n" * 20
    kept, _, unused = silenced(text, *(finding(n) for n in range(20)))
    assert len(kept) == 20
    assert len(unused) == 100


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("gb-itm", "names no rule. Did you mean gb-item?"),
        ("rc", "names no rule. Name its rules instead."),
        ("", "names no rule."),
    ],
)
def test_a_comment_that_names_no_rule(word, why):
    _, _, unused = silenced(f"y  # traceview: ignore[{word}]\n")
    assert unused[0][2].startswith(why)


@pytest.mark.parametrize(
    "broken",
    [
        "def f(:\n  (\n",
        "x = '''never closed\n",
        "  indented\n back\n   again\n",
        "\x00\x00\n",
        "((((((((((\n",
        "0_1__2 $ ? \\\n",
    ],
)
def test_source_that_is_no_python_is_read_as_far_as_it_goes(broken):
    text = f"import x\ny.item()  # traceview: ignore[gb-item]\n{broken}"
    assert silenced(text, finding(2))[1] == [("gb-item", 2)]


def test_a_file_that_the_run_has_no_copy_of():
    found = silence([finding(2)], [FILE], {}.get, catalogue(), CHECKED)
    assert found == ((finding(2),), (), ())
