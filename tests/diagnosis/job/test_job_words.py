"""Ranks in words."""

import pytest

from traceview.diagnosis.job.subject import member_name, members_of, ranks


@pytest.mark.parametrize(
    ("members", "everyone", "text"),
    [
        (["3"], 8, "rank 3"),
        (["0", "1"], 2, "ranks 0–1"),
        (["0", "1", "5"], 8, "ranks 0–1 and 5"),
        (list(map(str, range(64))), 64, "all 64 ranks"),
        (list(map(str, range(0, 40, 2))), 64, "ranks 0, 2, 4, 6, 8, 10 and 14 more"),
        (["p77"], None, "process 77"),
        (["p77", "p78"], None, "processes 77 and 78"),
        ([], 4, "no rank"),
    ],
)
def test_ranks(members, everyone, text):
    found = ranks(members, everyone)
    assert (found.count, found.text) == (len(members), text)


def test_ranges_are_read_back():
    assert members_of("0-2,5,p77") == ["0", "1", "2", "5", "p77"]
    assert members_of(None) == []


def test_names():
    assert (member_name("17"), member_name("p4711")) == ("rank 17", "process 4711")
