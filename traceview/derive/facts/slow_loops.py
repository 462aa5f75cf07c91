"""Generated kernels that are slower than what they replaced, and what makes them slow.

Table ``slow_loops``: work that makes generated kernels slow, and its cost. Either a C++ kernel does
it one element at a time or divides by symbolic sizes to find each place, or a kernel, Triton's too,
does it more than once for the same value, or a Triton kernel reduces in fewer programs than half of
the multiprocessors.

The cost is a part of what the kernel's match group takes longer than the eager operators that it
replaced, the part of the waterfall that is called fusion: a kernel in scalar code that is still
faster than what it replaced costs nothing. It is no more than such work is of the kernel, by its
instructions; what is computed again costs no more than the eager operator takes for as many values;
and a reduction in few programs no more than its part of the device that has nothing to do.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl

from traceview.derive.effects.groups import LIBRARY_CATEGORIES
from traceview.derive.effects.parts import LIBRARY
from traceview.derive.facts.rows import ran_generated
from traceview.derive.facts.slow_fusions import READERS, fusion_times, reader_at
from traceview.derive.kernel_groups import Origins
from traceview.derive.windows import GENERATED
from traceview.tables import Tables, from_rows, grouped
from traceview.torchtext.cpp_loops import (
    FEW_ELEMENTS,
    LOADED_INDEX,
    MASKS,
    RANDOM,
    READ,
    REVERSED,
    SYMBOLIC_INDEX,
    divides_by_sizes,
    one_at_a_time,
)
from traceview.torchtext.cpp_values import repeated
from traceview.torchtext.cpp_work import work_of
from traceview.torchtext.fx import read_graph
from traceview.torchtext.kernel_source import (
    INSTRUCTIONS_EACH,
    Repeated,
    instructions,
    triton_calls,
)
from traceview.torchtext.triton_values import reduction, repeated_in_triton

Row = dict[str, Any]
RECOMPUTED, FEW_PROGRAMS = "recomputed", "few_programs"
#: What a mask is kept for.
BACKWARD, RESULT = "backward", "result"
#: Of one random number: ten rounds of Philox, and for a normal one Box and Muller's logarithm, root
#: and cosine (c10/core/PhiloxRNGEngine.h). A bool takes as long as a function to store.
_INSTRUCTIONS = {"randn": 150, "rand": 80, "randint": 80, READ: 8}
#: A function takes about as long for one element as vector code takes for this many.
_VECTOR = 8
#: A function may take this many times the instructions that are counted for it.
_LONGEST = 10
#: Of a shorter kernel most is what every launch takes.
_SHORT_MS = 0.02
#: Reason → operators that make loops so: those that look up, that read backwards or turn back at an
#: edge, and a normalization whose groups are the innermost loop where channels are last.
_MAKERS: dict[str, tuple[str, ...]] = {
    LOADED_INDEX: READERS,
    REVERSED: (
        *("flip", "fliplr", "flipud", "clamp"),
        *(f"{kind}_pad{n}d" for kind in ("reflection", "replication") for n in (1, 2, 3)),
    ),
    FEW_ELEMENTS: ("native_group_norm",),
}
#: Operators whose backward asks where the extreme value is.
_EXTREMES = ("amax", "amin")
_WHOLE = ("aot_joint", "aot_forward", "aot_inference")
#: Functions of generated code whose eager operators have other names.
_DRAWS = {"rand": ("uniform", "bernoulli"), "randn": ("normal",), "randint": ("random",)}


def slow_loops(tables: Tables) -> pl.DataFrame | None:
    """Table ``slow_loops``; None where no step was profiled."""
    if (kernels := ran_generated(tables)) is None:
        return None
    origins = Origins(tables)
    known: dict[tuple[str, _Launch], list[Row]] = {}
    # On a device, arithmetic mostly hides behind memory: the part of a kernel where it can't.
    limits = tables["kernel_limits"].filter(stance="compiled", bound="neither")
    beyond = {
        (row["name"], row["compile_id"]): 1 - (row["floor_ms"] or 0.0) / row["ms"]
        for row in limits.iter_rows(named=True)
        if row["ms"]
    }
    launches = _Launch.of_step(tables)
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for kernel in kernels.iter_rows(named=True):
        origin = origins.of_kernel(kernel)
        if origin is None or not (text := origin["source_code"]):
            continue
        seen = text, launches.get(kernel["name"], _Launch())
        if seen not in known:
            known[seen] = list(_reasons(*seen))
        shows = 1.0
        if kernel["clock"] == "device":  # atomics and the like may be what the rest of it is
            limited = beyond.get((kernel["name"], kernel["compile_id"]), 0.0)
            shows = limited if instructions(text) else 0.0
        groups[kernel["pass"], kernel["rank"], kernel["group_id"]] += (
            {
                **{key: origin[key] for key in ("compile_key", "compile_id", "raw_file")},
                **{key: origin[key] for key in ("raw_line", "kernel_name")},
                **fact,
                "user_lines": origin["user_lines"],
                "count": kernel["count"] or 0.0,
                "profiled_ms": kernel["ms"] or 0.0,
                "shows": shows,
            }
            for fact in known[seen]
        )
    result, times = [], fusion_times(tables)
    # Loops that stand for a library's work.
    called = tables["matched_kernels"].filter(
        pl.col("category").is_in(LIBRARY_CATEGORIES), stance="compiled"
    )
    libraries = set(called.select("pass", "rank", "group_id").iter_rows())
    for key, each in fusion_times(tables, LIBRARY).items():
        if key not in libraries:
            times.setdefault(key, each)
    eager = grouped(
        tables["matched_kernels"].filter(stance="eager").iter_rows(named=True), "pass", "rank"
    )
    for key, rows in groups.items():
        _priced(rows, _Group(tables, times.get(key), key, eager.get(key[:2], ())))
        head = {"pass": key[0], "rank": key[1], "group_id": key[2]}
        result += [{**head, **row} for row in rows]
    return from_rows("slow_loops", result)


class _Launch(NamedTuple):
    """The largest launch of a Triton kernel, and what one passed, as written in a trace."""

    programs: int | None = None
    multiprocessors: int | None = None
    passed: tuple[str, ...] = ()

    @classmethod
    def of_step(cls, tables: Tables) -> dict[str, _Launch]:
        """By the kernel's name."""
        groups = tables["kernel_groups"].filter(stance="compiled").drop_nulls("programs")
        names = groups["name"].unique().to_list()
        operators = tables["cpu_ops"].filter(pl.col("name").is_in(names), stance="compiled")
        written = dict(operators.select("name", "concrete_inputs").drop_nulls().iter_rows())
        passed = {name: json.loads(text) for name, text in written.items()}
        passed = {name: tuple(map(str, x)) for name, x in passed.items() if isinstance(x, list)}
        launched = groups.select("name", "programs", "multiprocessors").iter_rows()
        return {name: cls(count, most, passed.get(name, ())) for name, count, most in launched}


