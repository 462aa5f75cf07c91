"""What the HTML page shows of a diagnosis, in the order and grouping in which it shows it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from markupsafe import Markup, escape

from traceview.diagnosis.explanation import AccountDetail, FirstCallPart, FusionNote
from traceview.diagnosis.model import AccountRow, Diagnosis, KernelGroup, Region, SourceExcerpt
from traceview.reports import code, phrases, words
from traceview.words import numbers as fmt
from traceview.words.text import clean

T = TypeVar("T")
_INLINE_CODE = re.compile(r"`([^`\n]+)`")
# A figure and its unit stay on one line.
_UNIT = re.compile(r"(?<=\d) (?=(?:ms|µs|s|%|[KMGT]iB)(?!\w))")
FAINT = 0.0005
_CAUSES = 12


class Limits(msgspec.Struct, frozen=True):
    """How much one page may hold: characters of a text, rows of a table, characters of code.

    ``coloured`` of the ``code`` characters are highlighted (slow), ``one_code`` is the most of one.
    """

    text: int
    rows: int
    code: int
    coloured: int
    one_code: int


class Account(msgspec.Struct, frozen=True):
    """One category in both stances; None where a stance has no such row."""

    category: str
    kind: str
    eager: AccountRow | None
    compiled: AccountRow | None


class StepRow(msgspec.Struct, frozen=True):
    """One figure of a step, a value for each stance."""

    label: str
    values: list[str]


# Label, field of StanceCounts, how it is written.
_STEP_ROWS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("Step under the profiler, host clock", "step_ms", fmt.milliseconds),
    ("Device busy, device clock", "device_busy_ms", fmt.milliseconds),
    ("Device idle, device clock", "device_idle_ms", fmt.milliseconds),
    ("Kernels", "kernels", fmt.count),
    ("Launches", "launches", fmt.count),
    ("Launches of a cudagraph", "graph_launches", fmt.count),
    ("Synchronising calls", "syncs", fmt.count),
    ("Compiled regions entered", "compiled_regions", fmt.count),
    ("Guard checks (Dynamo cache look-up), host clock", "cache_lookup_ms", fmt.milliseconds),
    ("Memory pages touched for the first time (minor faults)", "page_faults", fmt.count),
    ("Between compiled regions, host clock", "gap_ms", fmt.milliseconds),
    ("Peak memory, outside the profiler", "peak_bytes", fmt.size),
    ("Peak memory reserved", "peak_reserved_bytes", fmt.size),
)


class RegionColumn(msgspec.Struct, frozen=True):
    """One figure of a region: heading, small print below it, where it comes from, how it looks."""

    name: str
    small: str
    key: str
    write: Callable[[float | None], str] | None

    def figure(self, region: Region) -> float | None:
        """The bare figure; None where it was not recorded."""
        value = getattr(region, self.key)
        return value if value is None else float(value)

    def cell(self, region: Region, digits: int) -> str:
        """The figure as the table shows it; a dash where it was not recorded."""
        value = self.figure(region)
        if value is None:
            return "–"
        return self.write(value) if self.write else fmt.fixed(value, digits)


# A column without a writer holds milliseconds with the table's own decimals.
_REGION_COLUMNS = (
    RegionColumn("Calls", "", "calls", fmt.count),
    RegionColumn("Calls", "per step", "calls_per_step", fmt.count),
    RegionColumn("Eager", "ms per step", "eager_ms", None),
    RegionColumn("Compiled", "ms per step", "compiled_ms", None),
    RegionColumn("Share", "of the step", "share", fmt.percent),
    RegionColumn("Compiling", "s", "compile_seconds", lambda value: fmt.fixed(value, 2)),
    RegionColumn("Compiles", "", "compiles", fmt.count),
    RegionColumn("Breaks", "of the graph", "graph_breaks", fmt.count),
    RegionColumn("Recompiles", "", "recompiles", fmt.count),
)


class Source(msgspec.Struct, frozen=True):
    """Code ready to print: lines of HTML, and how many characters were left out."""

    lines: tuple[Markup, ...]
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
            lines = code.highlight(kept, language or code.language_of(text)) if kept else ()
        else:
            lines = code.plain(kept) if kept else ()
        return Source(lines, len(text) - allowed, len(text))

    def accounts(self) -> list[Account]:
        """The categories of both stances, see ``accounts``."""
        return accounts(self._diagnosis)

    def clocks(self) -> str:
        """The clocks of the accounting, as words."""
        rows = (row for rows in self._diagnosis.accounting.values() for row in rows)
        return " and ".join(dict.fromkeys(words.clock(row.clock) for row in rows))

    def overshoots(self) -> bool:
        """Whether the categories of a stance add up to more than its step."""
        accounts = self._diagnosis.accounting.values()
        return any(-row.ms > FAINT * sum(r.ms for r in rows) for rows in accounts for row in rows)

    def outside_phases_s(self) -> float | None:
        """Seconds of compiling in none of the named phases, where they show; else None."""
        compiling = self._diagnosis.compile_time
        named = [s for s in compiling.phases.values() if fmt.given(s)]
        if not named or not fmt.given(compiling.seconds):
            return None
        rest = compiling.seconds - sum(named)
        return rest if rest > 0.01 * compiling.seconds else None

    def causes(self) -> list[AccountDetail]:
        """What stands behind the categories that are no work: idle, overhead, Python; dearest
        first."""
        accounts = self._diagnosis.accounting.items()
        busy = {(s, r.category) for s, rows in accounts for r in rows if r.kind == "busy"}
        found = self._diagnosis.explanation.details
        rows = [row for row in found if (row.stance, row.category) not in busy]
        return sorted(rows, key=lambda row: -row.ms if fmt.given(row.ms) else 0.0)[:_CAUSES]

    def digits(self) -> int:
        """Decimals of a millisecond in this page's columns."""
        return digits(self._diagnosis)

    def step_rows(self) -> list[StepRow]:
        """The figures of a step that at least one stance has and that are not all nought."""
        stances = self._diagnosis.counts.values()
        device = any(counts.device_busy_ms is not None for counts in stances)
        rows = []
        for label, name, write in _STEP_ROWS:
            figures = [getattr(counts, name) for counts in stances]
            if any(figures):
                said = "Operators" if name == "kernels" and not device else label
                rows.append(StepRow(said, [write(figure) for figure in figures]))
        return rows

    def nought(self) -> list[str]:
        """Labels of the figures that were recorded and are nought in every stance."""
        stances = self._diagnosis.counts.values()
        found = {
            label: [getattr(counts, name) for counts in stances] for label, name, _ in _STEP_ROWS
        }
        labels = [label for label, figures in found.items() if _all_nought(figures)]
        return [label.partition(",")[0].lower() for label in labels]

    def region_columns(self) -> tuple[list[RegionColumn], list[str]]:
        """Columns that hold a figure for some region, and the names of those that hold none."""
        regions = self._diagnosis.regions
        full = [c for c in _REGION_COLUMNS if any(c.figure(r) is not None for r in regions)]
        return full, [f"{c.name} {c.small}".strip() for c in _REGION_COLUMNS if c not in full]

    def kernels(self, stance: str) -> list[KernelGroup]:
        """The kernel groups of one stance, in the diagnosis' order."""
        return [group for group in self._diagnosis.kernels if group.stance == stance]

    def kernel_families(self) -> list[tuple[str, str]]:
        """Colour class and words of the categories beside the device's limits."""
        kernels = self._diagnosis.explanation.limits
        found = dict.fromkeys(kernel.category for kernel in kernels)
        return [(words.family(name), words.category(name)) for name in list(found)[:16]]

    def fusion(self) -> tuple[list[FusionNote], list[FusionNote]]:
        """Notes on what was fused, and on what was not."""
        return phrases.by_outcome(self._diagnosis.explanation.fusion)

    def first_calls(self) -> list[tuple[str, FirstCallPart]]:
        """``cold`` or ``warm``, and a part of a first call."""
        x = self._diagnosis.explanation
        both = (("cold", x.first_calls), ("warm", x.warm_first_calls))
        return [(cache, part) for cache, parts in both for part in parts]

    def region_name(self, region_id: int | None) -> str:
        """A region's name; empty where there is none."""
        regions = self._diagnosis.regions
        return next((region.name for region in regions if region.region_id == region_id), "")

    def phases(self) -> list[str]:
        """Every phase that some compile or the whole has, in order of first appearance."""
        named = [self._diagnosis.compile_time.phases, *(c.phases for c in self._diagnosis.compiles)]
        return list(dict.fromkeys(name for phases in named for name in phases))

    def frame_columns(self) -> list[str]:
        """Columns of the table of compile seconds by frame that hold a number somewhere."""
        frames = self._diagnosis.compile_time.frames
        names = dict.fromkeys(name for frame in frames for name in frame if name.endswith("_s"))
        return [name for name in names if any(frame.get(name) is not None for frame in frames)]


