"""Tables → the explanation: where the milliseconds went, section by section."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter

import polars as pl

from traceview.derive.compiler.first_calls import PARTS, parts_of
from traceview.derive.processes import main_processes, of_process
from traceview.diagnosis.explanation import (
    AccountDetail,
    Autotuned,
    CallPart,
    Ceiling,
    Effect,
    EffectRow,
    Explanation,
    FirstCallPart,
    FusionNote,
    GraphPass,
    GroupKernel,
    GuardCost,
    KernelLimit,
    MatchGroup,
    Matching,
    PhaseSpan,
    ProfilerCost,
    StepLimit,
    WorkerTime,
)
from traceview.diagnosis.focus import STANCES, Focus, Row, struct_of
from traceview.diagnosis.timeline import timelines
from traceview.tables import Tables, grouped
from traceview.words.names import PHASES
from traceview.words.numbers import together

# What a report has room for.
MOST_EFFECT_ROWS = 12  # of one effect; what follows is summed up in one row
MOST_DETAILS = 12  # of one category
MOST_GROUPS, MOST_GROUP_KERNELS = 60, 30  # kernels: of one stance in one group
MOST_LIMITS = 60  # kernels of one stance
MOST_NOTES = 12  # of one kind
MOST_PASSES = 200
MOST_CALL_PARTS = 60
MOST_GUARDED, MOST_GUARDS = 20, 8  # compiles; guards of one compile
MOST_PHASES = 600
MOST_TUNED = 60
#: A detail below this part of its step says nothing.
LEAST_DETAIL = 1e-4
#: Phases shorter than this part of all compiling are in their parents' self time.
SHORTEST_PHASE = 0.002
#: Kinds of fusion notes that say what could still be fused; a model's layers repeat them.
_OPPORTUNITIES = (
    "refused",
    "epilogue_apart",
    "epilogue_not_tried",
    "prologue_apart",
    "prologue_not_tried",
)
#: Phases in which a compile waits for its workers.
_WAITS = ("async_compile.wait", "async_compile.precompile")
#: What is read of table ``compile_phases``, which is long and has more columns.
_PHASE = (
    *("compile_id", "phase_id", "depth", "name"),
    *("started_us", "duration_us", "self_us", "aside"),
)


def explanation(tables: Tables, focus: Focus) -> Explanation:
    """Where the milliseconds went, for the process and rank that the diagnosis is about."""
    warm = next(iter(main_processes(tables, "warm")), None)
    warm_calls = [] if warm is None else of_process(tables["first_calls"], warm).to_dicts()
    values = tables["ceilings"].drop_nulls(["kind", "value"])
    passes = focus.structs(tables["graph_passes"], GraphPass)
    calls = focus.structs(tables["call_path"], CallPart, largest="ms")
    return Explanation(
        waterfall=effects(tables, focus),
        details=details(tables, focus),
        profiler=profiler(tables, focus),
        matching=matching(tables, focus),
        ceilings=tuple(focus.structs(values, Ceiling)),
        limits=kernel_limits(tables, focus),
        step_limits=step_limits(tables, focus),
        timelines=timelines(tables, focus),
        fusion=fusion_notes(tables, focus),
        passes=tuple(passes[:MOST_PASSES]),
        call_path=tuple(calls[:MOST_CALL_PARTS]),
        guards=guard_costs(tables, focus),
        phases=phases(tables, focus),
        workers=workers(tables, focus),
        first_calls=_first_calls(focus.rows(tables["first_calls"])),
        warm_first_calls=_first_calls(warm_calls),
        autotuning=autotuning(tables, focus),
    )


# Effects and accounts


def effects(tables: Tables, focus: Focus) -> tuple[Effect, ...]:
    """The waterfall in its order; the rows of an effect by size, their sum is the effect."""
    by_effect = grouped(focus.rows(tables["waterfall_rows"]), "effect")
    found = []
    for row in sorted(focus.rows(tables["waterfall"]), key=lambda row: row["order"]):
        parts = [struct_of(EffectRow, part) for part in by_effect[row["effect"]]]
        rows = sorted(parts, key=lambda part: -abs(part.ms))
        if len(rows) > MOST_EFFECT_ROWS:
            rest = rows[MOST_EFFECT_ROWS - 1 :]
            eager = [one.eager_ms for one in rest if one.eager_ms is not None]
            compiled = [one.compiled_ms for one in rest if one.compiled_ms is not None]
            summed = EffectRow(
                what=f"{len(rest)} more",
                group_id=None,
                file=None,
                line=None,
                eager_ms=sum(eager) if eager else None,
                compiled_ms=sum(compiled) if compiled else None,
                ms=sum(one.ms for one in rest),
            )
            rows = [*rows[: MOST_EFFECT_ROWS - 1], summed]
        found.append(struct_of(Effect, row, rows=tuple(rows)))
    return tuple(found)


def details(tables: Tables, focus: Focus) -> tuple[AccountDetail, ...]:
    """The largest details of every category, in order of stance, category and cost."""
    steps = {
        row.stance: row.timed_step_ms or row.profiled_step_ms for row in profiler(tables, focus)
    }
    details = focus.structs(tables["account_details"].drop_nulls("ms"), AccountDetail)
    large = (d for d in details if d.ms >= LEAST_DETAIL * (steps.get(d.stance) or 0.0))
    by_category = grouped(large, by=attrgetter("stance", "category"))
    return tuple(
        detail
        for stance in STANCES
        for (of_stance, _), rows in by_category.items()
        if of_stance == stance
        for detail in sorted(rows, key=lambda row: -row.ms)[:MOST_DETAILS]
    )


def profiler(tables: Tables, focus: Focus) -> tuple[ProfilerCost, ...]:
    """One row a stance that was profiled, eager first."""
    windows = {row["stance"]: row for row in focus.rows(tables["step_counts"])}
    return tuple(
        struct_of(ProfilerCost, windows[stance], profiled_step_ms=windows[stance]["step_ms"])
        for stance in STANCES
        if stance in windows and windows[stance]["steps"] is not None
    )


# Eager kernels next to the compiled ones that replaced them


_TIMED = pl.all_horizontal(pl.col("eager_ms", "compiled_ms").is_not_null())


def matching(tables: Tables, focus: Focus) -> Matching:
    """Groups, the largest first, with their kernels; the shares are of all kernels of a stance.

    Kernels of a trace without marked steps are in none: nothing is known per step there.
    """
    timed = focus.rows(tables["match_groups"].filter(_TIMED))
    groups = sorted(timed, key=lambda row: row["group_id"])
    kernels = grouped(focus.rows(tables["matched_kernels"]), "group_id")
    both = all(any(row[f"{stance}_ms"] for row in groups) for stance in STANCES)
    matched = [row for row in groups if row["matched"]]
    compiled = [row for rows in kernels.values() for row in rows if row["stance"] == "compiled"]
    sourced = [row for row in compiled if row["graph_key"] and row["ops"]]
    shown = []
    same = ("stance", "name", "cpu_op", "file", "line", "compile_id")
    for group in groups[:MOST_GROUPS]:
        # Kernels of each stance, the largest first; calls of one kernel at one line are added up.
        alike = grouped(kernels[group["group_id"]], *same)
        found = [
            struct_of(
                GroupKernel,
                mine[0],
                ops=tuple(dict.fromkeys(op for row in mine for op in row["ops"] or ())),
                count=sum(row["count"] or 0.0 for row in mine),
                ms=sum(row["ms"] or 0.0 for row in mine),
            )
            for mine in alike.values()
        ]
        found.sort(key=lambda kernel: -kernel.ms)
        eager, other = ([k for k in found if k.stance == stance] for stance in STANCES)
        largest = (*eager[:MOST_GROUP_KERNELS], *other[:MOST_GROUP_KERNELS])
        shown.append(struct_of(MatchGroup, group, kernels=largest))
    return Matching(
        groups=tuple(shown),
        eager_share=_share(groups, matched, "eager_ms") if both else None,
        compiled_share=_share(groups, matched, "compiled_ms") if both else None,
        sourced_share=_share(compiled, sourced, "ms"),
        left_out=max(0, len(groups) - MOST_GROUPS),
    )


def _share(whole: Sequence[Row], part: Sequence[Row], column: str) -> float | None:
    total = sum(row[column] or 0.0 for row in whole)
    return sum(row[column] or 0.0 for row in part) / total if total else None


# Kernels and steps next to what the device can do


def kernel_limits(tables: Tables, focus: Focus) -> tuple[KernelLimit, ...]:
    """The slowest kernels of each stance, the slowest first."""
    rows = focus.structs(tables["kernel_limits"], KernelLimit, largest="ms")
    shown = [
        row
        for stance in STANCES
        for row in [row for row in rows if row.stance == stance][:MOST_LIMITS]
    ]
    return tuple(sorted(shown, key=lambda row: -row.ms))


def step_limits(tables: Tables, focus: Focus) -> tuple[StepLimit, ...]:
    """One row a stance, with its sentences."""
    clocks = {row["stance"]: row["clock"] for row in focus.rows(tables["kernel_limits"])}
    found = []
    for row in focus.rows(tables["step_limits"]):
        said = list(limit_sentences(row, clocks.get(row["stance"]) or "host"))
        found.append(struct_of(StepLimit, row, sentence=" ".join(said), headline=said[0]))
    return tuple(limit for stance in STANCES for limit in found if limit.stance == stance)


def limit_sentences(row: Row, clock: str) -> Iterator[str]:
    """What a step would take at the limit, what fusing could save, what waits for launches."""
    known = [n for n in ("limit_ms", "step_ms", "fusible_ms", "launch_idle_ms") if row[n]]
    texts = together(*(row[name] for name in known)) if known else ()
    said = dict(zip(known, texts, strict=True))
    if "limit_ms" in said:
        takes = f"; it takes {said['step_ms']}" if "step_ms" in said else ""
        given = "However fused, this" if row["stance"] == "compiled" else "As it is, this"
        share = (row["known_ms"] or 0.0) / row["busy_ms"] if row["busy_ms"] else 1.0
        basis = (
            f" (bytes and operations are known for {100 * share:.0f} % of the busy time; what the "
            "rest needs is not)"
        )
        yield (
            f"{given} {row['stance']} step needs at least {said['limit_ms']} of {clock} time"
            f"{takes}{basis if row['known_ms'] is not None and share <= 0.995 else ''}."
        )
    elif row["known_ms"]:
        yield f"No limit of this {row['stance']} step is known."
    else:
        yield "No limit is known: the bytes and operations of the kernels are not."

    if "fusible_ms" in said:
        yield f"Fusing all that is left could save at most {said['fusible_ms']}."
    elif row["fusible_ms"] is not None:
        yield "Nothing is left to fuse."
    elif row["stance"] == "compiled":
        yield "What fusing could still save is not known: there is no generated code."

    if "launch_idle_ms" in said:
        yield f"The device waits {said['launch_idle_ms']} for launches."
    elif row["launch_idle_ms"] is not None:
        yield "The device never waits for launches."


# What was fused, and the way into the generated code


def fusion_notes(tables: Tables, focus: Focus) -> tuple[FusionNote, ...]:
    """Notes, most bytes first, at most ``MOST_NOTES`` of a kind.

    Refusals of the same operations for the same reason are one note, that of the pair with the
    most bytes: a model's layers repeat them. Bytes are not added up, as pairs overlap.
    """
    merged: dict[tuple[object, ...], Row] = {}
    for number, row in enumerate(focus.rows(tables["fusion_notes"])):
        key: tuple[object, ...] = (number,)
        if row["kind"] in _OPPORTUNITIES:
            same = (row["kind"], row["compile_id"], row["reason"], row["setting"])
            key = (*same, frozenset(row["ops"] or ()))
        first = merged.setdefault(key, {**row, "times": 0, "lines": []})
        first["times"] += row["times"] or 1
        known = [n for n in (first["bytes_saved"], row["bytes_saved"]) if n is not None]
        first["bytes_saved"] = max(known, default=None)
        first["lines"] = list(dict.fromkeys([*first["lines"], *(row["lines"] or ())]))

    told = (
        row
        for row in merged.values()
        if row["kind"] not in _OPPORTUNITIES or row["bytes_saved"] != 0
    )
    by_kind = grouped(told, "kind").values()
    kept = [struct_of(FusionNote, row) for rows in by_kind for row in rows[:MOST_NOTES]]
    return tuple(sorted(kept, key=lambda note: -(note.bytes_saved or 0)))


def guard_costs(tables: Tables, focus: Focus) -> tuple[GuardCost, ...]:
    """Each compile's set, most guards first, and after it what most of them read."""
    by_compile: dict[str, list[GuardCost]] = defaultdict(list)
    for row in focus.rows(tables["guard_costs"]):
        mine = by_compile[row["compile_key"]]
        whole = row["kind"] is None and row["source_name"] is None
        if (whole or row["source_name"] is not None) and len(mine) <= MOST_GUARDS:
            mine.append(struct_of(GuardCost, row))
    sets = sorted(filter(None, by_compile.values()), key=lambda rows: -(rows[0].guards or 0))
    return tuple(guard for rows in sets[:MOST_GUARDED] for guard in rows)


