"""What reports show of a diagnosis, in which order and groups; ``View`` is the HTML page's."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any, TypeVar
from urllib.parse import quote
from zlib import crc32

import msgspec
from markupsafe import Markup, escape
from pygments.lexers import BashLexer, CppLexer, DiffLexer, PythonLexer
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, _TokenType

from traceview.diagnosis.explanation import AccountDetail, FirstCallPart
from traceview.diagnosis.model import AccountRow, Diagnosis, KernelGroup, Region, SourceExcerpt
from traceview.diagnosis.tree import everyone
from traceview.reports import colours, sections, words
from traceview.reports.sections import Section
from traceview.words import names
from traceview.words import numbers as fmt
from traceview.words.text import clean

T = TypeVar("T")
FAINT = 0.0005
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9]+")
# Table: the section that shows its rows.
_SHOWN_IN = {
    "recompiles": "recompiles",
    "recompile_causes": "recompiles",
    "graph_breaks": "breaks",
    "break_sites": "breaks",
    "accounting": "time",
    "account_details": "time",
    "step_counts": "time",
    "step_shares": "time",
    "compiles": "compile",
    "compile_phases": "compile",
    "autotune_choices": "compile",
    "block_pairs": "pairs",
    "blocks": "pairs",
    "speedups": "pairs",
    "regions": "regions",
    "call_path": "calls",
    "guard_costs": "calls",
    "kernel_groups": "kernels",
    "kernel_calls": "kernels",
    "kernel_limits": "limits",
    "graphs": "graphs",
    "generated_kernels": "fused",
    "fusion_notes": "fusion",
    "output_checks": "outputs",
    "environment": "environment",
    "rank_waits": "waits",
}
_CAUSES = 12
_MAX_DEPTH = 4
_GROUPS = {
    "settings": "torch settings",
    "variables": "environment variables",
    "variables_of_traceview": "variables that traceview set for this run",
}
_LEXERS = {"cpp": CppLexer, "diff": DiffLexer, "shell": BashLexer}
# token type: class in report.css. What is not here stays plain, which keeps the file small.
_CLASSES = (
    (Comment.Preproc, "p"),
    (Comment, "c"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "d"),
    (Name.Builtin, "b"),
    (String, "s"),
    (Number, "n"),
    (Generic.Inserted, "gi"),
    (Generic.Deleted, "gd"),
    (Generic.Heading, "c"),
    (Generic.Subheading, "c"),
)


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


# What, its clock or condition, field of StanceCounts, how it is written.
_STEP_ROWS: tuple[tuple[str, str, str, Callable[[float | None], str]], ...] = (
    ("Step under the profiler", "host clock", "step_ms", fmt.milliseconds),
    ("Device busy", "device clock", "device_busy_ms", fmt.milliseconds),
    ("Device idle", "device clock", "device_idle_ms", fmt.milliseconds),
    ("Kernels", "", "kernels", fmt.count),
    ("Launches", "", "launches", fmt.count),
    ("Cudagraph launches", "", "graph_launches", fmt.count),
    ("Synchronizing calls", "", "syncs", fmt.count),
    ("Compiled regions entered", "", "compiled_regions", fmt.count),
    ("Guard checks (Dynamo cache look-up)", "host clock", "cache_lookup_ms", fmt.milliseconds),
    ("Memory pages touched for the first time (minor faults)", "", "page_faults", fmt.count),
    ("Between compiled regions", "host clock", "gap_ms", fmt.milliseconds),
    ("Peak memory", "outside the profiler", "peak_bytes", fmt.size),
    ("Peak memory reserved", "", "peak_reserved_bytes", fmt.size),
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

    @cached_property
    def sections(self) -> dict[str, Section]:
        """Id and section of what stands below the findings."""
        d = self._diagnosis
        return sections.of_run(d) if d.job is None else sections.of_job(d, d.job)

    @cached_property
    def hidden(self) -> dict[str, str]:
        """Sections, id and title, that a run without a figure leaves out: nothing was recorded."""
        unmeasured = self._diagnosis.verdict.outcome in ("failed", "not_compiled")
        if not unmeasured or self._diagnosis.job is not None:
            return {}
        return {id_: found.title for id_, found in self.sections.items() if not found.filled}

    def contents(self) -> list[tuple[str, str, int | None]]:
        """Id, title and count of every section of the page below the findings."""
        found = self.sections.items()
        return [(id_, s.title, s.count) for id_, s in found if id_ not in self.hidden]

    @cached_property
    def _anchors(self) -> dict[int, str]:
        """The id on the page of each finding and callable, by the identity of its row."""
        d = self._diagnosis
        rows: list[tuple[object, tuple[str | None, ...], str]] = [
            (f, (f.code, words.line(f.location.file, f.location.line, d) if f.location else None),
             f.title)
            for f in everyone(d.findings)
        ]  # fmt: skip
        for r in d.regions:
            place = words.line(r.call_file, r.call_line, d)
            rows.append((r, ("callable", r.name, place), str(r.arguments)))
        for frame in d.job.frames if d.job else ():
            place = words.line(frame.file, frame.line, d)
            rows.append((frame, ("function", frame.name, place), str(frame.user_line)))
        stems = [_NOT_IN_IDS.sub("-", "-".join(filter(None, parts)))[:120] for _, parts, _ in rows]
        shared, taken, found = Counter(stems), set(self.sections), {}
        for (row, _, other), stem in zip(rows, stems, strict=True):
            # Two of one code at one line differ in their words.
            name = f"{stem}-{crc32(other.encode('utf-8', 'replace')):08x}"
            name = name if shared[stem] > 1 else stem
            while name in taken:
                name += "-again"
            taken.add(name)
            found[id(row)] = name
        return found

    def anchor(self, row: object) -> str:
        """The id of a finding or a callable: from its code, name and line, not from its order."""
        return self._anchors[id(row)]

    def shown_in(self, table: str) -> str | None:
        """The section of this page that shows a table's rows; None where none does."""
        section = _SHOWN_IN.get(table, "")
        known = self.sections.get(section)
        return section if known and known.line and section not in self.hidden else None

    def tlparse(self, compile_id: str | None) -> str | None:
        """Where tlparse's report in the run folder has a compile; None where that is not known.

        Of several logs (one a rank) each has compiles of these ids.
        """
        links = self._diagnosis.links.items()
        cold = [path for title, path in links if title.startswith("tlparse: cold/")]
        if compile_id is None or len(cold) != 1:
            return None
        return f"./{quote(cold[0])}#{quote(f'[{compile_id}]', safe='')}"

    def few(self, rows: Sequence[T]) -> Sequence[T]:
        """The rows that one table shows."""
        return rows[: self.limits.rows]

    def excerpt(self, file: str | None, line: int | None) -> SourceExcerpt | None:
        """The lines around a place, where the run kept a copy of the file."""
        return self._excerpts.get((file, line))

    def excerpt_lines(self, excerpt: SourceExcerpt) -> list[tuple[int, Markup, bool]]:
        """Number, HTML and "is the marked line" of every line of an excerpt."""
        texts = [clean(text.replace("\n", " "), 400) for _, text in excerpt.lines]
        shown = highlight("\n".join(texts), "python")
        pairs = zip(excerpt.lines, shown, strict=False)
        return [(number, html, number == excerpt.line) for (number, _), html in pairs]

    def source(self, text: str, language: str | None = None) -> Source:
        """Code within the budget: coloured, plain, or cut with the count of what is left out."""
        allowed = max(0, min(len(text), self.limits.one_code, self._code_left))
        self._code_left -= allowed
        kept = text[:allowed]
        self._colour_left -= allowed
        if self._colour_left >= 0:
            lines = highlight(kept, language or language_of(text)) if kept else ()
        else:
            lines = plain(kept) if kept else ()
        return Source(lines, len(text) - allowed, len(text))

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
        """What is behind the categories that are no work: idle, overhead, Python; slowest first."""
        accounts = self._diagnosis.accounting.items()
        busy = {(s, r.category) for s, rows in accounts for r in rows if r.kind == "busy"}
        found = self._diagnosis.explanation.details
        rows = [row for row in found if (row.stance, row.category) not in busy]
        return sorted(rows, key=lambda row: -row.ms if fmt.given(row.ms) else 0.0)[:_CAUSES]

    def step_rows(self) -> tuple[list[StepRow], list[str]]:
        """The figures of a step that are above zero in some stance, and the names of those that
        were recorded and are zero in all."""
        stances = self._diagnosis.counts.values()
        device = any(counts.device_busy_ms is not None for counts in stances)
        rows, none = [], []
        for label, detail, key, write in _STEP_ROWS:
            figures = [getattr(counts, key) for counts in stances]
            what = "Operators" if key == "kernels" and not device else label
            if any(figures):
                said = ", ".join(filter(None, (what, detail)))
                rows.append(StepRow(said, [write(figure) for figure in figures]))
            elif any(figure == 0 for figure in figures):
                none.append(what.lower())
        return rows, none

    def region_columns(self) -> tuple[list[RegionColumn], list[str]]:
        """Columns that hold a figure for some region, and the names of those that hold none."""
        regions = self._diagnosis.regions
        full = [c for c in _REGION_COLUMNS if any(c.figure(r) is not None for r in regions)]
        gone = (c for c in _REGION_COLUMNS if c not in full)
        return full, [f"{c.name} {c.small}".removesuffix(" s").strip() for c in gone]

    def kernels(self, stance: str) -> list[KernelGroup]:
        """The kernel groups of one stance, in the diagnosis' order."""
        return [group for group in self._diagnosis.kernels if group.stance == stance]

    def unmarked(self, stance: str | None = None) -> bool:
        """Whether kernels were read, of a stance or at all, but no step of theirs is marked."""
        kernels = self.kernels(stance) if stance else self._diagnosis.kernels
        return bool(kernels) and all(group.ms is None for group in kernels)

    def kernel_families(self) -> list[tuple[str, str]]:
        """Colour class and words of the categories among the kernels with a limit."""
        kernels = self._diagnosis.explanation.limits
        found = dict.fromkeys(kernel.category for kernel in kernels)
        return [(colours.family(name), names.category(name)) for name in list(found)[:16]]

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

    def weight(row: Account) -> float:
        eager, compiled = (side.ms if side else 0.0 for side in (row.eager, row.compiled))
        size = abs(eager - compiled) if all(stances) else max(eager, compiled)
        return size if math.isfinite(size) else 0.0

    return sorted(shown, key=weight, reverse=True)


