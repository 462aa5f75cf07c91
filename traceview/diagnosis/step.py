"""What a step does in both stances: time accounting, counts, memory peaks, compiled callables.

And what runs in it: kernels, generated kernels with the operators in them, the graphs' code.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import polars as pl
from msgspec.structs import replace

from traceview.derive.facts.outputs import end_is_wrong, is_recorded, own_operators
from traceview.diagnosis.callables import of_callable
from traceview.diagnosis.focus import STANCES, Focus, Row, struct_of
from traceview.diagnosis.model import (
    AccountRow,
    ComparedOutputs,
    FusedKernel,
    Graph,
    KernelGroup,
    OutputCheck,
    OutputDifference,
    OwnCode,
    Region,
    StanceCounts,
)
from traceview.tables import Tables, grouped
from traceview.words.numbers import plural

#: A script that calls torch.compile in a loop makes a region each time.
MOST_REGIONS = 200
#: What the collector notes where nothing was compared (collectors/child/session.py).
COMPARING = "comparison of outputs"
#: Which source of a memory peak is the best: the allocator's own count, then the process's size.
PEAK_SOURCES = ("allocator", "profiler", "process")
#: Arguments of torch.compile with torch's defaults; only what differs is shown.
DEFAULTS = {
    "backend": None,
    "mode": None,
    "dynamic": "None",
    "fullgraph": False,
    "disable": False,
    "options": None,
}
MOST_GROUPS = 60
MOST_FUSED = 60
MOST_GRAPHS = 40
#: Characters that a report has room for (colouring source makes it some four times larger).
KERNEL_CHARACTERS = 6_000
ALL_KERNEL_CHARACTERS = 90_000
GRAPH_CHARACTERS = 16_000
ALL_GRAPH_CHARACTERS = 160_000
LIBRARY = ("extern", "fallback")
#: Profiled C++ kernels carry the graph that they belong to.
_GRAPH_PREFIX = re.compile(r"^graph_\d+_")


def accounting(tables: Tables, focus: Focus) -> dict[str, tuple[AccountRow, ...]]:
    """Stance → its categories, largest first; both stances are keys, empty if not recorded."""
    rows = focus.rows(tables["accounting"].drop_nulls("ms"), largest="ms")
    return {
        stance: tuple(struct_of(AccountRow, row) for row in rows if row["stance"] == stance)
        for stance in STANCES
    }


def counts(tables: Tables, focus: Focus) -> dict[str, StanceCounts]:
    """Stance → what one step does; a stance of which nothing was recorded has only None.

    The peak of memory is the largest by the best source there is; timed blocks count before
    profiler windows.
    """
    windows = {row["stance"]: row for row in focus.rows(tables["step_counts"])}
    peaks = focus.rows(tables["memory"].drop_nulls("peak_bytes"))
    found = {}
    for stance in STANCES:
        mine = [row for row in peaks if row["stance"] == stance]
        sources = ([row for row in mine if row["source"] == source] for source in PEAK_SOURCES)
        best = next(filter(None, sources), [])
        timed = [row for row in best if row["block_index"] is not None] or best
        peak = max(timed, key=lambda row: row["peak_bytes"], default={"source": None})
        window = windows.get(stance, {})
        found[stance] = struct_of(StanceCounts, window | peak, peak_source=peak["source"])
    return found


def regions(tables: Tables, focus: Focus) -> tuple[Region, ...]:
    """The compiled callables of the process: the headline first, then by their time in the script
    and their share of a step."""
    own = {row["region_id"]: row for row in focus.rows(tables["callable_speedups"])}
    costs = {row["region_id"]: row for row in focus.rows(tables["region_costs"])}
    owners = tables["compile_regions"].select("compile_key", "region_id")
    owners = owners.unique("compile_key", keep="last")
    # Places that break; compiles that were made again.
    sites = tables["break_sites"].filter(~pl.col("refused")).explode("compile_keys")
    places = sites.join(owners, left_on="compile_keys", right_on="compile_key")
    again = tables["recompiles"].select("compile_key").unique().join(owners, on="compile_key")
    breaks = Counter(places.unique(["region_id", "file", "line", "gb_type"])["region_id"])
    recompiles = Counter(again.unique(["region_id", "compile_key"])["region_id"])
    found = []
    for row in focus.rows(tables["regions"]):
        number = row["region_id"]
        cost, measured = costs.get(number, {}), own.get(number, {})
        low, high = measured.get("speedup_low"), measured.get("speedup_high")
        given = {name: row[name] for name in DEFAULTS if row[name] is not None}
        region = struct_of(
            Region,
            row,
            headline=measured.get("headline", False),
            outcome=measured.get("outcome"),
            speedup=measured.get("speedup"),
            speedup_interval=None if low is None or high is None else (low, high),
            step_eager_ms=measured.get("eager_ms"),
            step_compiled_ms=measured.get("compiled_ms"),
            blocks=measured.get("pairs_used"),
            script_ms=measured.get("script_ms"),
            not_measured=measured.get("reason"),
            arguments={name: given[name] for name in given if given[name] != DEFAULTS[name]},
            calls_per_step=cost.get("calls_per_step"),
            eager_ms=cost.get("eager_ms"),
            compiled_ms=cost.get("compiled_ms"),
            share=cost.get("share"),
            compile_seconds=cost.get("compile_s"),
            compiles=cost.get("compiles"),
            graph_breaks=breaks[number] if tables.has("break_sites") else None,
            recompiles=recompiles[number] if tables.has("recompiles") else None,
        )
        found.append(replace(region, sentence=of_callable(region)))
    found.sort(
        key=lambda region: (
            not region.headline,
            -(region.script_ms or 0.0),
            -(region.share or 0.0),
            region.region_id,
        )
    )
    return tuple(found[:MOST_REGIONS])


def compared_outputs(tables: Tables, focus: Focus) -> tuple[ComparedOutputs, ...]:
    """What ``--compare-outputs`` found, for each compiled callable that was called."""
    regions = {row["region_id"]: row for row in focus.rows(tables["regions"])}
    outcomes = {row["region_id"]: row["outcome"] for row in focus.rows(tables["output_verdicts"])}
    checks = grouped(focus.rows(tables["output_checks"]), "region_id")
    differences = grouped(focus.rows(tables["output_differences"]), "region_id")
    ends = {row["region_id"]: row for row in focus.rows(tables["end_checks"]) if end_is_wrong(row)}
    found = []
    for trial in focus.rows(tables["output_trials"]):
        key = trial["region_id"]
        wrong = tuple(struct_of(OutputDifference, row) for row in differences.get(key, ()))
        end = ends.get(key) if all(one.stage is None for one in wrong) else None
        region = regions.get(key, {})
        found.append(
            struct_of(
                ComparedOutputs,
                trial,
                name=region.get("name") or "",
                outcome=outcomes[key],
                file=region.get("call_file"),
                line=region.get("call_line"),
                checks=tuple(struct_of(OutputCheck, row) for row in checks.get(key, ())),
                differences=wrong,
                own_code=end and own_code(end),
            )
        )
    return tuple(found)


def own_code(row: Mapping[str, Any]) -> OwnCode:
    """Of a row of ``end_checks`` that is wrong."""
    return struct_of(OwnCode, row, recorded=is_recorded(row), operators=tuple(own_operators(row)))


def accuracy(tables: Tables) -> tuple[tuple[ComparedOutputs, ...], dict[str, Any]]:
    """What was compared, and the answer of ``traceview accuracy --json`` (docs/accuracy.md)."""
    focus = Focus.of(tables)
    outputs = compared_outputs(tables, focus)
    faults = {row["region_id"]: row for row in focus.rows(tables["output_faults"])}
    differences = [
        {
            "what": one.what,
            "name": one.output,
            "callable": each.name,
            "stage": one.stage,
            "direction": one.direction,
            "operator": fault.get("operator"),
            "location": _place(fault, "file", "line") or {"file": each.file, "line": each.line},
            "callable_location": {"file": each.file, "line": each.line},
            "relative_error": one.relative_error,
            "eager_error": one.eager_error,
            "reason": one.why,
            "script": fault.get("script"),
        }
        for each in outputs
        for fault in [faults.get(each.region_id, {})]
        for one in each.differences
    ]
    differences += [_of_own_code(each, each.own_code) for each in outputs if each.own_code]
    left_out = [
        {"callable": each.name, "name": name, "reason": reason}
        for each in outputs
        for name, reason in not_compared(each)
    ]
    if not outputs:
        noted = tables["notes"].filter(pl.col("what") == COMPARING)["why"].to_list()
        killed = not tables["runs"]["exit_signal"].drop_nulls().is_empty()
        early = "the script was ended by a signal before anything could be compared"
        reason = noted[0] if noted else early if killed else "no compiled callable was called"
        left_out = [{"callable": None, "name": None, "reason": reason}]
    compared = any(each.outcome != "not_compared" for each in outputs)
    verdict = "differ" if differences else "agree" if compared else "not_compared"
    modes = {row["region_id"]: row["mode"] for row in focus.rows(tables["regions"])}
    named = [
        _own_fault(each, each.own_code, modes.get(each.region_id))
        if each.own_code
        else _fault(each, faults[each.region_id])
        for each in outputs
        if each.own_code or (each.differences and each.region_id in faults)
    ]
    answer = {
        "format": 1,
        "verdict": verdict,
        "differences": differences,
        "faults": named,
        "not_compared": left_out,
    }
    return outputs, answer


#: ``what`` of a result, by the first word of its name.
_KINDS = {
    **{word: word for word in ("gradient", "buffer", "parameter")},
    **dict.fromkeys(("argument", "attribute"), "input"),
}


def _of_own_code(one: ComparedOutputs, own: OwnCode) -> dict[str, Any]:
    """A difference of the script's own compiled code, as JSON has it."""
    place = {"file": one.file, "line": one.line}
    kind = own.name.partition(" ")[0]
    return {
        "what": _KINDS.get(kind, "output"),
        "name": own.name,
        "callable": one.name,
        "stage": "cudagraph" if own.recorded else "script",
        "direction": "backward" if kind == "gradient" else "forward",
        "operator": own.operators[0] if len(own.operators) == 1 else own.constant,
        "location": {"file": own.file, "line": own.line} if own.file else place,
        "callable_location": place,
        "relative_error": own.relative_error,
        "eager_error": None,
        "reason": None,
        "script": None,
    }


