"""Which file of one run is which file of the other: by name, else by what is written in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from traceview.compare.align import aligned, similarity
from traceview.compare.side import Side
from traceview.diagnosis.near import near

#: Files of one name are the same file unless most of their lines differ.
SAME_NAME, OTHER_NAME = 0.2, 0.5
#: So many files without a partner are compared by their text, each with each.
MOST_COMPARED = 100


class Files:
    """Files of ``before`` and their partners in ``after``."""

    def __init__(
        self, before: Side, after: Side, names: Iterable[str], others: Iterable[str]
    ) -> None:
        self._before, self._after = before, after
        self.partner: dict[str, str] = {}
        left, right = dict.fromkeys(names), dict.fromkeys(others)
        for old, new in self._by_name(left, right):
            self._pair(old, new, left, right)
        for old, new in self._by_text(left, right):
            self._pair(old, new, left, right)
        self._lines: dict[str, dict[int, int]] = {}
        self._arrived: dict[str, set[int]] = {}

    def line(self, file: str, line: int) -> int | None:
        """Where the other version has this very line; None: it is gone, or nobody knows."""
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

    def _pair(self, old: str, new: str, left: dict[str, None], right: dict[str, None]) -> None:
        if old in left and new in right:
            self.partner[old] = new
            del left[old], right[new]

    def _by_name(self, left: Iterable[str], right: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The same name as seen from the working directory, then the longest common end."""
        seen = {near(new, self._after.diagnosis): new for new in right}
        yield from [
            (old, seen[name]) for old in left if (name := near(old, self._before.diagnosis)) in seen
        ]
        by_base: dict[str, list[str]] = defaultdict(list)
        for new in right:
            by_base[PurePosixPath(new).name].append(new)
        ends = [
            (_common_end(old, new), old, new)
            for old in left
            for new in by_base[PurePosixPath(old).name][:MOST_COMPARED]
        ]
        for _, old, new in sorted(ends, key=lambda end: -end[0]):
            alike = self._alike(old, new)
            if alike is None or alike >= SAME_NAME:
                yield old, new

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


def _common_end(one: str, other: str) -> int:
    """How many of the last parts of two paths are the same."""
    pairs = zip(reversed(one.split("/")), reversed(other.split("/")), strict=False)
    for length, (left, right) in enumerate(pairs):
        if left != right:
            return length
    return min(one.count("/"), other.count("/")) + 1
