"""
## What it finds
Writes to a part of a tensor (a column, a slice, a few rows) for which generated code goes through
all of the tensor.

## Why it costs
In a compiled graph no operation writes into a tensor: `out[:, 3] = x` becomes a node
`select_scatter`, whose result is a whole new tensor. Where Inductor sees that the write may happen
in place, it writes the part alone, as eager does. It does not through a view of a view
(`book.t()[i] = x`), nor for `book[:, i] += x` and `scatter_`: the kernel then reads and writes all
elements, and copies them back to an input. Nor does it for several writes in a row to a new tensor,
such as those of an unrolled loop: the kernel chooses once for each write and element. A value that
is read again after a later write needs a tensor as large as the whole, in new memory.

Two inputs that are views of one storage (`keys, values = cache.unbind(3)`) are one input to the
graph: AOTAutograd can't know whether they overlap. A write to one of them then goes through a view
of that storage, and the whole view is copied before it and copied back after it.

## Evidence
The `*_scatter` nodes that are left in the post-grad graph, the elements of their tensor and those
that they change, and the tensors of that size in the generated code. The cost is the part of the
kernel's instructions that are in loops through the whole tensor, less what has to be written, and
of the page faults that eager does not have those of these tensors.

## What to do
A tensor that outlives the call: assign to the tensor itself (`book[:, i] = x`), write by
`index_copy_` with an index tensor, or return the part and write it outside of compiled code. Inputs
that are views of one storage: give each its own memory once, or pass the whole and take the views
inside. A new tensor that is filled in a loop: collect the parts in a list and `torch.stack` them.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that such writes must take.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_faq.html
- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_copy_.html
- torch/_inductor/fx_passes/reinplace.py
- torch/_functorch/_aot_autograd/runtime_wrappers.py (merge_view_inputs)
- https://dev-discuss.pytorch.org/t/functionalization-in-pytorch-everything-you-wanted-to-know/965
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._gain import at_first, is_starved, locations
from traceview.rules._starts import of_keys
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Cost,
    Evidence,
    Finding,
    Row,
    Snippet,
    Tables,
    about,
    first_rank,
    from_row,
    milliseconds,
    percent,
    plural,
    rows,
    severity_of_loss,
    step_ms,
)

CODE = "TV430"
NEEDS = frozenset({"partial_writes", "step_counts:eager"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion", "copies_added", "page_faults"})

#: Less of a step is not worth a change of the code, and within what a profile is wrong by.
LEAST_SHARE = 0.10
_COST = "of the kernels, the loops through the whole tensor less what is written"
_OF_BYTES = "generated kernels that copy the whole tensor, by the bytes that they move"
_OF_PAGES = "; and new memory for tensors as large as the whole"


def _ms(row: Row) -> float:
    return (row["slower_ms"] or 0.0) + (row["pages_ms"] or 0.0)


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding of each kind: shared storage, other inputs, new tensors; at the slowest's."""
    step = step_ms(tables, "compiled")
    known = [row for row in first_rank(rows(tables, "partial_writes")) if _ms(row)]
    for kind in _KINDS:
        found = sorted((row for row in known if _kind(row) == kind), key=lambda row: -_ms(row))
        ms = sum(map(_ms, found))
        if not step or not found or ms < least_share * step:
            continue
        slowest = found[0]
        # Equal layers run one kernel in turn.
        each = list({row["kernel_name"]: row for row in reversed(found)}.values())[::-1]
        on_device = slowest["clock"] == "device"
        if on_device and is_starved(tables):
            continue
        cost = _OF_BYTES if on_device else _COST
        places = locations(text for row in found for text in row["user_lines"] or ())
        where = at_first(*places)
        yield Finding(
            code=CODE,
            rule="ind-partial-write",
            severity=severity_of_loss(tables, ms),
            title=f"{_title(slowest, where)}: {milliseconds(ms)}, {percent(ms / step)} of the step",
            explanation=_EXPLAINED[kind]
            + (_STORED.format(slowest["copies"]) if slowest["pages_ms"] else ""),
            cost=Cost(ms, None, cost + (_OF_PAGES if any(r["pages_ms"] for r in found) else "")),
            confidence="derived",
            location=places[0] if places else None,
            about=about(*of_keys(tables, {row["compile_key"] for row in found})),
            evidence=tuple(_evidence(row) for row in each[:MOST_EVIDENCE]),
            what_to_do=_REMEDIES[kind],
            snippet=_SNIPPETS[kind],
            also_at=tuple(places[1:4]),
        )