def _fault(one: ComparedOutputs, row: Mapping[str, Any]) -> dict[str, Any]:
    """What one wrong callable was followed to, as JSON has it."""
    alike = ["operator", "operators", "module", "part", "part_name", "graph", "kernel", "remedies"]
    alike += ["script", "reproduced", "tries", "seconds"]
    values = {key: row[key] for key in ("result", "element", "eager", "compiled")}
    return {
        "callable": one.name,
        "callable_location": {"file": one.file, "line": one.line},
        **{key: row[key] for key in alike},
        "location": _place(row, "file", "line"),
        "part_location": _place(row, "part_file", "part_line"),
        "worst": {**values, "float64": row["exact"]} if row["result"] else None,
        "no_script": row["script_why"],
        "not_found": row["why"],
    }


#: Settings with which a callable is compiled without cudagraphs, by its mode.
_NO_CUDAGRAPHS = {
    "reduce-overhead": "mode=default",
    "max-autotune": "mode=max-autotune-no-cudagraphs",
}


def _own_fault(one: ComparedOutputs, own: OwnCode, mode: str | None) -> dict[str, Any]:
    """The same of what only the script's own compiled code has wrong."""
    place = {"file": own.file, "line": own.line} if own.file else None
    without = _NO_CUDAGRAPHS.get(mode or "", "torch._inductor.config.triton.cudagraphs=False")
    nothing = ("module", "kernel", "worst", "script", "reproduced")
    return {
        "callable": one.name,
        "callable_location": {"file": one.file, "line": one.line},
        "operator": own.operators[0] if len(own.operators) == 1 else None,
        "operators": list(own.operators),
        "location": place if own.operators else None,
        "part": "cudagraph" if own.recorded else "constant" if own.constant else None,
        "part_name": own.constant,
        "part_location": place if own.constant else None,
        "graph": "backward" if own.name.startswith("gradient") else "forward",
        "remedies": [without] if own.recorded else ["torch.compiler.reset()"],
        **dict.fromkeys(nothing),
        "no_script": "compiled again it is right",
        "not_found": None if own.recorded or own.constant else "the value that has changed",
        "tries": 0,
        "seconds": 0.0,
    }