def digits(diagnosis: Diagnosis) -> int:
    """Decimals of a millisecond in a column: more where the whole step is short."""
    verdict = diagnosis.verdict
    step = max(verdict.eager_ms or 0.0, verdict.compiled_ms or 0.0)
    return 3 if step >= 0.5 or step == 0 else 4 if step >= 0.05 else 5


def environment_groups(environment: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The environment as titled lists of name and value: plain values first, then each group."""
    plain: list[tuple[str, str]] = []
    groups: list[tuple[str, list[tuple[str, str]]]] = []
    for name, value in environment.items():
        if isinstance(value, dict) or _is_table(value):
            if rows := list(_flat("", value, 1)):
                groups.append((_GROUPS.get(name, name.replace("_", " ")), rows))
        elif value not in (None, []):
            plain.append((names.FACTS.get(name, name), _said(value)))
    plain.sort(key=_place_in(names.FACTS))
    groups.sort(key=_place_in(_GROUPS))
    return [("", plain), *groups] if plain else groups


def _place_in(names: dict[str, str]) -> Callable[[tuple[str, Any]], int]:
    """Sorts (name, …) as ``names`` has them; what is not in it stands last."""
    order = list(names.values())
    return lambda row: order.index(row[0]) if row[0] in order else len(order)


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
        default = (
            f" (default {_said(value['default'])})" if value.get("default") is not None else ""
        )
        yield f"{prefix}{section}{value['name']}", _said(value["value"]) + default
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


def _said(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_said(item) for item in value)
    return str(value)


def language_of(text: str) -> str:
    """``cpp`` for what Inductor writes for a CPU, else ``python`` (Triton is Python)."""
    head = text[:4000]
    return "cpp" if "#include" in head or 'extern "C"' in head else "python"


@lru_cache(256)  # findings of one rule say the same
def highlight(text: str, language: str) -> tuple[Markup, ...]:
    """One piece of HTML for every line of ``text``; languages: python, cpp, diff, shell."""
    pieces = []
    for token, value in _LEXERS.get(language, PythonLexer)(stripnl=False).get_tokens(clean(text)):
        name, lines = _class(token), str(escape(value)).split("\n")
        if name:
            lines = [f'<span class="{name}">{x}</span>' if x.strip() else x for x in lines]
        pieces.append("\n".join(lines))
    return tuple(map(Markup, "".join(pieces).split("\n")[:-1]))  # a lexer adds a newline


def plain(text: str) -> tuple[Markup, ...]:
    """As ``highlight`` with no classes: cheap, for text beyond the budget."""
    return tuple(map(escape, clean(text).split("\n")))


@cache
def _class(token: _TokenType) -> str | None:
    return next((name for kind, name in _CLASSES if token in kind), None)