_STORED = (
    " What is read again before the next write is stored in a tensor as large as the whole: "
    "generated code makes {}, in memory that eager does not need."
)
_KINDS = ("shared", "input", "new")
_EXPLAINED = {
    "shared": (
        "Inputs that are views of one storage are one input to the graph, since AOTAutograd can't "
        "know whether they overlap. The write then goes through a view of that storage, and "
        "Inductor can't turn it back into a write in place: all of it is copied, and copied back. "
        "Eager writes the part alone."
    ),
    "input": (
        "In the graph the write makes a new tensor, and Inductor could not turn it back into a "
        "write in place. Generated code reads and writes the whole tensor and copies it back to "
        "the input. Eager writes the part alone."
    ),
    "new": (
        "In the graph each write makes a new tensor of the one before. Inductor fuses them into "
        "loops through the whole tensor, which choose between old and new for each write and "
        "element; a GPU reads and writes all of it in each kernel."
    ),
}
_REMEDIES = {
    "shared": (
        "Give each input its own memory (`.clone()` the views once, where they are made), or pass "
        "the whole tensor and take the views inside the compiled function."
    ),
    "input": (
        "Assign to the tensor itself, not through a view of it such as `.t()`, and without `+=` or "
        "`scatter_`; or use index_copy_ with an index tensor. Inductor then writes in place. "
        "Otherwise return the part and write it outside of compiled code."
    ),
    "new": (
        "Collect the parts in a list, read earlier ones from there, and torch.stack them "
        "(torch.cat for slices)."
    ),
}
_SNIPPETS = {
    "shared": Snippet(
        "python", "keys, values = (part.clone() for part in cache.unbind(3))  # once, outside"
    ),
    "input": Snippet(
        "python",
        "book[:, i] = x                           # not book.t()[i] = x\n"
        "book[:, i] = book[:, i] + x              # not book[:, i] += x\n"
        "book.index_copy_(1, index, x[:, None])   # index: a tensor of one int64",
    ),
    "new": Snippet(
        "python",
        "parts = []\n"
        "for t in range(steps):\n"
        "    state = advance(state, x[:, t])\n"
        "    parts.append(state)  # not out[:, t] = state\n"
        "out = torch.stack(parts, 1)",
    ),
}


def _kind(row: Row) -> str:
    if not row["to_input"]:
        return "new"
    return "shared" if row["merged"] else "input"


def _title(row: Row, where: str) -> str:
    if _kind(row) == "shared":
        return (
            f"The write{where} to one of several views of one storage copies all "
            f"{row['elements']:,} elements to change {row['changed']:,}"
        )
    if row["to_input"]:
        return (
            f"The write{where} goes through all {row['elements']:,} elements of a tensor to change "
            f"{row['changed']:,}"
        )
    return (
        f"{row['writes']:,} writes in a row{where} go through all {row['elements']:,} elements of "
        "a tensor again and again"
    )


def _evidence(row: Row) -> Evidence:
    back = ", copied back to an input" if row["to_input"] else ""
    of_it = "of its instructions are in loops through all of it"
    if row["clock"] == "device":
        of_it = "of the bytes that it moves are that tensor, read and written"
    took = "" if row["ms"] is None else f": {milliseconds(row['ms'])} of a step"
    if row["copies"]:
        took += f"; {plural(row['copies'], 'further tensor')} of that size in the generated code"
        took += f", {milliseconds(row['pages_ms'])} of page faults" if row["pages_ms"] else ""
    return from_row(
        f"{row['kernel_name']}: {plural(row['writes'], 'scatter')} onto a tensor of "
        f"{row['elements']:,} elements, of which {row['changed']:,} change{back}; "
        f"{percent(row['share'])} {of_it}{took}",
        "partial_writes",
        row,
    )
