"""
## What it finds
A tensor that is copied whole in every call to change a small part of it, as the script asks for by
`index_copy`, `scatter` or another operator that returns a changed copy.

## Why it costs
`table = table.index_copy(0, at, rows)` leaves the old table as it is, so all of it has to be read
and written. Eager does the same. Compiled code can't leave the copy out: the old table is the
caller's, who may still read it. `table.index_copy_(0, at, rows)` writes the rows alone.

## Evidence
The operator in the post-grad graph, of an input of the graph, with the elements of the input and
those that it changes; and a generated kernel with its line that moves at least as many bytes as
the copy takes. The cost is that part of the kernel's time.

## What to do
Write in place (`index_copy_`, `scatter_`, `table[at] = rows`) and return nothing, if nothing needs
the old values. Under autograd that has to be a tensor that needs no gradient.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that such copies must take.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_copy_.html
- https://dev-discuss.pytorch.org/t/functionalization-in-pytorch-everything-you-wanted-to-know/965
- torch/_inductor/fx_passes/reinplace.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import at_first, locations, paced
from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Cost,
    Finding,
    Snippet,
    Tables,
    about,
    first_rank,
    from_row,
    milliseconds,
    percent,
    rows,
    severity,
    step_ms,
)
from traceview.words.numbers import size

CODE = "TV440"
NEEDS = frozenset({"whole_copies", "step_counts"})
SEVERITIES = ("warning", "info")

#: Less of a step is not worth a change of the code.
LEAST_SHARE = 0.05
_ABOUT = "generated kernels that copy, by the bytes that they move"


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such copies, at the largest one's line."""
    found = sorted(first_rank(rows(tables, "whole_copies")), key=lambda row: -row["ms"])
    step, ms = step_ms(tables, "compiled"), sum(row["ms"] for row in found)
    saved, pace = paced(tables, ms)
    if not found or not step or saved < least_share * step:
        return
    largest = found[0]
    places = locations(row["line"] for row in found)
    at = at_first(*places)
    yield Finding(
        code=CODE,
        rule="ind-whole-copy",
        severity=severity(tables, saved),
        title=(
            f"{size(largest['bytes'])} are copied{at} to change {largest['changed']:,} of "
            f"{largest['elements']:,} elements: {milliseconds(ms)}, "
            f"{percent(min(1.0, ms / step))} of the step"
        ),
        explanation=(
            "The operator returns a changed copy and leaves its input as it is, in eager as in "
            "compiled code. Written in place, only the part that changes would be written."
        ),
        cost=Cost(saved, None, _ABOUT + pace),
        confidence="derived",
        location=places[0] if places else None,
        about=about(*of_keys(tables, {row["compile_key"] for row in found})),
        evidence=tuple(
            from_row(
                f"{row['kernel_name']}: {milliseconds(row['profiled_ms'])} of a step, "
                f"{size(row['bytes'])} copied",
                "whole_copies",
                row,
            )
            for row in found[:MOST_EVIDENCE]
        ),
        what_to_do=(
            "Write into the tensor instead of asking for a changed copy, if nothing needs its old "
            "values."
        ),
        snippet=Snippet("python", "table.index_copy_(0, at, rows)  # table[at] = rows"),
        also_at=tuple(places[1:4]),
        weighs=True,
    )
