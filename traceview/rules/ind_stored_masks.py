"""
## What it finds
Boolean masks that compiled code on a CPU stores or reads: one kept for the backward, a comparison
that the compiled function returns, a mask that it is given.

## Why it costs
torch's vector code keeps a comparison in a register of full-width lanes. To store it as bytes, or
to read it, torch goes through its elements one at a time: some 7 ns each to store and 3 ns to read
(torch 2.13, AVX-512), where a kernel of eager mode takes 0.3 ns. The backward of `amax` and `amin`
asks which elements are the largest, and compiled code stores that for all of them.

## Evidence
The kernel's source: in a loop with vectors, `VecMask::store` to a pointer to bool, or
`VecMask::from` one. The cost is what the kernel takes longer than the eager operators that it
replaced, and no more than that part of its instructions; where it is no slower than those, that
part of its time, if it is a fifth of a step. Where the values are made, and for what they are
stored, is read from AOTAutograd's graph.

## What to do
`x.amax(dim)` in training: `x.max(dim).values` keeps one index for each result (of equal values one
gets the gradient, where `amax` shares it). A comparison that is returned: return the values and
compare in eager, or return float32, which has vector code. A mask that is given: pass it as
float32.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these kernels must lose.

## References
- ATen/cpu/vec/vec_mask.h, `VecMask::store` and `VecMask::from`
- torch/_inductor/codegen/cpp.py, `CppVecKernel.store`
- https://docs.pytorch.org/docs/stable/generated/torch.amax.html
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.slow_loops import BACKWARD, RESULT
from traceview.rules._slow_loops import MUCH, kernels, slow
from traceview.rules.kit import (
    Finding,
    Row,
    Snippet,
    Tables,
    milliseconds,
    outcome,
    short,
)
from traceview.torchtext import cpp_loops

CODE = "TV450"
NEEDS = frozenset({"slow_loops", "step_counts:eager"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion"})

#: Less of a step is not worth a change of the code, and within what a profile is wrong by.
LEAST_SHARE = 0.05
_EXTREMES = {"amax": "max", "amin": "min"}
_DISABLED = Snippet("python", "f = torch.compiler.disable(f)  # f: the function that calls them")
_RETURNED = Snippet("python", "return (x > threshold).float()  # or return x, and compare outside")
_GIVEN = Snippet("python", "mask = mask.float()  # once, before the first step")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all such kernels, at the line of the slowest one's values."""
    found = slow(tables, {cpp_loops.MASKS}, least_share)
    found = found or slow(tables, {cpp_loops.MASKS}, MUCH, cost="converted_ms")
    if found is None:
        return
    slowest = found.rows[0]
    count, places = slowest["evaluations"], found.places
    what_to_do, snippet = _advice(slowest)
    # Where nothing but eager would spare it, and compiling does not hurt, nothing is wrong.
    is_known = snippet is not _DISABLED or outcome(tables) == "hurt"
    stored = cpp_loops.STORED in slowest["functions"]
    verb = "stored" if stored else "read"
    whose = f"The mask of {slowest['reader']}" if slowest["reader"] else "A mask"
    where = f" at {short(places[0])}" if places else ""
    size = f" ({count:,} bools)" if count else ""
    kept = {BACKWARD: " for the backward", RESULT: " as a result"}.get(slowest["kept"], "")
    yield Finding(
        code=CODE,
        rule="ind-stored-masks",
        severity=found.severity(tables) if is_known else "info",
        title=(
            f"{whose}{where}{size} is {verb}{kept if stored else ''} one element at a time: "
            f"{found.loss(tables)}"
        ),
        explanation=(
            f"A step spends {milliseconds(found.ms)} in {kernels(found)}. They compare in vectors, "
            "but torch converts a mask to bytes and back one element at a time."
        ),
        cost=found.cost,
        confidence="derived",
        location=places[0] if places else None,
        about=found.about,
        evidence=found.evidence("one at a time"),
        what_to_do=what_to_do,
        snippet=snippet,
        also_at=tuple(places[1:4]),
        weighs=found.weighs(tables),
    )


def _advice(slowest: Row) -> tuple[str, Snippet]:
    """What to do, and what to paste."""
    if (name := slowest["reader"]) in _EXTREMES:
        plain = _EXTREMES[name]
        return (
            f"Use {plain}(dim).values, whose backward needs one index for each result. Of equal "
            f"values one then gets the gradient, where {name} shares it.",
            Snippet("python", f"y = x.{plain}(dim=1).values  # not x.{name}(dim=1)"),
        )
    if cpp_loops.STORED not in slowest["functions"]:
        return "Pass the mask as float32, converted once, and multiply by it.", _GIVEN
    if slowest["kept"] == RESULT:
        return (
            "Return the values and compare them outside of compiled code; or return float32 "
            "numbers, 0 and 1, which have vector code.",
            _RETURNED,
        )
    return "Leave these lines in eager, and compare: the rest is compiled around them.", _DISABLED