# Compiling


def phases(tables: Tables, focus: Focus) -> tuple[PhaseSpan, ...]:
    """Phases in order of start, the short ones left to their parents; work in workers is parallel.

    Self times of phases that are not parallel add up to the time spent compiling.
    """
    timed = tables["compile_phases"].drop_nulls(["started_us", "duration_us"])
    mine = focus.mine(timed).sort("phase_id", maintain_order=True)
    if mine.is_empty():
        return ()
    zero = focus.first(tables["runs"]).get("started_us") or min(mine["started_us"])
    parts = parts_of(mine.select("phase_id", "parent_id", "name").iter_rows(named=True))
    outermost = (pl.col("depth") == 0) & ~pl.col("aside").fill_null(False)
    long = pl.col("duration_us") >= SHORTEST_PHASE * sum(mine.filter(outermost)["duration_us"])
    kept = {row["phase_id"]: row for row in mine.filter(long).select(_PHASE).to_dicts()}
    own = {key: row["self_us"] or 0.0 for key, row in kept.items()}
    short = mine.filter(~long).select("phase_id", "parent_id", "duration_us")
    for key, parent, micros in short.iter_rows():
        if key not in kept and parent in kept:
            own[parent] += micros
    spans = [
        struct_of(
            PhaseSpan,
            row,
            label=PHASES.get(parts[key] or "", str(row["name"])),
            part=parts[key],
            started_s=(row["started_us"] - zero) / 1e6,
            seconds=row["duration_us"] / 1e6,
            self_seconds=own[key] / 1e6,
            parallel=bool(row["aside"]),
        )
        for key, row in kept.items()
    ]
    return tuple(sorted(spans, key=lambda span: (span.started_s, span.depth))[:MOST_PHASES])