def _place(row: Mapping[str, Any], file: str, line: str) -> dict[str, Any] | None:
    return {"file": row[file], "line": row[line]} if row.get(file) else None


def not_compared(one: ComparedOutputs) -> list[tuple[str | None, str]]:
    """(result, reason) of what can't be compared; without a result it is the whole callable."""
    if one.outcome == "not_compared":
        return [(None, one.why or "not recorded")]
    found: list[tuple[str | None, str]] = []
    if one.gradients_why:
        found.append(("gradients", one.gradients_why))
    judged = [check for check in one.checks if check.run in ("compiled", "ladder")]
    ties = dict.fromkeys(check.output for check in judged if check.same and check.why)
    found += [(name, "ties: equal values in another order") for name in ties]
    unsteady = [c.output for c in one.checks if c.run == "eager_again" and c.same is False]
    found += [(name, "eager differs from itself when it is run twice") for name in unsteady]
    return found


def kernel_groups(tables: Tables, focus: Focus) -> tuple[KernelGroup, ...]:
    """The slowest kernels of each stance, the slowest first."""
    groups = focus.structs(tables["kernel_groups"], KernelGroup, largest="total_ms")
    eager, compiled = ([one for one in groups if one.stance == stance] for stance in STANCES)
    return (*eager[:MOST_GROUPS], *compiled[:MOST_GROUPS])


