"""
## What it finds
A tensor that is read slice by slice in an unrolled loop, `current[:, t]` for each `t`, or given out
so by a compiled function, and whose gradient is added up from tensors as large as the whole, one
for each slice.

## Why it costs
Each slice has a gradient of its own: zeros of the whole tensor's shape with that slice written into
them. The backward adds them all, which for T slices is T times the work of the tensor. Inductor
fuses the additions into a kernel that tests T indices at each element, and reads T gradients there,
where one is not zero. `current.unbind(1)` gives the same slices at once, and its gradient is one
`stack`. Slices that a compiled function gives out are views, which AOTAutograd makes again after
the graph: their backward runs in eager, and makes and adds those tensors one after the other.

## Evidence
Nodes `select_scatter` and `slice_scatter` onto zeros in a post-grad graph that are added together,
and generated kernels of that graph that test their indices and store the sum. The cost is these
kernels' time (of a C++ kernel, of the loops through the whole tensor), less what going through each
slice once takes. A kernel that only sums it up further, for the gradient of a smaller tensor, is
left out: the stack would have to be stored and read again, which may take as long. In eager it is
what autograd's `SelectBackward0` and `SliceBackward0` launch in compiled steps, where a compiled
function gives out as many views.

## What to do
Take the slices before the loop: `for x in current.unbind(1)`; ranges that don't overlap by `split`
or `chunk`; windows that do by `unfold`. Or pass the slices in, as a list. Where the tensor needs no
gradient, `detach()` it.

## Settings
- `least_slices`: slices of one tensor.
- `least_share`: part of the compiled step, 0 to 1, that these kernels must waste.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.unbind.html
- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.unfold.html
- torch/_functorch/_aot_autograd/runtime_wrappers.py, `gen_alias_from_base`
- torch/_decomp/decompositions.py, `select_backward` and `slice_backward`
- tools/autograd/derivatives.yaml, `unbind`
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

CODE = "TV446"
NEEDS = frozenset({"slice_gradients", "step_counts"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion"})

#: Fewer slices are little work, and often not those of a loop.
LEAST_SLICES = 8
#: Less of a step is hard to tell from noise.
LEAST_SHARE = 0.05
#: Of table ``slice_gradients``: what runs outside of generated code.
_IN_EAGER = ("SelectBackward0", "SliceBackward0")


def check(
    tables: Tables, *, least_slices: int = LEAST_SLICES, least_share: float = LEAST_SHARE
) -> Iterator[Finding]:
    """At most one finding: all such kernels, at the line of the slowest one's slices."""
    found = [
        row
        for row in first_rank(rows(tables, "slice_gradients"))
        if row["wasted_ms"] and row["slices"] >= least_slices
    ]
    found.sort(key=lambda row: -row["wasted_ms"])
    step = step_ms(tables, "compiled")
    wasted = sum(row["wasted_ms"] for row in found)
    saved, pace = paced(tables, wasted)
    # Where a host that launches them sets the pace, it has less to launch, too.
    saved = min(wasted, saved + sum(row["host_ms"] or 0.0 for row in found))
    if not found or not step or saved < least_share * step:
        return
    slowest, spent = found[0], sum(row["ms"] for row in found)
    places = locations(line for row in found for line in row["user_lines"] or ())
    at = at_first(*places)
    yield Finding(
        code=CODE,
        rule="ind-slice-gradients",
        severity=severity(tables, saved),
        title=(
            f"Gradients of {slowest['slices']:,} slices{at} are added over the whole tensor: "
            f"{milliseconds(saved)}, {percent(saved / step)} of the step"
        ),
        explanation=(
            f"Each slice has a gradient of its own, of {slowest['elements']:,} elements that are "
            "zero but for the slice. The backward adds them all"
            + (
                ", in eager: the compiled function gives the slices out, as views of one tensor."
                if slowest["kernel_name"] in _IN_EAGER
                else f": generated code tests {slowest['slices']:,} indices at each element."
            )
        ),
        cost=Cost(
            saved, None, f"of {milliseconds(spent)} in these kernels, all but one slice{pace}"
        ),
        confidence="derived",
        location=places[0] if places else None,
        about=about(*of_keys(tables, {row["compile_key"] for row in found})),
        evidence=tuple(
            from_row(
                f"{row['kernel_name']}: {milliseconds(row['profiled_ms'])} of a step, as profiled, "
                f"for {row['slices']:,} slices of {row['elements']:,} elements",
                "slice_gradients",
                row,
            )
            for row in found[:MOST_EVIDENCE]
        ),
        what_to_do=_SINGLE if slowest["single"] else _RANGES,
        snippet=Snippet(
            "python",
            f"for part in x.unbind({slowest['dim']}):  # not x[...] by its number"
            if slowest["single"]
            else f"for part in x.split(size, {slowest['dim']}):\n"
            f"for part in x.unfold({slowest['dim']}, size, step).unbind({slowest['dim']}):"
            "  # where they overlap; its elements are last",
        ),
        also_at=tuple(places[1:4]),
        weighs=True,
    )


_SINGLE = (
    "Take all slices before the loop by `unbind`, whose gradient is one stack, or pass them in as "
    "a list."
)
_RANGES = (
    "Take all parts before the loop by `split` or `chunk`, whose gradient is one concatenation, or "
    "pass them in as a list; windows that overlap by `unfold`."
)
