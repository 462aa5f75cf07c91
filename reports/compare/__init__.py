"""A comparison of two runs on a terminal, as a page and as Markdown; computes nothing.

The page needs no network and no script. The Markdown fits a ticket or a job summary and is safe to
paste.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
from markupsafe import Markup

from traceview import limits
from traceview.compare.model import Comparison, MatchedPair
from traceview.reports import words as shared
from traceview.reports.compare import words
from traceview.reports.html import asset, environment
from traceview.reports.markdown import (
    code,
    details,
    escape,
    prose,
    table,
    within_limit,
)
from traceview.reports.screen import BOLD, DIM, GREEN, RED, YELLOW, Line, drawn, line
from traceview.words import numbers as fmt
from traceview.words.text import one_line

_CUT = "\n\n_The rest is left out to fit an issue tracker._\n"
_ROWS = 40


class Limits(msgspec.Struct, frozen=True):
    """Characters of a text and rows of a table that a page has room for."""

    text: int
    rows: int


# Tried in turn until the page fits: --json has everything.
_LEVELS = (Limits(2000, 400), Limits(600, 120), Limits(160, 25))
_PACKAGE = "traceview.reports.compare"
_TONES = {"faster": GREEN, "slower": RED, "failed": RED}
_BAD, _GOOD = {"came", "grew", "worse"}, {"went", "shrank", "better"}
_CAUSES, _FRAMES, _BREAKS, _DIFFERENCES = 12, 5, 8, 8


def html(comparison: Comparison) -> str:
    """The whole page, light and dark.

    Where it would pass ``limits.page`` it is rendered again with less detail.
    """
    style = Markup(asset("report.css") + asset("compare.css", _PACKAGE))
    page = ""
    for detail in _LEVELS:
        templates = environment(_PACKAGE, detail.text, {"words": words, "shared": shared})
        template = templates.get_template("compare.html.j2")
        page = template.render(c=comparison, style=style, limits=detail)
        if len(page.encode()) <= limits.now.page:
            break
    return page


def markdown(comparison: Comparison) -> str:
    """Sentence, figures, findings, then what is folded; beyond the limit parts are left out."""
    return within_limit(_parts(comparison), _CUT)


def _parts(c: Comparison) -> Iterator[str]:
    mark, word, _ = words.OUTCOMES[c.outcome]
    yield f"## {mark} {word}\n\n{prose(c.sentence, 900)}\n\n"
    both = (("A", c.before), ("B", c.after))
    runs = [(name, code(s.name), escape(words.subject(s), 300)) for name, s in both]
    yield table(("", "run", "what it is"), runs)
    figures = [
        (
            escape(pair.label),
            words.value(pair, pair.before),
            words.value(pair, pair.after),
            words.percent(pair),
            " ".join(words.FIGURES[pair.change]),
        )
        for pair in words.recorded(c.figures)
    ]
    yield "\n### Figures\n\n" + table(("", "A", "B", "change", ""), figures)
    causes = [
        (
            words.marked(pair),
            escape(f"{words.severity(pair)} {pair.code}"),
            prose(pair.title, 200),
            code(words.route(pair)),
            escape(words.costs(pair)),
        )
        for pair in words.changed(c.causes)
    ]
    found = _table(("", "finding", "", "where", "cost"), causes)
    none = "No finding was added, removed, changed or moved.\n"
    yield f"\n### Findings\n\n{found or none}"
    frames = [
        (words.marked(pair), code(pair.name), code(words.route(pair)), escape(words.seconds(pair)))
        for pair in c.frames
        if pair.change != "same"
    ]
    heads = ("", "function", "where", "compile seconds")
    yield details("Compile seconds by function", _table(heads, frames))
    breaks = [
        (words.marked(pair), prose(pair.reason, 200), code(words.route(pair)))
        for pair in c.breaks
        if pair.change != "same"
    ]
    yield details("Graph breaks", _table(("", "reason", "where"), breaks))
    differences = [
        (escape(row.section), code(row.name), _value(row.before), _value(row.after))
        for row in c.environment
    ]
    yield details("Different in A and B", _table(("", "name", "A", "B"), differences))
    yield "".join(f"\n{prose(note, 500)}\n" for note in c.notes)


def _value(value: str | None) -> str:
    return "–" if value is None else code(value, 120) or "(empty)"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first rows, and how many more there are; empty without rows."""
    if not rows:
        return ""
    more = f"\n{fmt.count(len(rows) - _ROWS)} more: `--html` has all.\n"
    return table(heads, rows[:_ROWS]) + (more if len(rows) > _ROWS else "")


def terminal(comparison: Comparison, width: int, color: bool) -> str:
    """Lines of at most ``width`` columns (20 to 100 are used); no newline at the end."""
    return drawn(_lines(comparison), width, color)


def _lines(c: Comparison) -> Iterator[Line]:
    for name, one in (("A", c.before), ("B", c.after)):
        yield line(f"{name} {one.name}: {words.subject(one)}", DIM, "", "  ")
    mark = words.OUTCOMES[c.outcome][0]
    yield line(f"{mark} {c.sentence}", BOLD + _TONES.get(c.outcome, YELLOW), "", "  ")
    yield line("")
    for pair in words.weighty(c.figures):
        mark, word = words.FIGURES[pair.change]
        figures = f"{words.value(pair, pair.before)} → {words.value(pair, pair.after)}"
        percent = words.percent(pair)
        said = f"{mark} {pair.label}: {figures}{f', {percent}' if percent else ''}, {word}"
        yield line(said, _tone(pair.change), "  ", "    ")

    causes = []
    for cause in words.changed(c.causes):
        rows = [_thing(cause, f"{words.severity(cause)} {cause.code} {cause.title}")]
        why = cause.why if cause.change == "unknown" else ""
        if known := " · ".join(filter(None, (words.route(cause), words.costs(cause), why))):
            rows.append(line(known, DIM, "    "))
        if cause.change in ("came", "grew") and not cause.symptom_of:
            rows.append(line(f"→ {cause.what_to_do}", "", "    ", "      "))
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
        differences.append([line(said, "", "  ", "    ")])
    yield from _section("Different in A and B", differences, _DIFFERENCES, "more difference")
    for note in c.notes:
        yield line(note, DIM, "", "  ")


def _thing(pair: MatchedPair, text: str) -> Line:
    return line(f"{words.marked(pair)}: {text}", _tone(pair.change), "  ", "    ")


def _tone(change: str) -> str:
    return RED if change in _BAD else GREEN if change in _GOOD else ""


def _section(title: str, rows: Sequence[Sequence[Line]], most: int, noun: str) -> Iterator[Line]:
    """The first rows, each of one or more lines, and how many more there are."""
    if rows:
        yield line(title, BOLD)
    yield from chain.from_iterable(rows[:most])
    if len(rows) > most:
        more = fmt.plural(len(rows) - most, noun)
        yield line(f"{more}: --html or --json has all.", DIM, "  ")