def workers(tables: Tables, focus: Focus) -> tuple[WorkerTime, ...]:
    """What workers compiled for each compile: a C++ file is of the one whose time it fell into."""
    counts = pl.col("aside") | (pl.col("depth") == 0) | pl.col("name").is_in(_WAITS)
    rows = focus.mine(tables["compile_phases"].filter(counts)).select(_PHASE).to_dicts()
    tops = [
        (row["started_us"], row["duration_us"], str(row["compile_id"]))
        for row in rows
        if row["started_us"] is not None and row["duration_us"] is not None
        if row["depth"] == 0 and row["compile_id"] and not row["aside"]
    ]

    def compile_around(start: float | None) -> str | None:
        if start is None:
            return None
        return next((name for top, micros, name in tops if 0 <= start - top <= micros), None)

    waited: dict[str | None, float] = defaultdict(float)
    spent: dict[tuple[str | None, str], list[float]] = defaultdict(list)
    for row in rows:
        if row["name"] in _WAITS and not row["aside"]:
            waited[row["compile_id"]] += row["duration_us"] or 0.0
        elif row["aside"] and row["duration_us"] is not None:
            what = "Triton kernels" if row["name"].startswith("triton: ") else "C++ files"
            of = row["compile_id"] or compile_around(row["started_us"])
            spent[of, what].append(row["duration_us"])
    return tuple(
        WorkerTime(compile_id, what, len(micros), sum(micros) / 1e6, waited[compile_id] / 1e6)
        for (compile_id, what), micros in spent.items()
    )


