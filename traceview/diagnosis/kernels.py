"""Kernels of both stances, generated kernels with the operators in them, the graphs' code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping
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
#: Operators that Inductor puts into a kernel's name at most, and words of the longest operator.
NAMED_OPERATORS = 10
MOST_WORDS = 8
_FUSED_NAME = re.compile(r"fused_(\w+)_\d+$")
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
    """Generated kernels, dearest first, each with the eager time of the operators in it.

    The eager side is given only where every operator of the kernel is in no other kernel: then the
    eager profile's time for those operators is this kernel's and nobody else's.
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
    eager = _eager_operators(groups)
    external = [row for row in focus.rows(tables["generated_kernels"]) if row not in generated]
    uses = Counter(op for row in (*unique, *external) for op in _operators(row, eager))
    unique.sort(key=lambda row: -(measured.get(_identity(row), {}).get("ms") or 0.0))
    budget = ALL_KERNEL_CHARACTERS
    found = []
    # Forward and backward of one compile may share a name; the profile has one time for both.
    once = list({_identity(row): row for row in reversed(unique)}.values())[::-1]
    for row in once[:MOST_FUSED]:
        code, budget = _fit(row["source_code"], KERNEL_CHARACTERS, budget)
        found.append(_fused(row, measured.get(_identity(row), {}), code, eager, uses))
    return tuple(found)


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


def _fused(
    row: Row,
    group: Row,
    code: str | None,
    eager: dict[str, tuple[float, float]],
    uses: Counter[str],
) -> FusedKernel:
    operators = _operators(row, eager)
    alone = bool(operators) and all(uses[op] == 1 and op in eager for op in operators)
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
        eager_ms=sum(eager[op][0] for op in operators) if alone else None,
        eager_count=sum(eager[op][1] for op in operators) if alone else None,
    )


def operator_name(text: str) -> str:
    """``aten.add.Tensor``, ``aten::add`` and ``add`` as ``add``."""
    bare = text.replace("::", ".").removeprefix("torch.ops.").removeprefix("aten.")
    return bare.split(".", 1)[0]


def _operators(row: Row, eager: Mapping[str, object]) -> set[str]:
    """The eager operators in a kernel: by its name, failing that by its (decomposed) aten ops."""
    named = named_operators(row["kernel_name"] or "", eager)
    return named or {operator_name(op) for op in row["fused_ops"] or ()}


def named_operators(kernel_name: str, known: Container[str]) -> set[str]:
    """``triton_poi_fused_add_gelu_0`` as {add, gelu}, if all of it can be read so, else nothing.

    Inductor names a kernel after the operators that the user called (``original_aten``), where the
    operators in its code are decomposed: gelu has become erf. It leaves out those after the tenth
    (``torch._inductor.config.triton.descriptive_names``, ``kernel_name_max_ops``).
    """
    match = _FUSED_NAME.search(kernel_name)
    words = match[1].split("_") if match else []
    found: set[str] = set()
    while words:
        sizes = range(min(len(words), MOST_WORDS), 0, -1)
        size = next((n for n in sizes if "_".join(words[:n]) in known), None)
        if size is None:
            return set()
        found.add("_".join(words[:size]))
        words = words[size:]
    return found if len(found) < NAMED_OPERATORS else set()


def _eager_operators(groups: list[Row]) -> dict[str, tuple[float, float]]:
    """Operator → (ms, executions) per step in the eager profile."""
    found: dict[str, tuple[float, float]] = {}
    for row in groups:
        if row["stance"] == "eager":
            name = operator_name(row["cpu_op"] or row["name"])
            ms, count = found.get(name, (0.0, 0.0))
            found[name] = (ms + (row["ms"] or 0.0), count + (row["count"] or 0.0))
    return found


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
