"""Which file, and which line, of one run corresponds to which of the other.

Files are paired by name, else by their text. Lines of two versions are aligned, moved blocks
included: a line that occurs once in both versions is an anchor, as in B. Cohen's patience diff but
in any order; from each anchor the match is extended down, then up, while the lines are equal. The
time is linear whatever the files hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import PurePosixPath

from traceview.compare.side import Side
from traceview.diagnosis.near import near
from traceview.tables import grouped

#: Files of one name are the same file unless most of their lines differ.
SAME_NAME, OTHER_NAME = 0.2, 0.5
#: At most this many files without a partner are compared by their text, each with each.
MOST_COMPARED = 100


class Files:
    """Files of ``before`` and their partners in ``after``."""

    def __init__(
        self, before: Side, after: Side, names: Iterable[str], others: Iterable[str]
    ) -> None:
        self._before, self._after = before, after
        self.partner: dict[str, str] = {}
        left, right = dict.fromkeys(names), dict.fromkeys(others)
        for pairing in (self._by_name, self._by_end, self._by_text):
            for old, new in pairing(left, right):
                if old in left and new in right:
                    self.partner[old] = new
                    del left[old], right[new]
        self._lines: dict[str, dict[int, int]] = {}
        self._arrived: dict[str, set[int]] = {}

    def line(self, file: str, line: int) -> int | None:
        """Where the other version has this very line; None: it is gone, or not known."""
        return self.alignment(file).get(line)

    def alignment(self, file: str) -> dict[int, int]:
        """Line in ``before``'s ``file`` → line in its partner; empty where a text is not known."""
        if file not in self._lines:
            partner = self.partner.get(file)
            old, new = self._before.lines(file), partner and self._after.lines(partner)
            self._lines[file] = aligned(old, new) if old and new else {}
        return self._lines[file]

    def arrived(self, file: str) -> set[int]:
        """Lines of the partner of ``file`` that are lines of ``file`` itself."""
        if file not in self._arrived:
            self._arrived[file] = set(self.alignment(file).values())
        return self._arrived[file]

    def _by_name(self, left: Iterable[str], right: Iterable[str]) -> list[tuple[str, str]]:
        """Files of the same name as seen from the working directory."""
        seen = {near(new, self._after.diagnosis): new for new in right}
        names = ((old, near(old, self._before.diagnosis)) for old in left)
        return [(old, seen[name]) for old, name in names if name in seen]

    def _by_end(self, left: Iterable[str], right: Iterable[str]) -> list[tuple[str, str]]:
        """Files of the same base name, those whose paths have the longest common end first."""
        by_base = grouped(right, by=lambda new: PurePosixPath(new).name)
        ends = []
        for old in left:
            for new in by_base[PurePosixPath(old).name][:MOST_COMPARED]:
                parts = zip(reversed(old.split("/")), reversed(new.split("/")), strict=False)
                common = takewhile(lambda pair: pair[0] == pair[1], parts)
                ends.append((sum(1 for _ in common), old, new))
        return [
            (old, new)
            for _, old, new in sorted(ends, key=lambda end: -end[0])
            if (alike := self._alike(old, new)) is None or alike >= SAME_NAME
        ]

    def _by_text(self, left: Iterable[str], right: Iterable[str]) -> list[tuple[str, str]]:
        """Renamed files, the most alike first."""
        found = [
            (alike, old, new)
            for old in list(left)[:MOST_COMPARED]
            for new in list(right)[:MOST_COMPARED]
            if (alike := self._alike(old, new)) is not None and alike >= OTHER_NAME
        ]
        return [(old, new) for _, old, new in sorted(found, key=lambda one: -one[0])]

    def _alike(self, old: str, new: str) -> float | None:
        before, after = self._before.lines(old), self._after.lines(new)
        return None if before is None or after is None else similarity(before, after)


def aligned(before: Sequence[str], after: Sequence[str]) -> dict[int, int]:
    """Line number in ``before`` → line number in ``after`` (from 1), for lines that are in both."""
    many, many_after = Counter(before), Counter(after)
    position = {line: index for index, line in enumerate(after) if many_after[line] == 1}
    anchors = [
        (index, position[line])
        for index, line in enumerate(before)
        if line.strip() and many[line] == 1 and line in position
    ]
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
