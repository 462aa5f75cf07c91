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

Table ``slow_fusions``: match groups whose generated kernels lost time. Operators that compiled code
calls in such a group, as those for which there is no generated code, count as what they are in
eager. What the slowest kernel's source shows is in
the columns: how much of it is done one element at a time, what it looks up and for which operator,
which functions it calls and in which precision; and what ``slow_loops`` and ``partial_writes``
explain of the loss.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from traceview.derive.effects.groups import LIBRARY_CATEGORIES
from traceview.derive.effects.parts import FUSION, LIBRARY
from traceview.derive.facts.rows import ran_generated
from traceview.derive.kernel_groups import Origins
from traceview.derive.windows import GENERATED
from traceview.tables import Tables, from_rows, grouped
from traceview.torchtext.cpp_loops import (
    FEW_ELEMENTS,
    LOADED_INDEX,
    RANDOM,
    SYMBOLIC_INDEX,
    divides_by_sizes,
    one_at_a_time,
)
from traceview.torchtext.cpp_values import repeated
from traceview.torchtext.cpp_work import stores_masks, work_of
from traceview.torchtext.kernel_source import (
    INSTRUCTIONS_EACH,
    Repeated,
    instructions,
    triton_calls,
)
from traceview.torchtext.triton_values import reduction, repeated_in_triton

Row = dict[str, Any]
RECOMPUTED, FEW_PROGRAMS = "recomputed", "few_programs"
#: Instructions of one random number: ten rounds of Philox, and for a normal one Box and Muller's
#: logarithm, root and cosine (c10/core/PhiloxRNGEngine.h).
_OF_DRAW = {"randn": 150, "rand": 80}
#: A function takes about as long for one element as vector code takes for this many.
_VECTOR = 8
#: A function may take this many times the instructions that are counted for it.
_LONGEST = 10
#: Of a shorter kernel most is what every launch takes.
_SHORT_MS = 0.02
#: Operators that read at places which another tensor holds.
_READERS = (
    *("index", "index_select", "embedding", "gather", "take", "take_along_dim"),
    *("grid_sampler_2d", "grid_sampler_3d"),
)
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
        each = INSTRUCTIONS_EACH
        if fact.why == RANDOM:
            each = _OF_DRAW.get(fact.functions[0], _OF_DRAW["rand"])
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


