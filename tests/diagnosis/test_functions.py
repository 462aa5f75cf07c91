"""The function that a finding's line stands in, where its rule knows the line alone."""

import pytest

from traceview.diagnosis.ruling import with_functions
from traceview.rules.finding import Cost, Evidence, Finding, Location

SOURCE = """\
SCALE = 2


class Net:
    width = 4

    def forward(self, x):
        def inner(y):
            return y + 1

        return inner(x) * SCALE
"""


def finding(place, *others):
    return Finding(
        "TV000", "a-rule", "info", "A title", "", Cost(), "measured", place,
        (Evidence("seen", "compiles"),), "Nothing.", also_at=others,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "function"), [(1, None), (5, None), (7, "forward"), (9, "inner"), (11, "forward")]
)
def test_the_innermost_function_around_a_line(line, function):
    filled = with_functions({"/u/net.py": SOURCE}.get)(finding(Location("/u/net.py", line)))
    assert filled.location == Location("/u/net.py", line, function)


def test_what_a_rule_names_and_what_cannot_be_read_stays_as_it_is():
    named, unread = Location("/u/net.py", 9, "<lambda>"), Location("/u/other.py", 9)
    filled = with_functions({"/u/net.py": SOURCE, "/u/bad.py": "def ("}.get)
    assert filled(finding(named, unread, Location("/u/bad.py", 1))).also_at == (
        unread, Location("/u/bad.py", 1),
    )  # fmt: skip
    assert filled(finding(named)).location == named
    assert filled(finding(None)).location is None
