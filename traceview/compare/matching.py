"""Match the findings, frames and graph breaks of two runs, even if lines have moved.

Several ways of matching are tried, the surest first, each on what is still unmatched. A match by
nearness alone requires that the line itself is gone: a line that still exists elsewhere is a
different one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence

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
    for how, key, other, fits in _ways(files):
        groups: dict[Hashable, list[int]] = defaultdict(list)
        for index, site in new.items():
            if (value := other(site)) is not None:
                groups[value].append(index)
        wanted: dict[Hashable, list[int]] = defaultdict(list)
        for index, site in old.items():
            if (value := key(site)) is not None and value in groups:
                wanted[value].append(index)
        for value, left in wanted.items():
            for i, j in _nearest(left, groups[value], before, after, fits):
                found.append((i, j, how))
                del old[i], new[j]
    found += [(index, None, None) for index in old]
    return found + [(None, index, None) for index in new]


Key = Callable[[Site], Hashable]
Fits = Callable[[Site, Site], bool]


def _ways(files: Files) -> Iterator[tuple[str, Key, Key, Fits]]:
    """How, the key of a site before, that of one after, and a condition on the pair."""

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

    def aligned(site: Site) -> Hashable:
        here = site.file is not None and site.line is not None
        line = files.line(str(site.file), int(site.line or 0)) if here else None
        return _key(site.what, files.partner.get(site.file or ""), line)

    yield "same line", aligned, lambda site: _key(site.what, site.file, site.line), _always
    for how, parts, fits in (
        ("function and text of the line", ("function", "text"), lost),
        ("function, nearest line", ("function",), lost),
        ("text of the line", ("text",), lost),
        ("nearest line", (), close),
    ):
        yield how, _there(files, parts), _here(parts), fits
    moved = _here(("function", "text"), file=False)
    elsewhere: Fits = lambda a, b: files.partner.get(a.file or "") != b.file  # noqa: E731
    yield "function and text in another file", moved, moved, elsewhere
    yield "title", _no_place(title=True), _no_place(title=True), _always
    yield "kind", _no_place(title=False), _no_place(title=False), _always


def _key(*parts: object) -> Hashable:
    """The parts as a key; None if any of them is not known."""
    return None if any(part is None for part in parts) else parts


def _there(files: Files, names: Sequence[str]) -> Key:
    """The key that the partner of a site would have."""
    return lambda site: _key(
        site.what, files.partner.get(site.file or ""), *(getattr(site, name) for name in names)
    )


def _here(names: Sequence[str], *, file: bool = True) -> Key:
    first = ("what", "file") if file else ("what",)
    return lambda site: _key(*(getattr(site, name) for name in (*first, *names)))


def _no_place(*, title: bool) -> Key:
    """Sites without a place, by their kind."""
    return lambda s: _key(s.what, s.title if title else "") if s.file is None else None


def _always(_before: Site, _after: Site) -> bool:
    return True


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