def fused_kernels(tables: Tables, focus: Focus) -> tuple[FusedKernel, ...]:
    """Generated kernels, the slowest first, each with the eager time that it replaced.

    The eager side is given where a group of ``match_groups`` holds no other compiled kernel: then
    all of that group's eager kernels became this one.
    """
    generated = [
        row
        for row in focus.rows(tables["generated_kernels"])
        if row["category"] not in LIBRARY and row["kernel_name"]
    ]
    # Recompiles write the same kernel again; kernels of different graphs may share a name.
    unique = _first_of_each(generated, "kernel_name", "source_code")
    groups = focus.rows(tables["kernel_groups"])
    measured = _measured(unique, [row for row in groups if row["stance"] == "compiled"])
    holds: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for row in focus.rows(tables["matched_kernels"]):
        if row["stance"] == "compiled":
            name = _GRAPH_PREFIX.sub("", row["name"])
            holds[row["group_id"]].add((name, row["compile_id"]))
    replaced = {
        next(iter(holds[row["group_id"]])): row
        for row in focus.rows(tables["match_groups"])
        if row["matched"] and len(holds[row["group_id"]]) == 1
    }
    unique.sort(key=lambda row: -(measured.get(_identity(row), {}).get("ms") or 0.0))

    budget, found = ALL_KERNEL_CHARACTERS, []
    # Forward and backward of one compile may share a name; the profile has one time for both.
    for row in _first_of_each(unique, "kernel_name", "compile_id")[:MOST_FUSED]:
        code, budget = _fit(row["source_code"], KERNEL_CHARACTERS, budget)
        time, group = measured.get(_identity(row), {}), replaced.get(_identity(row), {})
        found.append(
            struct_of(
                FusedKernel,
                row,
                ms=time.get("ms"),
                count=time.get("count"),
                clock=time.get("clock"),
                source_code=code,
                eager_ms=group.get("eager_ms"),
                eager_count=group.get("eager_kernels"),
            )
        )
    return tuple(found)


