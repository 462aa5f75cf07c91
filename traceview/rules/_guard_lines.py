"""Lines that guards name: files with their fronts cut off, and torch's tree of the guards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

import polars as pl

from traceview.rules.kit import Location, Owners, Row, Tables, frame
from traceview.torchtext.frames import StackFrame


def whole_path(cut: str, files: Iterable[str | None]) -> str | None:
    """The one of ``files`` that a guard names as ``cut``.

    torch leaves out what a path has in common with its own, and one letter more below ``/``.
    """
    name = PurePath(cut).name
    return next((f for f in files if f and f.endswith(cut) and PurePath(f).name == name), None)


def read_in_guards(tables: Tables, causes: Sequence[Row]) -> Location | None:
    """The user's own line of a guard on the very source, on what is inside of it, or around it.

    ``causes``: rows of ``recompile_causes`` about one source, never empty. An empty dictionary has
    nothing inside yet: the variants that came later know more.
    """
    owners, sources = tables.once(Owners), tables["sources"]["file"]
    found: list[tuple[int, int, int, str, int]] = []
    for variant, row in enumerate(causes):
        source, failed, key = row["source_name"], row["failed_compile_id"], row["compile_key"]
        if not (source and failed and key):
            continue
        # Those of the variant that did not fit.
        guards = frame(tables, "guards", compile_key=key.removesuffix(row["compile_id"]) + failed)
        guards = guards.drop_nulls(["source_name", "file", "line"]).select(
            pl.col("source_name").str.replace_all(r"\bL\[\s*['\"](.*?)['\"]\s*\]", "${1}"),
            "file",
            "line",
        )
        found += [
            (distance, variant, number, file, line)
            for number, (name, file, line) in enumerate(guards.unique(maintain_order=True).rows())
            if (distance := _distance(source, name)) is not None
        ]
    for *_, cut, line in sorted(found):
        file = whole_path(cut, (causes[0]["co_filename"], *sources))
        if file and owners.owns(StackFrame(file, line, None)):
            return Location(file, line)
    return None


def _distance(source: str, name: str) -> int | None:
    """0: the same; 1: keys of it; 2: inside (``cache['a']`` of ``cache``); more: around it."""
    if name == source:
        return 0
    if name.startswith(f"list(dict.keys({source}))"):  # where its keys are iterated
        return 1
    if name.startswith((f"{source}[", f"{source}.")):
        return 2
    around = source.startswith((f"{name}[", f"{name}."))
    return 2 + len(source) - len(name) if around else None
