"""Match the findings, frames and graph breaks of two runs, even if lines have moved.

Several ways of matching are tried, the surest first, each on what is still unmatched. A match by
nearness alone requires that the line itself is gone: a line that still exists elsewhere is a
different one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import msgspec

from traceview.compare.files import Files
from traceview.compare.side import Side
from traceview.torchtext.frames import resumed

#: torch may report a statement of several lines at another of its lines.
SAME_STATEMENT = 2
#: Where no function is known, lines at most this far apart may be the same.
NEAR = 20
#: Larger groups of the same function, line and kind are paired in the order of their lines.
MOST_EACH_WITH_EACH = 200

Pair = tuple[int | None, int | None, str | None]
Key = tuple[object, ...]


class Site(msgspec.Struct, frozen=True):
    """One thing to match: its kind (``what``: a rule, a reason), its place and that line's text."""

    what: str
    file: str | None
    line: int | None
    function: str | None
    text: str | None
    title: str = ""

    @classmethod
    def of(
        cls,
        side: Side,
        what: str,
        file: str | None,
        line: int | None,
        function: str | None,
        title: str = "",
    ) -> Site:
        """The site with the text of its line as ``side`` knows it."""
        name = function and plain_function(function)
        return cls(what, file or None, line, name or None, side.text(file, line), title)


def plain_function(name: str) -> str:
    """``f (resumed)`` of a resume function, whose own name contains a line number."""
    rest = resumed(name)
    return f"{rest.function} (resumed)" if rest else name


def pairs(before: Sequence[Site], after: Sequence[Site], files: Files) -> list[Pair]:
    """(index before, index after, how they were matched); None where a side has no partner."""
    old, new = dict(enumerate(before)), dict(enumerate(after))
    found: list[Pair] = []
    there = [
        (files.partner.get(site.file or ""), site.line and files.line(site.file or "", site.line))
        for site in before
    ]
    for how, key, fits in _ways(files):
        groups: dict[Key, list[int]] = defaultdict(list)
        for index, site in new.items():
            groups[key(site, site.file, site.line)].append(index)
        wanted: dict[Key, list[int]] = defaultdict(list)
        for index, site in old.items():
            wanted[key(site, *there[index])].append(index)
        for value in [value for value in wanted if None not in value and value in groups]:
            for i, j in _nearest(wanted[value], groups[value], before, after, fits):
                found.append((i, j, how))
                del old[i], new[j]
    found += [(index, None, None) for index in old]
    return found + [(None, index, None) for index in new]


KeyOf = Callable[[Site, str | None, int | None], Key]
Fits = Callable[[Site, Site], bool]


def _ways(files: Files) -> Iterator[tuple[str, KeyOf, Fits]]:
    """How, what both sites must have in common, all of it known, and a condition on the pair.

    The file and line that a key is made of are those after: a site before is given its partner's.
    """

    def always(_a: Site, _b: Site) -> bool:
        return True

    def lost(a: Site, b: Site) -> bool:
        """Whether neither line exists elsewhere in the other version, except as one statement."""
        if a.file is None or a.line is None or b.line is None:
            return True
        now = files.line(a.file, a.line)
        if now is None:
            return b.line not in files.arrived(a.file)
        return b.line in files.arrived(a.file) and abs(now - b.line) <= SAME_STATEMENT

    def close(a: Site, b: Site) -> bool:
        known = a.function is not None and b.function is not None
        return not known and abs((a.line or 0) - (b.line or 0)) <= NEAR and lost(a, b)

    def elsewhere(a: Site, b: Site) -> bool:
        return files.partner.get(a.file or "") != b.file

    yield "same line", lambda s, file, line: (s.what, file, line), always
    yield (
        "function and text of the line",
        lambda s, file, _: (s.what, file, s.function, s.text),
        lost,
    )
    yield "function, nearest line", lambda s, file, _: (s.what, file, s.function), lost
    yield "text of the line", lambda s, file, _: (s.what, file, s.text), lost
    yield "nearest line", lambda s, file, _: (s.what, file), close
    yield (
        "function and text in another file",
        lambda s, _file, _line: (s.what, s.function, s.text),
        elsewhere,
    )
    yield "title", lambda s, _file, _line: (s.what, s.title, s.file is None or None), always
    yield "kind", lambda s, _file, _line: (s.what, s.file is None or None), always


def _nearest(
    left: list[int], right: list[int], before: Sequence[Site], after: Sequence[Site], fits: Fits
) -> list[tuple[int, int]]:
    """Pairs of a group, the nearest lines first; in a very large group, in the order of lines."""
    old = sorted(left, key=lambda i: before[i].line or 0)
    new = sorted(right, key=lambda j: after[j].line or 0)
    if len(old) * len(new) > MOST_EACH_WITH_EACH**2:
        return [(i, j) for i, j in zip(old, new, strict=False) if fits(before[i], after[j])]
    far = [
        (abs((before[i].line or 0) - (after[j].line or 0)), i, j)
        for i in old
        for j in new
        if fits(before[i], after[j])
    ]
    found: list[tuple[int, int]] = []
    used: tuple[set[int], set[int]] = (set(), set())
    for _, i, j in sorted(far):
        if i not in used[0] and j not in used[1]:
            found.append((i, j))
            used[0].add(i)
            used[1].add(j)
    return found
