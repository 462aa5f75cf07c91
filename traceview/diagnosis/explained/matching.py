"""Eager kernels beside the compiled ones that replaced them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traceview.diagnosis.explanation import GroupKernel, MatchGroup, Matching
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables

MOST_GROUPS = 60
#: Of one stance in one group; the group's own figures count all.
MOST_KERNELS = 30

Row = dict[str, Any]


def matching(tables: Tables, focus: Focus) -> Matching:
    """Groups, dearest first, with what they hold; the shares are of all kernels of a stance."""
    groups = sorted(focus.rows(tables["match_groups"]), key=lambda row: row["group_id"])
    kernels: dict[int, list[Row]] = {}
    for row in focus.rows(tables["matched_kernels"]):
        kernels.setdefault(row["group_id"], []).append(row)
    return Matching(
        groups=tuple(_group(row, kernels.get(row["group_id"], [])) for row in groups[:MOST_GROUPS]),
        eager_share=_matched_share(groups, "eager"),
        compiled_share=_matched_share(groups, "compiled"),
        sourced_share=_sourced_share([row for mine in kernels.values() for row in mine]),
        left_out=max(0, len(groups) - MOST_GROUPS),
    )


def _matched_share(groups: Sequence[Row], stance: str) -> float | None:
    """Part of a stance's time in groups with both sides; None where one stance was not profiled."""
    if not all(any(row[f"{s}_ms"] for row in groups) for s in ("eager", "compiled")):
        return None
    return _share(groups, [row for row in groups if row["matched"]], f"{stance}_ms")


def _sourced_share(kernels: Sequence[Row]) -> float | None:
    """Part of the compiled time whose kernels lead to operators of a graph."""
    mine = [row for row in kernels if row["stance"] == "compiled"]
    sourced = [row for row in mine if row["graph_key"] and row["ops"]]
    return _share(mine, sourced, "ms")


def _share(whole: Sequence[Row], part: Sequence[Row], column: str) -> float | None:
    total = sum(row[column] or 0.0 for row in whole)
    return sum(row[column] or 0.0 for row in part) / total if total else None


def _group(row: Row, kernels: Sequence[Row]) -> MatchGroup:
    return MatchGroup(
        group_id=row["group_id"],
        kind=row["kind"],
        matched=row["matched"],
        eager_kernels=row["eager_kernels"] or 0.0,
        eager_ms=row["eager_ms"],
        compiled_kernels=row["compiled_kernels"] or 0.0,
        compiled_ms=row["compiled_ms"],
        ops=tuple(row["ops"] or ()),
        lines=tuple(row["lines"] or ()),
        compile_ids=tuple(row["compile_ids"] or ()),
        clock=row["clock"],
        how=row["how"],
        shape=row["shape"],
        kernels=tuple(
            kernel for stance in ("eager", "compiled") for kernel in _kernels(kernels, stance)
        ),
    )


def _kernels(rows: Sequence[Row], stance: str) -> list[GroupKernel]:
    """Kernels of one stance, dearest first; calls of one kernel at one line are added up."""
    alike: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["stance"] == stance:
            same = (row["name"], row["cpu_op"], row["file"], row["line"], row["compile_id"])
            alike.setdefault(same, []).append(row)
    found = [_kernel(mine) for mine in alike.values()]
    return sorted(found, key=lambda kernel: -kernel.ms)[:MOST_KERNELS]


def _kernel(rows: Sequence[Row]) -> GroupKernel:
    first = rows[0]
    return GroupKernel(
        stance=first["stance"],
        name=first["name"],
        category=first["category"] or "other",
        cpu_op=first["cpu_op"],
        file=first["file"],
        line=first["line"],
        compile_id=first["compile_id"],
        ops=tuple(dict.fromkeys(op for row in rows for op in row["ops"] or ())),
        count=sum(row["count"] or 0.0 for row in rows),
        ms=sum(row["ms"] or 0.0 for row in rows),
        how=first["how"],
    )
