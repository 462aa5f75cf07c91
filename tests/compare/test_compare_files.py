"""Which line of one version is which of another."""

import time

from traceview.compare.files import aligned, similarity

OLD = ["import torch", "", "class A:", "    def forward(self, x):", "        return x.item()", "",
       "class B:", "    def forward(self, x):", "        return x + 1"]  # fmt: skip


def test_lines_below_an_insertion_move_together():
    new = ["'''new'''", "", *OLD[:6], "def helper():", "    pass", "", *OLD[6:]]
    found = aligned(OLD, new)
    assert {old: found[old] for old in (1, 3, 4, 5, 7, 8, 9)} == {
        1: 3, 3: 5, 4: 6, 5: 7, 7: 12, 8: 13, 9: 14,
    }  # fmt: skip


def test_classes_in_another_order_keep_their_own_lines():
    found = aligned(OLD, [*OLD[6:], "", *OLD[:6]])
    assert (found[7], found[8], found[9]) == (1, 2, 3)
    assert (found[3], found[4], found[5]) == (7, 8, 9)


def test_an_edited_line_has_no_partner_and_takes_no_others():
    new = [*OLD[:4], "        return x.max().item()", *OLD[5:]]
    found = aligned(OLD, new)
    assert 5 not in found
    assert sorted(found.values()) == sorted(set(found.values()))


def test_nothing_in_common():
    assert aligned(["a", "b"], ["c"]) == {}
    assert aligned([], []) == {}
    assert similarity(["a"], []) == 0.0


def test_hostile_files_take_no_time():
    began = time.monotonic()
    aligned(["x"] * 50_000, ["x"] * 50_000)
    aligned([str(n % 7) for n in range(50_000)], [str(n % 11) for n in range(50_000)])
    aligned([str(n) for n in range(50_000)], [str(n) for n in range(50_000, 0, -1)])
    assert time.monotonic() - began < 5


def test_similarity_is_of_lines_whatever_their_indentation():
    assert similarity(OLD, ["  " + line for line in OLD]) == 1.0
    assert 0.2 < similarity(OLD, [*OLD[:3], "other", "lines", "here", "too"]) < 0.6
