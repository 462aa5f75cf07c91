"""What the rules about recompiles share: causes, their place in the source, cost and severity.

Every recompile is of one ``family`` (table ``recompile_causes``) and every family belongs to one
rule, so no two rules report the same recompile.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from operator import itemgetter
from pathlib import PurePath

import msgspec
import polars as pl

from traceview.derive.facts.recompile_causes import A_TENSOR, SIZES
from traceview.derive.facts.recompile_causes import Frame as Frame
from traceview.derive.facts.recompile_causes import frame_of as frame_of
from traceview.rules import _starts
from traceview.rules._guard_lines import read_in_guards, whole_path
from traceview.rules.kit import (
    MOST_EVIDENCE,
    NOTABLE_SHARE,
    Confidence,
    Cost,
    Evidence,
    Finding,
    Location,
    Owners,
    Row,
    Severity,
    Snippet,
    Spot,
    Tables,
    about,
    code_object,
    compile_call,
    compile_seconds,
    first_rank,
    frame,
    from_row,
    milliseconds,
    region_of,
    rows,
    shorten,
    times,
    torch_before,
)
from traceview.tables import grouped
from traceview.torchtext.frames import StackFrame, package, resumed
from traceview.words import names

#: The second recompile of one function shows a pattern; one makes two variants, once.
FEWEST_RECOMPILES = 2
#: Less than a second in all is not noticed.
NOTABLE_SECONDS = 1.0
TENSOR_RATE = (
    "Give the optimizer its learning rate as a tensor; schedulers then change it in place. (Adam "
    "and AdamW with foreach=True take a tensor only with capturable=True, on a GPU: otherwise "
    "leave foreach out.)"
)
#: What of its source a guard of a kind is about, where it is not the value.
SUBJECTS = {
    "length": "the length of {source}",
    "keys": "the keys of {source}",
    "dtype": "the dtype of {source}",
    "stride": "the memory layout of {source}",
    "rank": "the number of dimensions of {source}",
    "device": "the device of {source}",
    "requires_grad": "requires_grad of {source}",
    "type_id": "the type of {source}",
    "dispatch_keys": "the dispatch keys of {source}",
    "global_state": "torch's global state",
    "alias": "whether {source} and another argument are one tensor",
    "backend": "the backend object",
}

_ON_STACK = re.compile(r"___stack\d+")
_GIVEN = re.compile(r"args\[(\d+)\]")
_LOCAL = re.compile(r"\bL\['(\w+)'\]")
_GLOBAL = re.compile(r"^G\['(\w+)'\]")
#: Where nn.Module keeps what is registered.
_REGISTERED = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")
_CLASS = re.compile(r"<class '(?:[^']*\.)?(\w+)'>")
_LONG_FLOAT = re.compile(r"-?\d+\.\d{5,30}(?:e-?\d{1,3})?")
#: Kinds whose values mean nothing to a reader: addresses, and lists of torch's inner names.
_OPAQUE = frozenset({"obj_id", "backend", "dispatch_keys", "global_state", "stride"})
#: Of a float as it is shown; the last are all that it has.
_DIGITS = (4, 6, 8, 10, 12, 17)
#: A string, a boolean or None as a guard shows it.
_CHOICE = re.compile(rf"""(['"]).*\1|True|False|None|{A_TENSOR}""", re.DOTALL)


def called(row: Row) -> str:
    """What the code object of ``row`` is to its user."""
    wrapper = (row["co_filename"] or "").endswith("torch/_dynamo/external_utils.py")
    return "the compiled callable" if wrapper else names.function(row["co_name"])


def plain(source: str | None) -> str:
    """``L['x'].size()[0]`` as guards write it: ``x.size()[0]``."""
    return _LOCAL.sub(r"\1", source or "")


def readable(source: str) -> str:
    """``self.net[0].bias`` for ``self._modules['net']._modules['0']._parameters['bias']``."""
    written = _REGISTERED.sub(
        lambda m: f"[{m[1]}]" if m[1].isdecimal() else f".{m[1]}", plain(source)
    )
    return _GLOBAL.sub(r"the global \1", written)


def opening(text: str) -> str:
    """``text`` at the start of a sentence: words get a capital letter, code stays as it is."""
    return (
        text[:1].upper() + text[1:] if text.startswith(("the ", "dimension ", "whether ")) else text
    )


#: The last batch of an epoch is one of at least this many.
RARE = 1 / 4


class Cause(msgspec.Struct, frozen=True):
    """All recompiles of one function that one source decided (rows: never empty, in log order)."""

    rows: tuple[Row, ...]

    @property
    def row(self) -> Row:
        return self.rows[0]

    @property
    def source(self) -> str:
        """What changed, as the user writes it."""
        name = self.row["source_name"] or "a guard"
        if _ON_STACK.fullmatch(name):
            return "the value read before a graph break"
        if self.row["is_wrapper"] and (given := _GIVEN.fullmatch(name)):
            return f"argument {given[1]}"
        return readable(name)

    @property
    def subject(self) -> str:
        """What changed, in words: ``mode``, or ``dimension 1 of ids`` for a size."""
        if self.row["kind"] in SIZES and self._dims:
            return f"dimension {' and '.join(map(str, self._dims))} of {self.source}"
        return SUBJECTS.get(str(self.row["kind"]), "{source}").format(source=self.source)

    @property
    def _dims(self) -> list[int]:
        return sorted({row["dim"] for row in self.rows if row["dim"] is not None})

    @property
    def function(self) -> str:
        return called(self.row)

    @property
    def about(self) -> frozenset[str]:
        return about(*self.rows)

    @property
    def recompiles(self) -> int:
        """How often one function was recompiled: the most of any code object, on one rank."""
        keys: dict[tuple[object, ...], set[str]] = {}
        for row in first_rank(self.rows):
            keys.setdefault((*frame_of(row), row["co_name"]), set()).add(row["compile_key"])
        return max(len(found) for found in keys.values())

    def is_refused(self, tables: Tables) -> bool:
        """Whether its function met the recompile limit."""
        return not limited_frames(tables).isdisjoint(map(frame_of, self.rows))

    @property
    def is_learning_rate(self) -> bool:
        """Whether it is an optimizer's learning rate, which a scheduler changes."""
        return "['lr']" in self.source

    @property
    def is_choice(self) -> bool:
        """Whether the values are strings, booleans or None: they choose something."""
        met = [row["old"] for row in self.rows if row["old"] is not None]
        return bool(met) and all(_CHOICE.fullmatch(value) for value in met)

    def values(self, most: int = 6) -> str:
        """``0 → 1 → 2``: the values that guards expected, then the last one met where known."""
        if self.row["kind"] in _OPAQUE:
            return ""
        met = [row["old"] for row in self.rows if row["old"] is not None]
        last = self.rows[-1]["new"]
        distinct = list(dict.fromkeys(met if last is None else [*met, last]))
        more = len(distinct) > most or (bool(distinct) and last is None)
        named = [m[1] if (m := _CLASS.fullmatch(value)) else value for value in distinct[:most]]
        # Floats with only as many digits as it takes to tell them apart.
        tried = [
            [f"{float(v):.{digits}g}" if _LONG_FLOAT.fullmatch(v) else v for v in named]
            for digits in _DIGITS
        ]
        brief = next(shown for shown in tried if len(set(shown)) == len(set(tried[-1])))
        return " → ".join(brief) + (" → …" if more else "")

    def values_met(self) -> str:
        """A sentence to append: `` Values met: 0 → 1 → 2.``; empty where there are none to show."""
        met = self.values()
        return f" Values met: {met}." if met else ""

    def changes(self, most: int = 6) -> str:
        """``mode changes (0 → 1 → 2)``."""
        met = self.values(most)
        return f"{self.subject} changes ({met})" if met else f"{self.subject} changes"

    def marks(self, name: str | None = None) -> str:
        """Lines that make the dimensions that changed symbolic from the first call on.

        torch always specializes on sizes of 0 and 1, so where one was met the mark can only be a
        wish: ``maybe_mark_dynamic``.
        """
        met = {row[column] for row in self.rows for column in ("old", "new")}
        name = name or ("maybe_mark_dynamic" if {"0", "1"} & met else "mark_dynamic")
        tensor = _GLOBAL.sub(r"\1", self.row["source_name"] or "")
        if not tensor.isidentifier() or resumed(self.row["co_name"]):
            return ""
        return "\n".join(f"torch._dynamo.{name}({tensor}, {dim})" for dim in self._dims)

    def sources(self, tables: Tables) -> str:
        """The setting that makes what no line can mark symbolic from the first call on.

        torch reads it from ``TORCH_COMPILE_DYNAMIC_SOURCES`` too; ``:0`` names one dimension (until
        2.13 an entry is all dimensions). Empty where torch has no such setting, for a parameter,
        whose sizes are constants, and for a float, which it does not heed.
        """
        name = self.row["source_name"] or ""
        is_float = self.row["kind"] == "value" and not (self.row["old"] or "").isdecimal()
        if not name or is_float or torch_before(tables, (2, 8)) or _REGISTERED.search(name):
            return ""
        source = name if name.startswith("G[") else re.sub(r"^\w+", r"L['\g<0>']", name)
        dims = [] if torch_before(tables, (2, 13)) else self._dims
        entries = [f"{source}:{dim}" for dim in dims] or [source]
        return f'torch.compiler.config.dynamic_sources = "{",".join(entries)}"'

    def evidence(self) -> tuple[Evidence, ...]:
        return tuple(
            from_row(f"{row['compile_id']}: {shorten(row['guard'])}", "recompiles", row)
            for row in self.rows[:MOST_EVIDENCE]
        )

    def cost(self, tables: Tables, *, but_one: bool = False) -> Cost:
        """Seconds of all those compiles; ``but_one``: its remedy makes one graph for all sizes."""
        keys = {row["compile_key"] for row in first_rank(self.rows)}
        return compiled_again(tables, keys, but_one=but_one)


# Which recompiles


def causes(tables: Tables, family: str, fewest_recompiles: float = 0) -> Iterator[Cause]:
    """One cause per function and subject, with at least that many recompiles of one family.

    Code after a graph break counts as its function's, where only one function has that name. A
    state changes for all compiled functions below a region at once: there it is one per region.
    """
    recompiles = rows(tables, "recompile_causes", family=family)
    if not recompiles:
        return iter(())
    # The code object of each compile, and those that a file has of each name.
    code: dict[str, Frame] = {}
    functions: dict[object, set[Frame]] = defaultdict(set)
    for row in rows(tables, "compiles"):
        code[row["compile_key"]] = frame_of(row)
        functions[row["co_filename"], row["co_name"]].add(frame_of(row))
    regions: dict[Frame, int] = {}  # the one that each was first compiled in
    for row in rows(tables, "compile_regions") if family == "state" else ():
        if row["compile_key"] in code:
            regions.setdefault(code[row["compile_key"]], row["region_id"])

    def group(row: Row) -> object:
        named = functions.get((row["co_filename"], row["function"]), set())
        function = next(iter(named)) if len(named) == 1 else frame_of(row)
        subject: str | None = (row["source_name"] or "").removesuffix(".__code__")
        if family in ("state", "backend"):
            subject = None
        elif family == "tensor":
            subject = str(row["kind"])  # of a tensor the property, whichever tensor shows it first
        return regions.get(function, function), subject

    found = _grouped(recompiles, group)
    return (cause for cause in found if cause.recompiles >= fewest_recompiles)


def of_sizes(tables: Tables, *reasons: str) -> Iterator[Cause]:
    """One cause per function and source of the recompiles for a size with these reasons."""
    found = first_rank(rows(tables, "recompile_causes"))
    chosen = (row for row in found if row["size_reason"] in reasons)
    return _grouped(chosen, lambda row: (frame_of(row), row["source_name"]))


def by_source(tables: Tables) -> Iterator[Cause]:
    """One cause per function, kind and source (``cause_id``)."""
    return _grouped(rows(tables, "recompile_causes"), itemgetter("cause_id"))


def _grouped(found: Iterable[Row], key: Callable[[Row], object]) -> Iterator[Cause]:
    return (Cause(tuple(group)) for group in grouped(found, by=key).values())


def last_batch(tables: Tables, cause: Cause) -> Row | None:
    """The row of ``input_sizes`` of the calls with a smaller batch that ``cause`` was compiled for.

    They are few among the watched calls, and the first dimension went down from the usual size.
    """
    row, region = cause.rows[-1], region_of(tables, cause.rows[-1]["compile_key"])
    sizes = row["old"], row["new"]
    if not region or row["dim"] != 0 or not all((size or "").isdecimal() for size in sizes):
        return None
    usual, last = map(int, sizes)
    met = rows(tables, "input_sizes", pid=region["pid"], region_id=region["region_id"])
    calls = grouped(met, by=lambda each: re.split(r"\D", each["sizes"], maxsplit=1)[0])
    few, many = (sum(each["calls"] for each in calls.get(str(size), ())) for size in (last, usual))
    return calls[str(last)][0] if last < usual and 0 < few <= RARE * many else None


def limited_frames(tables: Tables) -> set[Frame]:
    """Functions that reached the recompile limit."""
    frames = {frame_of(row) for row in rows(tables, "compiles", outcome="limit")}
    warned = {
        (row["file"], row["line"]) for row in rows(tables, "warnings", kind="recompile_limit")
    }
    return frames | warned


def own_regions(tables: Tables, cause: Cause) -> list[Row]:
    """The rows of ``regions`` whose callable is the very code that was recompiled."""
    regions, code = first_rank(rows(tables, "regions")), frame_of(cause.row)
    return [row for row in regions if (row["target_file"], row["target_line"]) == code]


def recompile_limit(tables: Tables) -> str:
    """The setting, by the name that the torch which ran has for it."""
    name = "cache_size_limit" if torch_before(tables, (2, 7)) else "recompile_limit"
    return f"torch._dynamo.config.{name}"


# How much it matters


def compiled_again(tables: Tables, keys: Collection[str], *, but_one: bool = False) -> Cost:
    """What these recompiles cost that a remedy saves; ``but_one``: it needs one more graph itself.

    A recompile that met the limit compiled nothing.
    """
    refused = {row["compile_key"] for row in rows(tables, "compiles", outcome="limit")}
    done = set(keys) - refused
    compiles = frame(tables, "compiles").filter(
        pl.col("compile_key").is_in(list(done), nulls_equal=True)
    )
    found = first_rank(compiles.to_dicts())
    spent, about = compile_seconds(found), f"compiling it again {times(len(done))}"
    if any(row["logging_us"] is None for row in found):
        about += ", with what writing logs took"
    if but_one and len(done) > 1:
        spent = None if spent is None else spent * (len(done) - 1) / len(done)
        about += ", less the once that a graph for all sizes takes"
    if more := len(set(keys) - done):
        about += f"; the recompile limit refused {more} more"
    return Cost(seconds=spent, about=about)


def severity_of(tables: Tables, seconds: float | None) -> Severity:
    """Warning where recompiling took long, or where the seconds are not known; else info."""
    job = _starts.job_seconds(tables) or 0.0
    long = seconds is None or seconds >= max(NOTABLE_SECONDS, NOTABLE_SHARE * job)
    return "warning" if long else "info"


def evidence(tables: Tables, cause: Cause) -> tuple[Evidence, ...]:
    """The guards that failed, and what finding one of several variants takes where profiled."""
    code = frame_of(cause.row)
    ids = {row["compile_id"] for row in rows(tables, "compiles") if frame_of(row) == code}
    found = [
        row
        for row in first_rank(rows(tables, "call_path", part="cache_lookup"))
        if row["compile_id"] in ids and (row["entries"] or 0) > 1 and row["calls"] and row["ms"]
    ]
    if not found:
        return cause.evidence()
    each = sum(row["ms"] for row in found) / sum(row["calls"] for row in found)
    variants = max(row["entries"] for row in found)
    text = f"finding one of {variants} variants takes {milliseconds(each)} per call, as profiled"
    return (*cause.evidence(), Evidence(text, "call_path"))


def finding(
    tables: Tables,
    cause: Cause,
    *,
    code: str,
    rule: str,
    title: str,
    explanation: str,
    what_to_do: str,
    at: Spot | None = None,
    cost: Cost | None = None,
    often: str | None = None,
    info: bool = False,
    confidence: Confidence = "measured",
    evidence: tuple[Evidence, ...] | None = None,
    paste: str | None = None,
    remedy: tuple[str, ...] = (),
    also_at: tuple[Location, ...] = (),
) -> Finding:
    """What a rule says of ``cause``; ``title`` continues ``forward() recompiled 3 times:``.

    By default it is at its ``spot``, as ``often`` as one function was recompiled, and its severity
    goes by its seconds: a function that met the recompile limit runs in eager, which costs more.
    ``info``: information, whatever it costs; ``paste``: Python to paste.
    """
    at, cost = at or spot(tables, cause), cost or cause.cost(tables)
    library = package(at.inside.file) if at.inside else None
    if library not in (None, "torch"):
        what_to_do = f"The line is in {library}: act at your own call of it. {what_to_do}"
    severity = severity_of(tables, cost.seconds)
    if cause.is_refused(tables):
        severity = "warning"
    return Finding(
        code=code,
        rule=rule,
        severity="info" if info else severity,
        title=f"{opening(cause.function)} recompiled {often or times(cause.recompiles)}: {title}",
        explanation=explanation,
        cost=cost,
        confidence=confidence,
        location=at.place,
        inside=at.inside,
        also_at=also_at,
        about=cause.about,
        evidence=cause.evidence() if evidence is None else evidence,
        what_to_do=what_to_do,
        snippet=Snippet("python", paste) if paste else None,
        remedy=remedy,
    )


# Where it is


def spot(tables: Tables, cause: Cause) -> Spot:
    """The line that reads what changed, where the log names it; else the function's.

    Where that is a library's line, as of a function that was inlined, the user's own line that led
    there. torch cuts the front off paths in guards.
    """
    found = code_object(cause.row)
    named = next((row for row in cause.rows if row["user_line"] is not None), None)
    if named is not None and (file := named["user_file"]):
        if not PurePath(file).is_absolute():
            file = whole_path(file, (cause.row["co_filename"], *tables["sources"]["file"]))
        found = Location(file, named["user_line"]) if file else found
    owners = tables.once(Owners)
    if found and owners.owns(StackFrame(found.file, found.line, found.function)):
        return Spot(found)
    own = owners.code(cause.row)
    if own.place and own.inside:
        return Spot(own.place, found or own.inside)
    return Spot(compile_call(region_of(tables, cause.row["compile_key"])) or found, found)


def reading(tables: Tables, cause: Cause) -> Spot:
    """The line that reads what changed; else the function, or the call that led to a library's.

    Guards on tensors and dicts name no line when they fail; torch's tree of the guards does. An
    argument that is first read in another function than the compiled one is the caller's.
    """
    named = any(row["user_line"] is not None for row in cause.rows)
    found = None if named else read_in_guards(tables, cause.rows)
    if found is None:
        return spot(tables, cause)
    file, line = frame_of(cause.row)  # where the function ends is not recorded
    elsewhere = found.file != file or (line is not None and found.line < line)
    if cause.source.isidentifier() and elsewhere:
        return Spot(next(iter(callers(tables, cause)), found), found)
    return Spot(found)


def callers(tables: Tables, cause: Cause) -> list[Location]:
    """The user's own lines that called into the compiles of ``cause``, each once, in order."""
    compiles = {row["compile_key"]: row for row in reversed(rows(tables, "compiles"))}
    owners = tables.once(Owners)
    again = (compiles.get(row["compile_key"]) for row in cause.rows)
    places = (owners.caller(row) for row in again if row)
    return list(dict.fromkeys(found for found in places if found))