def _first_calls(rows: list[Row]) -> tuple[FirstCallPart, ...]:
    """Parts in order, region by region."""
    rows.sort(key=lambda row: (row["region_id"] or 0, PARTS.index(row["part"])))
    return tuple(struct_of(FirstCallPart, row) for row in rows)


def autotuning(tables: Tables, focus: Focus) -> tuple[Autotuned, ...]:
    """Autotuning tables in order; choices without a time (they failed) are counted only."""
    rows = sorted(focus.rows(tables["autotune_choices"]), key=lambda row: row["table_index"] or 0)
    found = []
    for _, choices in islice(groupby(rows, key=lambda row: row["table_index"]), MOST_TUNED):
        mine = list(choices)
        best = next((row for row in mine if row["is_best"]), None)
        if best is None:
            continue
        others = [row for row in mine if row["time_ms"] is not None and row is not best]
        others.sort(key=lambda row: row["time_ms"])
        second = others[0] if others else {}
        foreign = next((row for row in others if row["backend"] != best["backend"]), {})
        spent = [best[name] for name in ("benchmark_s", "precompile_s") if best[name] is not None]
        tuned = struct_of(
            Autotuned,
            best,
            winner=best["choice"],
            winner_ms=best["time_ms"],
            runner_up=second.get("choice"),
            runner_up_ms=second.get("time_ms"),
            best_other_backend=foreign.get("choice"),
            best_other_backend_ms=foreign.get("time_ms"),
            choices=len(mine),
            seconds=sum(spent) if spent else None,
        )
        found.append(tuned)
    return tuple(found)