def _reasons(source: str, launch: _Launch) -> Iterator[Row]:
    """What a kernel does that need not be, as columns of the table.

    And for ``_priced``: its ``share`` of the kernel's instructions, and ``more``, what is repeated.
    """
    if triton_calls(source):
        if more := repeated_in_triton(source, launch.programs):
            yield _recomputed(more, instructions(source))
        programs, most, passed = launch
        found = reduction(source, passed)
        if found and programs and most and 2 * programs < most:
            yield {
                "why": FEW_PROGRAMS,
                "functions": [],
                "programs": programs,
                "multiprocessors": most,
                "reduced": found.elements,
                "made_for": found.made_for,
                "share": 1 - programs / most,
            }
        return
    work = work_of(source)
    whole = work.instructions if work else None
    more = repeated(source)
    scalar: dict[str, Row] = {}
    for fact in one_at_a_time(source):
        # What is computed again is computed once where its result is stored.
        again = (
            x.evaluations - x.distinct for x in more if x.scalar and x.function in fact.functions
        )
        count = fact.evaluations and max(1, fact.evaluations - sum(again))
        each = _INSTRUCTIONS.get(fact.functions[0], INSTRUCTIONS_EACH)
        others = whole - INSTRUCTIONS_EACH * count if count and whole else 0
        scalar.setdefault(
            fact.why,
            {
                "why": fact.why,
                "functions": list(fact.functions),
                "evaluations": fact.evaluations,
                "length": fact.length,
                "share": each * count / (each * count + others) if count and whole else 1.0,
            },
        )
    if more:
        yield _recomputed(more, whole, vector=_VECTOR)
    if work and work.short:
        (length, width), _ = max(work.short.items(), key=lambda item: item[1])
        row = scalar.setdefault(
            FEW_ELEMENTS,
            {
                "why": FEW_ELEMENTS,
                "functions": [],
                "evaluations": None,
                "length": length,
                "share": 0.0,
            },
        )
        spared = sum(count * (1 - few / of) for (few, of), count in work.short.items())
        # What is computed for each row, before these loops, can be computed for several at once.
        row["spared"] = (spared + work.single * (1 - 1 / width)) / work.instructions
    yield from scalar.values()
    if not more and not scalar and divides_by_sizes(source):
        yield {"why": SYMBOLIC_INDEX, "functions": ["division"], "evaluations": None, "share": 1.0}


