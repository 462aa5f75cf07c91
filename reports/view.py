"""What the HTML page shows of a diagnosis, in the order and grouping in which it shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from markupsafe import Markup, escape

from traceview.diagnosis.model import AccountRow, Diagnosis, KernelGroup, SourceExcerpt
from traceview.reports import code
from traceview.reports import format as fmt
from traceview.reports.text import clean

T = TypeVar("T")
_INLINE_CODE = re.compile(r"`([^`\n]+)`")
# A figure and its unit stay on one line.
_UNIT = re.compile(r"(?<=\d) (?=(?:ms|µs|s|%|[KMGT]iB)(?!\w))")
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one page may hold: characters of a text, rows of a table, characters of code.

    ``coloured`` of the ``code`` characters are highlighted (slow), ``one_code`` is the most of one.
    """

    text: int
    rows: int
    code: int
    coloured: int
    one_code: int


@dataclass(frozen=True, slots=True)
class Account:
    """One category in both stances; None where a stance has no such row."""

    category: str
    kind: str
    eager: AccountRow | None
    compiled: AccountRow | None


@dataclass(frozen=True, slots=True)
class StepRow:
    """One figure of a step, a value for each stance."""

    label: str
    values: list[str]


# Label, field of StanceCounts, how it is written.
_STEP_ROWS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("Step as profiled, host clock", "step_ms", fmt.milliseconds),
    ("Device busy, device clock", "device_busy_ms", fmt.milliseconds),
    ("Device idle, device clock", "device_idle_ms", fmt.milliseconds),
    ("Kernels (on a CPU: operators)", "kernels", fmt.count),
    ("Launches", "launches", fmt.count),
    ("cudagraph launches", "graph_launches", fmt.count),
    ("Synchronising calls", "syncs", fmt.count),
    ("Compiled regions entered", "compiled_regions", fmt.count),
    ("Dynamo cache look-up, host clock", "cache_lookup_ms", fmt.milliseconds),
    ("Between compiled regions, host clock", "gap_ms", fmt.milliseconds),
    ("Peak memory, outside the profiler", "peak_bytes", fmt.size),
    ("Peak memory reserved", "peak_reserved_bytes", fmt.size),
)


@dataclass(frozen=True, slots=True)
class Source:
    """Code ready to print: lines of HTML, and how many characters were left out."""

    lines: list[Markup]
    left_out: int
    total: int


class View:
    """The helpers that templates call: the page's limits and what is left of its code budget."""

    def __init__(self, diagnosis: Diagnosis, limits: Limits) -> None:
        self._diagnosis = diagnosis
        self.limits = limits
        self._code_left, self._colour_left = limits.code, limits.coloured
        self._excerpts: dict[tuple[str | None, int | None], SourceExcerpt] = {
            (excerpt.file, excerpt.line): excerpt for excerpt in diagnosis.excerpts
        }

    def few(self, rows: Sequence[T]) -> Sequence[T]:
        """The rows that one table shows."""
        return rows[: self.limits.rows]

    def excerpt(self, file: str | None, line: int | None) -> SourceExcerpt | None:
        """The lines around a place, where the run kept a copy of the file."""
        return self._excerpts.get((file, line))

    def excerpt_lines(self, excerpt: SourceExcerpt) -> list[tuple[int, Markup, bool]]:
        """Number, HTML and "is the marked line" of every line of an excerpt."""
        texts = [clean(text.replace("\n", " "), 400) for _, text in excerpt.lines]
        shown = code.highlight("\n".join(texts), "python")
        pairs = zip(excerpt.lines, shown, strict=False)
        return [(number, html, number == excerpt.line) for (number, _), html in pairs]

    def source(self, text: str, language: str | None = None) -> Source:
        """Code within the budget: coloured, plain, or cut with the count of what is left out."""
        allowed = max(0, min(len(text), self.limits.one_code, self._code_left))
        self._code_left -= allowed
        kept = text[:allowed]
        self._colour_left -= allowed
        if self._colour_left >= 0:
            lines = code.highlight(kept, language or code.language_of(text)) if kept else []
        else:
            lines = code.plain(kept) if kept else []
        return Source(lines, len(text) - allowed, len(text))

    def accounts(self) -> list[Account]:
        """Categories of both stances, eager's order first."""
        stances = [self._diagnosis.accounting.get(name, ()) for name in ("eager", "compiled")]
        found: dict[str, list[AccountRow | None]] = {}
        for index, rows in enumerate(stances):
            for row in rows:
                found.setdefault(row.category, [None, None])[index] = row
        kinds = {row.category: row.kind for rows in stances for row in rows}
        return [Account(name, kinds[name], rows[0], rows[1]) for name, rows in found.items()]

    def digits(self) -> int:
        """Decimals of a millisecond in a column: more where the whole step is short."""
        verdict = self._diagnosis.verdict
        step = max(verdict.eager_ms or 0.0, verdict.compiled_ms or 0.0)
        return 3 if step >= 0.5 or step == 0 else 4 if step >= 0.05 else 5

    def step_rows(self) -> list[StepRow]:
        """The figures of a step that at least one stance has."""
        stances = self._diagnosis.counts.values()
        rows = []
        for label, name, write in _STEP_ROWS:
            figures = [getattr(counts, name) for counts in stances]
            if any(figure is not None for figure in figures):
                rows.append(StepRow(label, [write(figure) for figure in figures]))
        return rows

    def kernels(self, stance: str) -> list[KernelGroup]:
        """The kernel groups of one stance, in the diagnosis' order."""
        return [group for group in self._diagnosis.kernels if group.stance == stance]

    def phases(self) -> list[str]:
        """Every phase that some compile or the whole has, in order of first appearance."""
        named = [self._diagnosis.compile_time.phases, *(c.phases for c in self._diagnosis.compiles)]
        return list(dict.fromkeys(name for phases in named for name in phases))

    def frame_columns(self) -> list[str]:
        """Columns of the table of compile seconds by frame that hold a number somewhere."""
        frames = self._diagnosis.compile_time.frames
        names = dict.fromkeys(name for frame in frames for name in frame if name.endswith("_s"))
        return [name for name in names if any(frame.get(name) is not None for frame in frames)]


