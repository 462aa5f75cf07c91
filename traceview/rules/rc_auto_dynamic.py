"""
## What it finds
One recompile after which a size or number is symbolic: torch's automatic dynamic shapes at work.

## Why it costs
One more compile at the start, and nothing after it. Nothing is wrong; the finding explains the
second compile.

## Evidence
A single recompile of a function for a size (or an int or float) of one source, with symbols created
by that compile, and no later one for the same source.

## What to do
Nothing. To save that compile, mark the size before the first call. What no line of the script can
mark, such as a tensor in an attribute or one that a graph break left, has a source by which torch
knows it: name that in `torch.compiler.config.dynamic_sources` or `TORCH_COMPILE_DYNAMIC_SOURCES`.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/pgo.py, `record_automatic_dynamic`
- torch/compiler/config.py, `dynamic_sources`
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from traceview.rules import _recompiles
from traceview.rules.kit import Finding, Tables, from_row, plural, rows

CODE = "TV205"
NEEDS = frozenset({"recompile_causes", "compiles"})
SEVERITIES = ("info",)
IS_CAUSE = False
FOLLOWS = frozenset({"cg-dynamic-rerecord"})


def check(tables: Tables) -> Iterator[Finding]:
    """One finding a function and source that became symbolic."""
    limited = _recompiles.limited_frames(tables)
    compiles = {row["compile_key"]: row for row in rows(tables, "compiles")}
    changed = (*_recompiles.of_sizes(tables, "first_change"), *_single_values(tables))
    for cause in changed:
        again = compiles.get(cause.rows[-1]["compile_key"])
        if _recompiles.last_batch(tables, cause):
            continue  # a rule of its own
        if _recompiles.frame_of(cause.row) in limited or not (again and again["dynamic_symbols"]):
            continue
        # A mark saves the compile for the first value, whose own time is lost among a start's.
        cost = cause.cost(tables)
        about = f"{cost.about}; a mark saves the one before, which is as long"
        remedy, paste = "Nothing.", ""
        if not {row["old"] for row in cause.rows} & {"0", "1"}:  # constants, whatever is marked
            if paste := cause.marks():
                remedy += " Marking it before the first call saves this compile."
            elif paste := cause.sources(tables):
                remedy += (
                    " Naming its source before the first call, or in "
                    "TORCH_COMPILE_DYNAMIC_SOURCES, saves this compile."
                )
        made = f"compile {again['compile_id']} created {plural(again['dynamic_symbols'], 'symbol')}"
        yield _recompiles.finding(
            tables,
            cause,
            code=CODE,
            rule="rc-auto-dynamic",
            title=f"{cause.subject} changed ({cause.values()}) and became symbolic",
            explanation=(
                "torch compiles in the first value as a constant and makes it symbolic when it "
                "changes. It caused no further recompile."
            ),
            cost=replace(cost, about=about),
            info=True,
            confidence="derived",
            evidence=(*cause.evidence(), from_row(made, "compiles", again)),
            what_to_do=remedy,
            paste=paste,
        )


def _single_values(tables: Tables) -> Iterator[_recompiles.Cause]:
    """Numbers that changed once and are symbolic in the code that was compiled for it."""
    created, pinned = (
        {
            (row["compile_key"], _recompiles.plain(row["source_name"]))
            for row in rows(tables, "symbols", event=event)
        }
        for event in ("create", "specialize")
    )
    for cause in _recompiles.by_source(tables):
        named = (cause.row["compile_key"], cause.row["source_name"])
        numbers = cause.row["kind"] == "value" and not cause.is_choice
        if numbers and len(cause.rows) == 1 and named in created and named not in pinned:
            yield cause
