"""A comparison as GitHub Markdown that fits a ticket or a job summary, safe to paste."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from traceview.compare.model import CausePair, Comparison, FigurePair
from traceview.reports.compare import words
from traceview.reports.markdown_text import (
    code,
    details,
    escape,
    prose,
    table,
    within_limit,
)
from traceview.words import numbers as fmt

_CUT = "\n\n_The rest is left out to fit an issue tracker._\n"
_ROWS = 40


def render(comparison: Comparison) -> str:
    """Sentence, figures, findings, then what is folded; beyond the limit parts are left out."""
    return within_limit(_parts(comparison), _CUT)


def _parts(c: Comparison) -> Iterator[str]:
    mark, word, _ = words.OUTCOMES[c.outcome]
    yield f"## {mark} {word}\n\n{prose(c.sentence, 900)}\n\n"
    both = (("A", c.before), ("B", c.after))
    runs = [(name, code(s.name), escape(words.subject(s), 300)) for name, s in both]
    yield table(("", "run", "what it is"), runs)
    yield _figures(c.figures)
    yield _causes(c.causes)
    yield from _compiler(c)
    yield _environment(c)
    yield "".join(f"\n{prose(note, 500)}\n" for note in c.notes)


def _figures(pairs: Iterable[FigurePair]) -> str:
    rows = [
        (
            escape(pair.label),
            words.value(pair, pair.before),
            words.value(pair, pair.after),
            words.percent(pair),
            " ".join(words.FIGURES[pair.change]),
        )
        for pair in words.recorded(pairs)
    ]
    return "\n### Figures\n\n" + table(("", "A", "B", "change", ""), rows)


def _causes(causes: Sequence[CausePair]) -> str:
    found = [pair for pair in words.changed(causes) if isinstance(pair, CausePair)]
    if not found:
        return "\n### Findings\n\nNo finding was added, removed, changed or moved.\n"
    rows = [
        (
            f"{words.mark(pair)} {words.change(pair)}",
            escape(f"{words.severity(pair)} {pair.code}"),
            prose(pair.title, 200),
            code(words.route(pair)),
            escape(words.costs(pair)),
        )
        for pair in found[:_ROWS]
    ]
    text = table(("", "finding", "", "where", "cost"), rows)
    return f"\n### Findings\n\n{text}{_more(len(found))}"


def _compiler(c: Comparison) -> Iterator[str]:
    frames = [pair for pair in c.frames if pair.change != "same"]
    rows = [
        (
            f"{words.mark(p)} {words.change(p)}", code(p.name), code(words.route(p)),
            escape(words.seconds(p)),
        )
        for p in frames[:_ROWS]
    ]  # fmt: skip
    if rows:
        heads = ("", "function", "where", "compile seconds")
        yield details("Compile seconds by function", table(heads, rows) + _more(len(frames)))
    breaks = [pair for pair in c.breaks if pair.change != "same"]
    broken = [
        (f"{words.mark(p)} {words.change(p)}", prose(p.reason, 200), code(words.route(p)))
        for p in breaks[:_ROWS]
    ]
    if broken:
        heads_ = ("", "reason", "where")
        yield details("Graph breaks", table(heads_, broken) + _more(len(breaks)))


def _environment(c: Comparison) -> str:
    rows = [
        (escape(row.section), code(row.name), _value(row.before), _value(row.after))
        for row in c.environment[:_ROWS]
    ]
    if not rows:
        return ""
    text = table(("", "name", "A", "B"), rows)
    return details("Different in A and B", text + _more(len(c.environment)))


def _value(value: str | None) -> str:
    return "–" if value is None else code(value, 120) or "(empty)"


def _more(count: int) -> str:
    return f"\n{fmt.count(count - _ROWS)} more: `--html` has all.\n" if count > _ROWS else ""
