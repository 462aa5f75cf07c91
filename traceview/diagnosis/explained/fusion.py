"""What was fused, what was not and why; what the passes changed."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from traceview.diagnosis.explanation import FusionNote, GraphPass
from traceview.diagnosis.focus import Focus
from traceview.tables import Tables

#: Notes of a kind that a report has room for; the table ``fusion_notes`` has all.
MOST_OF_KIND = 12
MOST_PASSES = 200
_OPPORTUNITIES = (
    "refused",
    "epilogue_apart",
    "epilogue_not_tried",
    "prologue_apart",
    "prologue_not_tried",
)

Row = dict[str, Any]


def notes(tables: Tables, focus: Focus) -> tuple[FusionNote, ...]:
    """Notes, most bytes first, at most ``MOST_OF_KIND`` of a kind."""
    by_kind: dict[str, list[Row]] = defaultdict(list)
    for row in _alike(focus.rows(tables["fusion_notes"])):
        mine = by_kind[row["kind"]]
        worthless = row["kind"] in _OPPORTUNITIES and row["bytes_saved"] == 0
        if len(mine) < MOST_OF_KIND and not worthless:
            mine.append(row)
    kept = [row for rows in by_kind.values() for row in rows]
    return tuple(_note(row) for row in sorted(kept, key=lambda row: -(row["bytes_saved"] or 0)))


def _alike(rows: list[Row]) -> list[Row]:
    """Refusals of the same operations for the same reason as one: the pair with the most bytes.

    The layers of a model repeat them, pair by pair. Bytes are not added up: pairs overlap.
    """
    merged: dict[tuple[object, ...], Row] = {}
    for row in rows:
        key: tuple[object, ...] = (id(row),)
        if row["kind"] in _OPPORTUNITIES:
            same = (row["kind"], row["compile_id"], row["reason"], row["setting"])
            key = (*same, frozenset(row["ops"] or ()))
        first = merged.setdefault(key, {**row, "times": 0, "lines": []})
        first["times"] += row["times"] or 1
        known = [n for n in (first["bytes_saved"], row["bytes_saved"]) if n is not None]
        first["bytes_saved"] = max(known, default=None)
        first["lines"] = list(dict.fromkeys([*first["lines"], *(row["lines"] or ())]))
    return list(merged.values())


def passes(tables: Tables, focus: Focus) -> tuple[GraphPass, ...]:
    """Passes in order of running, compile by compile."""
    rows = focus.rows(tables["graph_passes"])[:MOST_PASSES]
    return tuple(
        GraphPass(
            compile_id=row["compile_id"],
            aot_id=row["aot_id"],
            stage=row["stage"],
            nodes_before=row["nodes_before"],
            nodes_after=row["nodes_after"],
            patterns=row["patterns"],
            read_bytes_before=row["read_bytes_before"],
            read_bytes_after=row["read_bytes_after"],
            removed=tuple(row["removed"] or ()),
            added=tuple(row["added"] or ()),
        )
        for row in rows
    )


def _note(row: Row) -> FusionNote:
    return FusionNote(
        kind=row["kind"],
        text=row["text"],
        reason=row["reason"],
        compile_id=row["compile_id"],
        kernels=tuple(row["kernels"] or ()),
        ops=tuple(row["ops"] or ()),
        lines=tuple(row["lines"] or ()),
        bytes_saved=row["bytes_saved"],
        setting=row["setting"],
        times=row["times"] or 1,
    )
