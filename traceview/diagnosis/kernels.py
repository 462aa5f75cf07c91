"""Kernels of both stances, generated kernels with the operators in them, the graphs' code."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import polars as pl

from traceview.diagnosis.focus import Focus
from traceview.diagnosis.model import FusedKernel, Graph, KernelGroup
from traceview.tables import Tables

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

Row = dict[str, Any]


def kernel_groups(tables: Tables, focus: Focus) -> tuple[KernelGroup, ...]:
    """The dearest kernels of each stance, dearest first."""
    rows = sorted(focus.rows(tables["kernel_groups"]), key=lambda row: -(row["ms"] or 0.0))
    chosen = [
        row
        for stance in ("eager", "compiled")
        for row in [row for row in rows if row["stance"] == stance][:MOST_GROUPS]
    ]
    return tuple(
        KernelGroup(
            stance=row["stance"],
            name=row["name"],
            category=row["category"] or "other",
            count=row["count"] or 0.0,
            ms=row["ms"] or 0.0,
            share=row["share"] or 0.0,
            clock=row["clock"] or "host",
            compile_id=row["compile_id"],
            fused_ops=tuple(row["fused_ops"] or ()),
            user_lines=tuple(row["user_lines"] or ()),
        )
        for row in chosen
    )


def fused_kernels(tables: Tables, focus: Focus) -> tuple[FusedKernel, ...]:
    """Generated kernels, dearest first, each with the eager time that it replaced.

    The eager side is given where a group of ``match_groups`` holds no other compiled kernel: then
    all of that group's eager kernels became this one.
    """
    generated = [
        row
        for row in focus.rows(tables["generated_kernels"])
        if row["category"] not in LIBRARY and row["kernel_name"]
    ]
    # Recompiles write the same kernel again; kernels of different graphs may share a name.
    unique = list(
        {(row["kernel_name"], row["source_code"]): row for row in reversed(generated)}.values()
    )[::-1]
    groups = focus.rows(tables["kernel_groups"])
    measured = _measured(unique, [row for row in groups if row["stance"] == "compiled"])
    replaced = _replaced(tables, focus)
    unique.sort(key=lambda row: -(measured.get(_identity(row), {}).get("ms") or 0.0))
    budget = ALL_KERNEL_CHARACTERS
    found = []
    # Forward and backward of one compile may share a name; the profile has one time for both.
    once = list({_identity(row): row for row in reversed(unique)}.values())[::-1]
    for row in once[:MOST_FUSED]:
        code, budget = _fit(row["source_code"], KERNEL_CHARACTERS, budget)
        key = _identity(row)
        found.append(_fused(row, measured.get(key, {}), code, replaced.get(key, {})))
    return tuple(found)


def _replaced(tables: Tables, focus: Focus) -> dict[tuple[str, str], Row]:
    """Kernel → its group in ``match_groups``, where that holds no other compiled kernel."""
    holds: dict[int, set[tuple[str, str]]] = {}
    for row in focus.rows(tables["matched_kernels"]):
        if row["stance"] == "compiled":
            name = _GRAPH_PREFIX.sub("", row["name"])
            holds.setdefault(row["group_id"], set()).add((name, row["compile_id"]))
    groups = {row["group_id"]: row for row in focus.rows(tables["match_groups"]) if row["matched"]}
    alone = {number: kernels for number, kernels in holds.items() if len(kernels) == 1}
    return {kernel: groups[n] for n, (kernel,) in alone.items() if n in groups}


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


def _fused(row: Row, group: Row, code: str | None, replaced: Row) -> FusedKernel:
    return FusedKernel(
        kernel_name=row["kernel_name"],
        category=row["category"] or "other",
        compile_id=row["compile_id"] or "?",
        fused_ops=tuple(row["fused_ops"] or ()),
        user_lines=tuple(row["user_lines"] or ()),
        ms=group.get("ms"),
        count=group.get("count"),
        clock=group.get("clock"),
        source_code=code,
        eager_ms=replaced.get("eager_ms"),
        eager_count=replaced.get("eager_kernels"),
    )


def graphs(tables: Tables, focus: Focus) -> tuple[tuple[Graph, ...], str | None]:
    """(graphs with generated code, a note on what was left out or cut; None if nothing was)."""
    texts = tables["graphs"].filter(pl.col("kind").is_in(["dynamo_output", "output_code"]))
    rows = focus.rows(texts)
    traced = {row["compile_key"]: row for row in rows if row["kind"] == "dynamo_output"}
    coded = {row["compile_key"] for row in rows if row["kind"] == "output_code"}
    shown = [row for row in rows if row["kind"] == "output_code" or row["compile_key"] not in coded]
    budget, cuts, found = ALL_GRAPH_CHARACTERS, 0, []
    for row in shown[:MOST_GRAPHS]:
        source = traced.pop(row["compile_key"], {})  # once: forward and backward share it
        whole = source.get("text"), row["text"] if row["kind"] == "output_code" else None
        text, budget = _fit(whole[0], GRAPH_CHARACTERS, budget)
        code, budget = _fit(whole[1], GRAPH_CHARACTERS, budget)
        cuts += (text, code) != whole
        found.append(_graph(row, source, text, code, tables))
    return tuple(found), _cut_note(len(shown) - len(found), cuts)


def _cut_note(left_out: int, cuts: int) -> str | None:
    said = [
        f"{number} {'graph is' if number == 1 else 'graphs are'} {how}"
        for number, how in ((left_out, "not shown"), (cuts, "shown in part"))
        if number
    ]
    return f"{' and '.join(said)}: table graphs has everything." if said else None


def _graph(row: Row, source: Row, text: str | None, code: str | None, tables: Tables) -> Graph:
    mine = tables["generated_kernels"].filter(
        (pl.col("compile_key") == row["compile_key"])
        & pl.col("aot_id").eq_missing(pl.lit(row["aot_id"], dtype=pl.String))
    )
    return Graph(
        compile_id=row["compile_id"] or "?",
        kind=row["kind"],
        name=row["aot_id"] or row["kind"],
        op_count=source.get("node_count"),
        graph_text=text,
        output_code=code,
        kernels=tuple(dict.fromkeys(name for name in mine["kernel_name"] if name)),
    )


def _fit(text: str | None, most: int, budget: int) -> tuple[str | None, int]:
    """(``text`` cut to ``most`` and to what is left of ``budget``, what is left then)."""
    if text is None or budget <= 0:
        return None, budget
    room = min(most, budget)
    kept = text if len(text) <= room else text[:room] + "\n# … (cut)"
    return kept, budget - len(kept)
