"""A comparison on a terminal: what changed, and what that rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from traceview.compare.model import Comparison, MatchedPair
from traceview.reports.compare import words
from traceview.words import numbers as fmt
from traceview.words.text import one_line, wrap

_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_RED, _GREEN, _YELLOW = "\x1b[31m", "\x1b[32m", "\x1b[33m"
_TONES = {"faster": _GREEN, "slower": _RED, "failed": _RED}
_BAD, _GOOD = {"came", "grew", "worse"}, {"went", "shrank", "better"}
_NARROWEST, _WIDEST = 20, 100
_CAUSES, _FRAMES, _BREAKS, _DIFFERENCES = 12, 5, 8, 8


def render(comparison: Comparison, width: int, color: bool) -> str:
    """Lines of at most ``width`` columns (20 to 100 are used); no newline at the end."""
    columns = max(_NARROWEST, min(width, _WIDEST))
    lines: list[str] = []
    for text, codes, indent, hanging in _lines(comparison):
        wrapped = wrap(one_line(text, 500), columns, indent, hanging)
        lines += [f"{codes}{line}{_RESET}" if color and codes else line for line in wrapped]
    return "\n".join(lines)


Line = tuple[str, str, str, str]


def _line(text: str, codes: str = "", indent: str = "", hanging: str = "") -> Line:
    return text, codes, indent, hanging or indent


def _lines(c: Comparison) -> Iterator[Line]:
    for name, one in (("A", c.before), ("B", c.after)):
        yield _line(f"{name} {one.name}: {words.subject(one)}", _DIM, "", "  ")
    mark = words.OUTCOMES[c.outcome][0]
    yield _line(f"{mark} {c.sentence}", _BOLD + _TONES.get(c.outcome, _YELLOW), "", "  ")
    yield _line("")
    for pair in words.weighty(c.figures):
        mark, word = words.FIGURES[pair.change]
        figures = f"{words.value(pair, pair.before)} → {words.value(pair, pair.after)}"
        percent = words.percent(pair)
        said = f"{mark} {pair.label}: {figures}{f', {percent}' if percent else ''}, {word}"
        yield _line(said, _tone(pair.change), "  ", "    ")

    causes = []
    for cause in words.changed(c.causes):
        rows = [_thing(cause, f"{words.severity(cause)} {cause.code} {cause.title}")]
        why = cause.why if cause.change == "unknown" else ""
        if known := " · ".join(filter(None, (words.route(cause), words.costs(cause), why))):
            rows.append(_line(known, _DIM, "    "))
        if cause.change in ("came", "grew") and not cause.symptom_of:
            rows.append(_line(f"→ {cause.what_to_do}", "", "    ", "      "))
        causes.append(rows)
    yield from _section("Findings", causes, _CAUSES, "more finding")
    frames = [
        [_thing(frame, f"{frame.name}, {words.seconds(frame)}, {words.route(frame)}")]
        for frame in c.frames
        if frame.change != "same"
    ]
    yield from _section("Compile seconds by function", frames, _FRAMES, "more function")
    breaks = [
        [_thing(one, f"{one.reason}, {words.route(one)}")]
        for one in c.breaks
        if one.change != "same"
    ]
    yield from _section("Graph breaks", breaks, _BREAKS, "more place")
    differences = []
    for row in c.environment:
        old, new = (one_line(str(v), 80) if v is not None else "–" for v in (row.before, row.after))
        said = f"{row.section}: {row.name}: {old} → {new}"
        differences.append([_line(said, "", "  ", "    ")])
    yield from _section("Different in A and B", differences, _DIFFERENCES, "more difference")
    for note in c.notes:
        yield _line(note, _DIM, "", "  ")


def _thing(pair: MatchedPair, text: str) -> Line:
    return _line(f"{words.marked(pair)}: {text}", _tone(pair.change), "  ", "    ")


def _tone(change: str) -> str:
    return _RED if change in _BAD else _GREEN if change in _GOOD else ""


def _section(title: str, rows: Sequence[Sequence[Line]], most: int, noun: str) -> Iterator[Line]:
    """The first rows, each of one or more lines, and how many more there are."""
    if rows:
        yield _line(title, _BOLD)
    yield from chain.from_iterable(rows[:most])
    if len(rows) > most:
        more = fmt.plural(len(rows) - most, noun)
        yield _line(f"{more}: --html or --json has all.", _DIM, "  ")