class Mask(NamedTuple):
    """A mask that a graph computes; ``kept`` for the backward, or as a result of the call."""

    bytes: int
    op: str
    line: str
    kept: str | None


def masks_of(tables: Tables, compile_key: str) -> list[Mask]:
    """Those of a compile's forward or inference that have a line, the largest first."""
    graphs = tables["graphs"].filter(pl.col("kind").is_in(_WHOLE), compile_key=compile_key)
    texts = dict(graphs.select("kind", "text").drop_nulls().iter_rows())
    forward = read_graph(texts.get("aot_forward") or texts.get("aot_inference") or "")
    results = read_graph(texts.get("aot_joint") or "").outputs or forward.outputs
    found = []
    for node in forward.operations:
        if node.dtype == "bool" and node.user_line and node.bytes and not node.is_view:
            kept: str | None = RESULT if node.name in results else BACKWARD
            if "return" not in forward.uses(node.name):
                kept = None
            found.append(Mask(node.bytes, node.op, node.user_line, kept))
    return sorted(found, key=lambda mask: -mask.bytes)


def _recomputed(more: Sequence[Repeated], whole: int | None, vector: int = 1) -> Row:
    """``vector``: elements that vector code computes at once; ``whole``: all instructions."""
    evaluations = sum(one.evaluations for one in more)
    wasted = sum((one.evaluations - one.distinct) / (1 if one.scalar else vector) for one in more)
    return {
        "why": RECOMPUTED,
        "functions": list(dict.fromkeys(one.function for one in more)),
        "evaluations": evaluations,
        "distinct": sum(one.distinct for one in more),
        "looked_up": 2 * sum(one.evaluations for one in more if one.looked_up) > evaluations,
        "parts": any(one.parts for one in more),
        "share": INSTRUCTIONS_EACH * wasted / whole if whole else 1.0,
        "more": more,
    }