def _first_of_each(rows: list[Row], *columns: str) -> list[Row]:
    """The first of the rows that are the same in ``columns``."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), row)
    return list(found.values())


def _identity(row: Row) -> tuple[str, str]:
    return row["kernel_name"], row["compile_id"]


def _measured(kernels: list[Row], groups: list[Row]) -> dict[tuple[str, str], Row]:
    """Kernel → its time in the profile, by name and compile; by name alone where that is unique."""
    named = Counter(row["kernel_name"] for row in kernels)
    found: dict[tuple[str, str], Row] = {}
    for row in kernels:
        same = [g for g in groups if _GRAPH_PREFIX.sub("", g["name"]) == row["kernel_name"]]
        if named[row["kernel_name"]] > 1:
            same = [group for group in same if group["compile_id"] == row["compile_id"]]
        if same:
            found[_identity(row)] = {
                "ms": sum(group["ms"] or 0.0 for group in same),
                "count": sum(group["count"] or 0.0 for group in same),
                "clock": same[0]["clock"],
            }
    return found


def graphs(tables: Tables, focus: Focus) -> tuple[tuple[Graph, ...], str | None]:
    """(graphs with generated code, a note on what was left out or cut; None if nothing was)."""
    texts = tables["graphs"].filter(pl.col("kind").is_in(["dynamo_output", "output_code"]))
    rows = focus.rows(texts)
    traced = {row["compile_key"]: row for row in rows if row["kind"] == "dynamo_output"}
    coded = {row["compile_key"] for row in rows if row["kind"] == "output_code"}
    shown = [row for row in rows if row["kind"] == "output_code" or row["compile_key"] not in coded]
    made = (
        tables["generated_kernels"]
        .select("compile_key", "aot_id", "kernel_name")
        .drop_nulls("kernel_name")
    )
    kernels: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for key, aot_id, name in made.unique(maintain_order=True).iter_rows():
        kernels[key, aot_id].append(name)
    budget, cuts, found = ALL_GRAPH_CHARACTERS, 0, []
    for row in shown[:MOST_GRAPHS]:
        source = traced.pop(row["compile_key"], {})  # once: forward and backward share it
        whole = source.get("text"), row["text"] if row["kind"] == "output_code" else None
        text, budget = _fit(whole[0], GRAPH_CHARACTERS, budget)
        code, budget = _fit(whole[1], GRAPH_CHARACTERS, budget)
        cuts += (text, code) != whole
        found.append(
            struct_of(
                Graph,
                row,
                name=row["aot_id"] or row["kind"],
                op_count=source.get("node_count"),
                graph_text=text,
                output_code=code,
                kernels=kernels.get((row["compile_key"], row["aot_id"]), ()),
            )
        )
    counts = ((len(shown) - len(found), "not shown"), (cuts, "shown in part"))
    parts = [f"{plural(n, 'graph')} {'is' if n == 1 else 'are'} {how}" for n, how in counts if n]
    note = f"{' and '.join(parts)}: table graphs has everything." if parts else None
    return tuple(found), note


def _fit(text: str | None, most: int, budget: int) -> tuple[str | None, int]:
    """(``text`` cut to ``most`` and to what is left of ``budget``, what is left then)."""
    if text is None or budget <= 0:
        return None, budget
    room = min(most, budget)
    kept = text if len(text) <= room else text[:room] + "\n# … (cut)"
    return kept, budget - len(kept)
