"""
## What it finds
A generated kernel that computes a function such as pow, sin or erf several times for the same
value: for each shift of `torch.roll`, for each row of a broadcast, for each look-up in a computed
table, or, on a GPU, all parts of a `torch.cat` at each of its elements. Either it is slower than
the eager operators that it replaced, or the repeated evaluations take much of the compiled step.

## Why it costs
Inductor writes what computes a value into every loop that uses it, to save the memory traffic of a
tensor in between. A value that is broadcast is then computed again for every row, one that two
loops use is computed in both, and one of a table that is indexed (`table[codes]`, an embedding) for
every index. An addition costs nothing there; a function costs more than the traffic. On a CPU
Inductor keeps results of exp, log, tanh and sigmoid that are used again, and of long expressions,
but no others.

## Evidence
The kernel's source: evaluations of the function in its loops, and how many different values there
are among them, from what the loads' indices name and the range that a loaded index is checked for.
The cost is what the kernel takes longer than the eager operators of the same group, which is
measured, and no more than the eager operator takes for as many values. Where the kernel is faster
than they are, it is what the eager operator takes for the repeated values, and at most their part
of the kernel's instructions; on a GPU, where arithmetic mostly hides behind memory, also no more
than what the kernel takes longer than its bytes do. Information where compiling helped as a whole;
ranked by its cost all the same where that is a fifth of the step.

## What to do
`realize_opcount_threshold` 0 in the options of `torch.compile` makes Inductor store every result
that is used again. Other fusions may get lost with it, so compare. If the value is the same in
every step, compute it once outside of compiled code. A table that is indexed: compute it in a
compiled function of its own and pass the result in. What a pooling window reads is computed for
each window that holds it, whatever the options: leave the pooling in eager, which then reads a
tensor. A `torch.cat` of up to eight parts is one kernel that computes each part for every element
and keeps one: compute all parts by one broadcast operation instead. (`max_pointwise_cat_inputs` 0
changed nothing with torch 2.11.)

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these kernels must lose to eager.
- `least_repeated`: part of the step that repeated evaluations must take where nothing is lost.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- torch/_inductor/config.py, `realize_opcount_threshold`
- torch/_inductor/ir.py, `should_realize_on_reuse`
- torch/_inductor/lowering.py, `pointwise_cat`
- https://github.com/pytorch/pytorch/issues/93552
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.slow_loops import RECOMPUTED
from traceview.rules._gain import at_first, location
from traceview.rules._slow_loops import kernels, slow
from traceview.rules.kit import (
    Finding,
    Snippet,
    Tables,
    milliseconds,
    rows,
    short,
)
from traceview.words.numbers import count

CODE = "TV415"
NEEDS = frozenset({"slow_loops", "step_counts:eager"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion", "library_choice"})

#: Less of a step is not worth an option, and within what a profile is wrong by.
LEAST_SHARE = 0.05
#: What is repeated is estimated, as the most that it can be.
LEAST_REPEATED = 0.20
_STORE = "torch._inductor.config.realize_opcount_threshold=0"
_WHERE = {
    False: "each loop that uses its result, and each row of a broadcast",
    True: "the loop that looks up its results: each look-up computes the value that it reads",
}
_USED_AGAIN = (
    "Make Inductor store results that are used again, and compare. If the value is the same in "
    "every step, compute it once outside of compiled code."
)
_LOOKED_UP = (
    "Compute what is looked up in a compiled function of its own and pass the result in, which "
    "stores it once. If it is the same in every step, compute it before the loop."
)
_POOLED = (
    "Leave the pooling in eager: then what its windows read is stored once. Options of Inductor do "
    "not change this."
)
_JOINED = (
    "Compute all parts at once, by one broadcast operation whose result needs no torch.cat; or "
    "return the parts, and join them in eager."
)
_AT_ONCE = Snippet(
    "python",
    "shapes = torch.tensor([2.1, 2.8], device=x.device).unsqueeze(-1)\n"
    "y = torch.pow(x.unsqueeze(-2), shapes).flatten(-2)",
)
_POOL_APART = Snippet("python", "pool = torch.compiler.disable(F.max_pool2d)")
_STORED = Snippet("python", 'torch.compile(…, options={"realize_opcount_threshold": 0})')
_OF_ITS_OWN = Snippet(
    "python",
    "table = torch.compile(make_table)(weights)  # stored once\n"
    "y = torch.compile(look_up)(table, index)",
)


def check(
    tables: Tables, *, least_share: float = LEAST_SHARE, least_repeated: float = LEAST_REPEATED
) -> Iterator[Finding]:
    """At most one finding: all such kernels together, at the slowest one's line."""
    found = slow(tables, {RECOMPUTED}, least_share)
    found = found or slow(tables, {RECOMPUTED}, least_repeated, cost="repeated_ms")
    if found is None:
        return
    where = at_first(*found.places)
    names, slowest = found.functions, found.rows[0]
    # Inductor puts what a pooling reads into its loop, however often that is (torch/_inductor/
    # lowering.py): only what has several inputs is stored.
    pooled = any(
        "pool" in op
        for row in rows(
            tables,
            "generated_kernels",
            compile_key=slowest["compile_key"],
            kernel_name=slowest["kernel_name"],
        )
        for op in row["fused_ops"] or ()
    )
    what_to_do, snippet = _USED_AGAIN, _STORED
    if slowest["looked_up"]:
        what_to_do, snippet = _LOOKED_UP, _OF_ITS_OWN
    if slowest["parts"]:
        what_to_do, snippet = _JOINED, _AT_ONCE
    if pooled:
        what_to_do, snippet = _POOLED, _POOL_APART
    where_to = _WHERE[bool(slowest["looked_up"])]
    if slowest["parts"]:
        where_to = "one kernel with the other parts of a torch.cat, for all its elements"
    reader = slowest["reader_line"] and location(slowest["reader_line"])
    reads = f", in the look-ups of {slowest['reader']} at {short(reader)}" if reader else ""
    verb = "is computed" if names == slowest["functions"][0] else "are computed"
    yield Finding(
        code=CODE,
        rule="ind-recomputed",
        severity=found.severity(tables),
        title=(
            f"{names}{where} {verb} {count(slowest['evaluations'] / slowest['distinct'])} times "
            f"for each value{reads}, {found.loss(tables)}"
        ),
        explanation=(
            f"A step spends {milliseconds(found.ms)} in {kernels(found)}. Inductor puts the "
            f"computation into {where_to}, instead of storing it once."
        ),
        cost=found.cost,
        confidence="derived",
        location=found.places[0] if found.places else None,
        about=found.about,
        evidence=found.evidence("for {distinct:,} different values"),
        what_to_do=what_to_do,
        snippet=snippet,
        remedy=() if pooled or slowest["parts"] else (_STORE,),
        also_at=tuple(found.places[1:4]),
        weighs=found.weighs(tables),
    )