def accounts(diagnosis: Diagnosis) -> list[Account]:
    """Categories of both stances: the largest change first, else the largest figure.

    What is below ``FAINT`` of the longer step in both is left out.
    """
    stances = [diagnosis.accounting.get(name, ()) for name in ("eager", "compiled")]
    found: dict[str, list[AccountRow | None]] = {}
    for index, rows in enumerate(stances):
        for row in rows:
            found.setdefault(row.category, [None, None])[index] = row
    kinds = {row.category: row.kind for rows in stances for row in rows}
    faint = FAINT * max((sum(row.ms for row in rows) for rows in stances), default=0.0)
    shown = [
        Account(name, kinds[name], rows[0], rows[1])
        for name, rows in found.items()
        if not all(row is None or abs(row.ms) < faint for row in rows)
    ]
    return sorted(shown, key=_weight(all(stances)), reverse=True)


def digits(diagnosis: Diagnosis) -> int:
    """Decimals of a millisecond in a column: more where the whole step is short."""
    verdict = diagnosis.verdict
    step = max(verdict.eager_ms or 0.0, verdict.compiled_ms or 0.0)
    return 3 if step >= 0.5 or step == 0 else 4 if step >= 0.05 else 5


def _all_nought(figures: Sequence[float | None]) -> bool:
    """Whether something was recorded and nothing of it is above nought."""
    return any(figure == 0 for figure in figures) and not any(figures)


def _weight(both: bool) -> Callable[[Account], float]:
    """What a table of accounts is ordered by; figures that are no numbers come last."""

    def weigh(account: Account) -> float:
        eager, compiled = (row.ms if row else 0.0 for row in (account.eager, account.compiled))
        size = abs(eager - compiled) if both else max(eager, compiled)
        return size if math.isfinite(size) else 0.0

    return weigh


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