def prose(text: str, limit: int) -> Markup:
    """Plain text as paragraphs; only \\`code\\` in backticks has a meaning of its own."""
    paragraphs = re.split(r"\n\s*\n", clean(text, limit).strip())
    return Markup("").join(Markup("<p>{}</p>").format(inline(part)) for part in paragraphs)


def inline(text: str) -> Markup:
    """Text in one paragraph, with what stands in backticks as code."""
    parts = _INLINE_CODE.split(_UNIT.sub("\u00a0", text))
    coded = (
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    )
    return Markup("").join(coded)


def breakable(text: str) -> Markup:
    """A path or a kernel's name that may wrap after ``/`` and ``_``."""
    return Markup("<wbr>").join(re.split(r"(?<=[/_])(?=[^/_])", text))


def environment_groups(environment: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The environment as titled lists of name and value: plain values first, then each group."""
    plain: list[tuple[str, str]] = []
    groups: list[tuple[str, list[tuple[str, str]]]] = []
    for name, value in environment.items():
        if isinstance(value, dict) or _is_table(value):
            if rows := list(_flat("", value, 1)):
                groups.append((str(name), rows))
        elif value not in (None, []):
            plain.append((str(name), _said(value)))
    return [("", plain), *groups] if plain else groups


def _is_table(value: object) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value)


def _flat(
    prefix: str,
    value: Any,  # noqa: ANN401 - any JSON value
    depth: int,
) -> Iterable[tuple[str, str]]:
    """Name and value of what is nested; a row with ``name`` and ``value`` is one setting."""
    if isinstance(value, dict) and "name" in value and "value" in value:
        section = f"{value['section']}." if value.get("section") else ""
        yield f"{prefix}{section}{value['name']}", _setting(value)
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        for key, item in value.items():
            if isinstance(item, dict) or _is_table(item):
                yield from _flat(f"{prefix}{key}.", item, depth + 1)
            elif item is not None:
                yield f"{prefix}{key}", _said(item)
    elif _is_table(value) and depth < _MAX_DEPTH:
        for item in value:
            yield from _flat(prefix, item, depth + 1)
    else:
        yield prefix.rstrip(".") or "value", _said(value)


def _setting(row: dict[str, Any]) -> str:
    default = row.get("default")
    said = _said(row["value"])
    return said if default is None else f"{said} (default {_said(default)})"


def _said(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_said(item) for item in value)
    return str(value)