def fusion_times(
    tables: Tables, effect: str = FUSION
) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Pass, rank and match group → what fusion replaced and by what, ms of the steps as timed.

    Or what the kernels of another ``effect`` did. No kernel takes more than the timed step, though
    the profiled one may have been a slower one.
    """
    steps = {
        (row["pass"], row["rank"]): row["compiled_ms"]
        for row in tables["speedups"].iter_rows(named=True)
    }
    found = {}
    parts = tables["waterfall_rows"].filter(effect=effect).drop_nulls("group_id")
    for part in parts.iter_rows(named=True):
        key = (part["pass"], part["rank"], part["group_id"])
        after = part["compiled_ms"] or 0.0
        times = part["eager_ms"] or 0.0, min(after, steps.get(key[:2]) or after)
        found[key] = times
    return found


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

    def reader(self, known: Collection[str]) -> tuple[str, str] | None:
        """As the function ``_reader``."""
        return _reader(self._eager, known)


def _reader(eager: Sequence[Row], known: Collection[str]) -> tuple[str, str] | None:
    """The slowest of ``_READERS`` at one of the lines ``known``, and its line."""
    found = [
        (row["ms"] or 0.0, word, line)
        for row in eager
        if (word := (row["cpu_op"] or row["name"]).rpartition("::")[2]) in _READERS
        and (line := f"{row['file']}:{row['line']}") in known
    ]
    return max(found)[1:] if found else None


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
        at_loaded = row["why"] == LOADED_INDEX
        if (at_loaded or row.get("looked_up")) and (reader := group.reader(known)):
            row["reader"], line = reader
            lines.insert(0 if at_loaded else len(lines), line)
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
        row["idle_ms"] = None
        if row["why"] == FEW_PROGRAMS and row["count"]:
            row["idle_ms"] = at_most if row["profiled_ms"] >= _SHORT_MS * row["count"] else 0.0
        most.append(at_most)
    for row, at_most in zip(rows, most, strict=True):
        row["slower_ms"] = None
        if group.slower is not None:
            row["slower_ms"] = at_most * min(1.0, group.slower / sum(most)) if at_most else 0.0


def slow_fusions(tables: Tables) -> pl.DataFrame | None:
    """Table ``slow_fusions``; None where no step was profiled."""
    if (ran := ran_generated(tables)) is None:
        return None
    origins = Origins(tables)
    where = ("pass", "rank", "group_id")
    members = grouped(tables["matched_kernels"].iter_rows(named=True), *where)
    generated = grouped(ran.iter_rows(named=True), *where)
    explained: dict[tuple[Any, ...], float] = defaultdict(float)
    for name in ("slow_loops", "partial_writes"):
        for row in tables[name].iter_rows(named=True):
            explained[tuple(row[column] for column in where)] += row["slower_ms"] or 0.0
    result, times = [], fusion_times(tables)
    called = fallback_times(tables, members)
    effect: dict[tuple[Any, ...], float] = defaultdict(float)
    for key, (before, after) in times.items():
        effect[key[:2]] += after - before
    for key, (before, after) in times.items():
        kernels = sorted(generated.get(key, ()), key=lambda row: -(row["ms"] or 0.0))
        if not kernels or after <= before:
            continue
        slowest = kernels[0]
        origin = origins.of_kernel(slowest) or {}
        eager = [row for row in members[key] if row["stance"] == "eager"]
        # Operators that compiled code calls do as much as those of eager that take as long.
        called_ms = min(after, called[key])
        if called_ms >= before:
            continue  # what the generated kernels replaced is not known
        before, after = before - called_ms, after - called_ms
        spent: dict[str, float] = defaultdict(float)
        for row in eager:
            spent[f"{row['file']}:{row['line']}"] += row["ms"] or 0.0
        lines = origin.get("user_lines") or []
        shown = _shown(origin.get("source_code") or "")
        reader = _reader(eager, lines) if shown.get("looked_up") else None
        result.append(
            {
                **dict(zip(where, key, strict=True)),
                **{c: origin.get(c) for c in ("compile_key", "raw_file", "raw_line")},
                "compile_id": slowest["compile_id"],
                "kernel_name": slowest["name"],
                "kernels": len({row["name"] for row in kernels}),
                "operators": sum(row["count"] or 0.0 for row in eager),
                "user_lines": sorted(lines, key=lambda line: -spent[line]),
                "operator": _leading(eager),
                "eager_ms": before,
                "compiled_ms": after,
                "slower_ms": after - before,
                "effect_ms": effect[key[:2]],
                "explained_ms": min(after - before, explained[key]),
                "clock": slowest["clock"],
                **shown,
                "reader": reader and reader[0],
                "reader_line": reader and reader[1],
            }
        )
    return from_rows("slow_fusions", result)


def _leading(eager: Sequence[Row]) -> str | None:
    """The operator that takes at least half of the time, those of libraries apart."""
    spent: dict[str, float] = defaultdict(float)
    for row in eager:
        if row["category"] not in LIBRARY_CATEGORIES:
            spent[(row["cpu_op"] or row["name"]).rpartition("::")[2]] += row["ms"] or 0.0
    longest = max(spent, key=lambda name: spent[name], default=None)
    return longest if longest and 2 * spent[longest] >= sum(spent.values()) else None


def fallback_times(
    tables: Tables, members: Mapping[tuple[Any, ...], Sequence[Row]]
) -> dict[tuple[Any, ...], float]:
    """Pass, rank and match group → ms, as timed, of operators that compiled code calls there.

    Those for which there is no generated code, and the copies that they make. Libraries' are left
    out, which no generated kernel stands for. ``members``: executions of each group.
    """
    timed: dict[tuple[Any, ...], float] = defaultdict(float)
    for row in tables["waterfall_rows"].iter_rows(named=True):
        timed[row["pass"], row["rank"], row["group_id"]] += row["compiled_ms"] or 0.0
    found = {}
    for key, rows in members.items():
        whole = called = 0.0
        for row in rows:
            if row["stance"] == "compiled" and row["ms"]:
                whole += row["ms"]
                category = row["category"] or ""
                written = category.startswith("generated_") or category in LIBRARY_CATEGORIES
                called += 0.0 if written else row["ms"]
        found[key] = timed[key] * called / whole if whole else 0.0
    return found


def _shown(source: str) -> Row:
    """What the source of a kernel shows, as columns of the table."""
    if work := work_of(source):
        return {
            "functions": sorted(work.functions, key=lambda name: -work.functions[name]),
            "single": work.single / work.instructions,
            "looked_up": work.looked_up,
            "looking_up": work.looking_up / work.instructions,
            "masks": stores_masks(source),
        }
    if called := triton_calls(source):
        return {
            "functions": list(called.functions),
            "calls": sum(called.functions.values()),
            "operations": called.operations,
            "float64": called.float64,
        }
    return {}
