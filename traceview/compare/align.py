"""Which line of one version of a file is which line of another, blocks that moved included.

Lines that occur once in both versions are anchors, as in B. Cohen's patience diff but in any order;
from each one the match is extended down, then up, for as long as the lines are equal. Linear,
whatever the files hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def aligned(before: Sequence[str], after: Sequence[str]) -> dict[int, int]:
    """Line number in ``before`` → line number in ``after`` (from 1), for lines that are in both."""
    anchors = _anchors(before, after)
    found = {old + 1: new + 1 for old, new in anchors}
    taken = set(found.values())
    for way in (1, -1):
        for old, new in anchors:
            i, j = old + way, new + way
            while 0 <= i < len(before) and 0 <= j < len(after) and before[i] == after[j]:
                if i + 1 in found or j + 1 in taken:
                    break
                found[i + 1] = j + 1
                taken.add(j + 1)
                i, j = i + way, j + way
    return found


def similarity(before: Sequence[str], after: Sequence[str]) -> float:
    """The part of both files' lines (blank ones apart) that the other one has too, 0 to 1."""
    one, other = ({line.strip() for line in lines} - {""} for lines in (before, after))
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that occur once in both."""
    old, new = Counter(before), Counter(after)
    position = {line: index for index, line in enumerate(after) if new[line] == 1}
    return [
        (index, position[line])
        for index, line in enumerate(before)
        if line.strip() and old[line] == 1 and line in position
    ]