class _Group:
    """A match group: what fusion made slower in it, and the eager operators, as timed."""

    def __init__(
        self,
        tables: Tables,
        times: tuple[float, float] | None,
        key: tuple[Any, ...],
        eager: Sequence[Row],
    ) -> None:
        """``eager``: the executions of all groups of the same pass and rank."""
        pass_name, rank, group_id = key
        in_group = pl.col("pass").eq(pass_name)
        in_group &= pl.col("rank").eq_missing(pl.lit(rank, dtype=pl.Int32))
        in_group &= pl.col("group_id").eq_missing(pl.lit(group_id, dtype=pl.Int32))
        parts = tables["waterfall_rows"].filter(in_group)
        matched = tables["matched_kernels"].filter(in_group)
        generated = float(matched.filter(GENERATED, stance="compiled")["ms"].sum())
        self.slower: float | None = None
        self.scale: float | None = None
        if times is not None and generated:
            self.slower = max(0.0, times[1] - times[0])
            self.scale = times[1] / generated
        profiled = float(matched.filter(stance="eager")["ms"].sum())
        self._timed = float(parts["eager_ms"].sum()) / profiled if profiled else 1.0
        self._eager = eager
        self._tables = tables

    def operators(self, function: str) -> list[Row]:
        """Eager executions of a function: those of the group, else of the whole step."""
        words = _DRAWS.get(function, (function,))
        found = []
        for row in self._eager:
            # ``normal`` of ``aten::normal_``, ``erfinv`` of ``aten::special_erfinv``
            word = (row["cpu_op"] or row["name"]).rpartition("::")[2]
            if word.removeprefix("special_").rstrip("_") in words:
                found.append(row | {"ms": (row["ms"] or 0.0) * self._timed})
        return found

    def reader(self, row: Row, known: Collection[str]) -> tuple[str, str] | None:
        """What makes a kernel read where it does, or makes its mask, and the line of that.

        Of a mask what it is kept for goes into the ``row``.
        """
        if row["why"] == MASKS:
            masks = self._tables.once(masks_of, row["compile_key"])
            mask = next((mask for mask in masks if mask.line in known), None)
            if mask is None:
                return None
            row["kept"] = mask.kept
            extreme = reader_at(self._eager, [mask.line], _EXTREMES)
            return extreme or (mask.op.rpartition(".")[2], mask.line)
        makers = READERS if row.get("looked_up") else _MAKERS.get(row["why"], ())
        return reader_at(self._eager, known, makers)


def _priced(rows: list[Row], group: _Group) -> None:
    """Fill in the times of a group's rows, and put the functions' lines first."""
    most = []
    for row in rows:
        row["ms"] = None if group.scale is None else row["profiled_ms"] * group.scale
        calls = {name: group.operators(name) for name in row["functions"]}
        known = set(row["user_lines"] or ())
        places = sorted((c for made in calls.values() for c in made), key=lambda c: -c["ms"])
        lines = [place for c in places if (place := f"{c['file']}:{c['line']}") in known]
        row["reader"] = None
        if reader := group.reader(row, known):
            row["reader"], line = reader
            lines.insert(len(lines) if row["why"] == RECOMPUTED else 0, line)
            row["reader_line"] = line
        row["user_lines"] = list(dict.fromkeys([*lines, *(row["user_lines"] or ())]))
        share, more, shows = row.pop("share"), row.pop("more", ()), row.pop("shows")
        at_most = (row["ms"] or 0.0) * min(1.0, share)
        if more and all(calls.values()):
            # Once more is one more call of the eager operator.
            each = {
                name: sum(c["ms"] for c in made) / sum(c["count"] for c in made)
                for name, made in calls.items()
            }
            at_most = row["count"] * sum(
                (one.evaluations / one.distinct - 1)
                * one.formulas
                * each[one.function]
                * (_VECTOR if one.scalar else 1)
                for one in more
            )
        row["repeated_ms"] = None
        if more:
            part = 1 - row["distinct"] / row["evaluations"]
            # A call of the eager operator for few values takes longer than these values do.
            counted = min(1.0, share)
            longest = _LONGEST * counted / (1 + (_LONGEST - 1) * counted)
            at_most = min(at_most, (row["ms"] or 0.0) * min(part, longest))
            if row["ms"] is not None and shows:
                row["repeated_ms"] = min(at_most, row["ms"] * min(share, shows))
        row["drawn_ms"] = None
        if row["why"] == RANDOM and all(calls.values()) and row["ms"] is not None:
            eager_ms = sum(c["ms"] for made in calls.values() for c in made)
            row["drawn_ms"] = max(0.0, at_most - eager_ms)
        spared = row.pop("spared", None)
        row["unfilled_ms"] = row["ms"] and spared and row["ms"] * spared
        row["converted_ms"] = at_most if row["why"] == MASKS and row["ms"] is not None else None
        row["idle_ms"] = None
        if row["why"] == FEW_PROGRAMS and row["count"]:
            row["idle_ms"] = at_most if row["profiled_ms"] >= _SHORT_MS * row["count"] else 0.0
        most.append(at_most)
    for row, at_most in zip(rows, most, strict=True):
        row["slower_ms"] = None
        if group.slower is not None:
            row["slower_ms"] = at_most * min(1.0, group.slower / sum(most)) if at_most else 0.0
