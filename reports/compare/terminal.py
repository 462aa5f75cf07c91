"""A comparison on a terminal: what changed, and what that rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from traceview.compare.model import CausePair, Comparison, FigurePair
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
        yield _figure(pair)
    yield from _causes(c.causes)
    yield from _frames(c)
    yield from _breaks(c)
    yield from _environment(c)
    for note in c.notes:
        yield _line(note, _DIM, "", "  ")


def _figure(pair: FigurePair) -> Line:
    mark, word = words.FIGURES[pair.change]
    figures = f"{words.value(pair, pair.before)} → {words.value(pair, pair.after)}"
    percent = words.percent(pair)
    said = f"{mark} {pair.label}: {figures}{f', {percent}' if percent else ''}, {word}"
    return _line(said, _tone(pair.change), "  ", "    ")


def _tone(change: str) -> str:
    return _RED if change in _BAD else _GREEN if change in _GOOD else ""


def _causes(causes: Iterable[CausePair]) -> Iterator[Line]:
    found = [pair for pair in words.changed(list(causes)) if isinstance(pair, CausePair)]
    if found:
        yield _line("Findings", _BOLD)
    for pair in found[:_CAUSES]:
        what = f"{words.mark(pair)} {words.change(pair)}: {words.severity(pair)} {pair.code}"
        facts = [words.route(pair), words.costs(pair), pair.why if pair.change == "unknown" else ""]
        yield _line(f"{what} {pair.title}", _tone(pair.change), "  ", "    ")
        known = " · ".join(fact for fact in facts if fact)
        if known:
            yield _line(known, _DIM, "    ")
        if pair.change in ("came", "grew") and not pair.symptom_of:
            yield _line(f"→ {pair.what_to_do}", "", "    ", "      ")
    yield from _more(len(found) - _CAUSES, "more finding")


def _frames(c: Comparison) -> Iterator[Line]:
    found = [pair for pair in c.frames if pair.change != "same"]
    if found:
        yield _line("Compile seconds by function", _BOLD)
    for pair in found[:_FRAMES]:
        said = f"{words.mark(pair)} {words.change(pair)}: {pair.name}, {words.seconds(pair)}"
        yield _line(f"{said}, {words.route(pair)}", _tone(pair.change), "  ", "    ")
    yield from _more(len(found) - _FRAMES, "more function")


def _breaks(c: Comparison) -> Iterator[Line]:
    found = [pair for pair in c.breaks if pair.change != "same"]
    if found:
        yield _line("Graph breaks", _BOLD)
    for pair in found[:_BREAKS]:
        said = f"{words.mark(pair)} {words.change(pair)}: {pair.reason}, {words.route(pair)}"
        yield _line(said, _tone(pair.change), "  ", "    ")
    yield from _more(len(found) - _BREAKS, "more place")


def _environment(c: Comparison) -> Iterator[Line]:
    if c.environment:
        yield _line("Different in A and B", _BOLD)
    for row in c.environment[:_DIFFERENCES]:
        old, new = (one_line(str(v), 80) if v is not None else "–" for v in (row.before, row.after))
        yield _line(f"{row.section}: {row.name}: {old} → {new}", "", "  ", "    ")
    yield from _more(len(c.environment) - _DIFFERENCES, "more difference")


def _more(left: int, noun: str) -> Iterator[Line]:
    if left > 0:
        yield _line(f"{fmt.plural(left, noun)}: --html or --json has all.", _DIM, "  ")
