"""
## What it finds
A generated C++ kernel that computes functions such as tanh or exp for one element at a time and is
slower than the eager operators that it replaced.

## Why it costs
ATen's kernels compute such a function for 8 or 16 elements at once. Inductor's do so too, unless
something in the loop stops it: an index that wraps around (`torch.roll`, `%`), runs backwards
(`flip`) or turns back at an edge (`F.pad` with reflection or replication), an innermost dimension
of a few elements (the channels of a group, where GroupNorm gets channels last) or one that is read
with a stride, an index that was loaded or calculated (a look-up, `grid_sample`), values of int16 or
an unsigned type, or a function without vector code (erfinv, Bessel functions).
The function is then called for each element, which takes up to ten times as long and outweighs what
fusion saves. `torch._inductor.config.cpp.simdlen` at a width that no instructions of the CPU have,
such as 0, and `ATEN_CPU_CAPABILITY=default` leave all loops without vectors.

## Evidence
The kernel's source: a loop without vectors that calls the function, and what is in its index. The
cost is what the kernel takes longer than the eager operators of the same group, which is measured,
and no more than these calls are of the kernel's instructions. A kernel in scalar code that is no
slower than eager isn't reported, unless its innermost loop is one vector of a few elements and full
vectors would spare a fifth of the step, by the instructions of its loops. A setting is the cause
where it was changed and no kernel of the same graph has a vector. Information where compiling
helped as a whole.

## What to do
`torch.roll` along the last dimension: concatenate the edge to the tensor and take slices, which
Inductor vectorizes; or roll another dimension. A flip or a reflected edge: pad before compiled
code, or set `torch._inductor.config.cpp.enable_tiling_heuristics = False`, which has Inductor
write vectors all the same. A last dimension of 2 or 3: put it first and make the tensor contiguous.
A function without vector code: keep ATen's kernel by a custom operator around that call.
`grid_sample`: leave it in eager. No vector code at all: leave `cpp.simdlen` at None, or see whether
Inductor found the CPU's vector instructions.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that these kernels must lose.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- https://docs.pytorch.org/docs/stable/library.html
- torch/_inductor/codegen/cpp.py, `TilingSelect`
- torch/_inductor/cpu_vec_isa.py, `pick_vec_isa`
- https://github.com/pytorch/pytorch/pull/122961
- https://github.com/pytorch/pytorch/issues/93552
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from traceview.rules._gain import at_first
from traceview.rules._slow_loops import MUCH, Slow, kernels, slow
from traceview.rules._starts import options, setting_line
from traceview.rules.kit import (
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    compile_call,
    first,
    first_rank,
    milliseconds,
    percent,
    rows,
    short,
    step_ms,
)
from traceview.torchtext import cpp_loops

CODE = "TV406"
NEEDS = frozenset({"slow_loops", "step_counts:eager"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"fusion"})

#: Less of a step is not worth a change of the code, and within what a profile is wrong by.
LEAST_SHARE = 0.05
_SLICES = Snippet(
    "python",
    "# torch.roll(x, 1, -1) and torch.roll(x, -1, -1) as slices of one tensor:\n"
    "wide = torch.cat((x[..., -1:], x, x[..., :1]), -1)\n"
    "left, right = wide[..., :-2], wide[..., 2:]",
)
_FIRST = Snippet("python", "x = x.movedim(-1, 0).contiguous()")
_OPERATOR = Snippet(
    "python",
    '@torch.library.custom_op("mylib::{name}", mutates_args=())\n'
    "def {name}(x: torch.Tensor) -> torch.Tensor:\n"
    "    return torch.special.{name}(x)\n\n\n"
    "@{name}.register_fake\n"
    "def _(x):\n"
    "    return torch.empty_like(x)",
)
_DISABLED = Snippet(
    "python",
    "@torch.compiler.disable\ndef sample(x, grid):\n    return F.grid_sample(x, grid)",
)
_BY_HAND = (
    "Leave the sampling in eager, where ATen has vector code for it, and compare: the rest is "
    "compiled around it, in vectors."
)
_ALL_THE_SAME = Snippet("python", "torch._inductor.config.cpp.enable_tiling_heuristics = False")
#: Channels last makes the channels of a group the innermost loop.
_NORMS = ("native_group_norm",)
_CONTIGUOUS = (
    "GroupNorm of a tensor in channels last goes through the {length} channels of a group in its "
    "innermost loop: make the tensor contiguous before it enters compiled code.",
    Snippet("python", "images = images.contiguous()  # before the compiled call"),
)
_TWO_ARGUMENTS = frozenset({"igamma", "igammac", "polygamma"})
#: Reason of ``slow_loops`` → why in a few words, what to do, what to paste.
_REASONS: dict[str, tuple[str, str, Snippet | None]] = {
    cpp_loops.WRAPPED: (
        "an index that wraps around (roll, %, a division) is not vectorized",
        "Write the roll as slices of a tensor with its edges concatenated, which is vectorized, or "
        "roll a dimension other than the last.",
        _SLICES,
    ),
    cpp_loops.FEW_ELEMENTS: (
        "a last dimension of {length} elements does not fill a vector",
        "Put the dimension of {length} first, so that the long one is the last and contiguous, "
        "before the tensor enters compiled code.",
        _FIRST,
    ),
    cpp_loops.STRIDED: (
        "the loop reads with a stride and is not vectorized",
        "Make the dimension of the loop the last and contiguous one before the tensor enters "
        "compiled code.",
        None,
    ),
    cpp_loops.LOADED_INDEX: (
        "an index that is read from a tensor is not vectorized",
        "Compute the function before or after the look-up, on whole rows, in a compiled function "
        "of its own.",
        None,
    ),
    cpp_loops.REVERSED: (
        "the loop reads backwards or turns back at an edge, and Inductor leaves it without vectors",
        "Inductor estimates that vectors don't pay where few of the reads are contiguous: let it "
        "take them all the same, and compare. Or pad or flip in eager, before the compiled "
        "function is called.",
        _ALL_THE_SAME,
    ),
    cpp_loops.NO_VECTOR_FORM: (
        "Inductor has no vector code for it",
        "A custom operator around this call keeps ATen's kernel, without a graph break; it needs "
        "register_autograd where gradients flow.",
        _OPERATOR,
    ),
    cpp_loops.OTHER_DTYPE: (
        "Inductor has no vectors of int16 and unsigned types, which the loop reads or writes",
        "Convert before the call and after it, in eager: compiled code then has float32 or int32 "
        "alone.",
        Snippet("python", "samples = compiled(samples.float()).to(torch.int16)"),
    ),
    cpp_loops.NOT_VECTORIZED: (
        "the loop has no vector code, though its index allows it",
        "Inductor estimates that vectors don't pay where few of the reads are contiguous: let it "
        "take them all the same, and compare. Where no kernel has vectors, see which "
        "instructions it found (torch._inductor.cpu_vec_isa.pick_vec_isa()): with "
        "INVALID_VEC_ISA its test program did not compile or run.",
        _ALL_THE_SAME,
    ),
}
_REMEDIES = dict.fromkeys(
    (cpp_loops.REVERSED, cpp_loops.NOT_VECTORIZED),
    ("torch._inductor.config.cpp.enable_tiling_heuristics=False",),
)
_SIMDLEN, _CAPABILITY = "cpp.simdlen", "ATEN_CPU_CAPABILITY"
#: Bits of a vector; a CPU may lack those of one width. No other value matches any instructions.
_WIDTHS = ("128", "256", "512")
#: A vector's type; scalar code has none.
_VECTOR = "at::vec::"


class _Advice(NamedTuple):
    """Why a loop is slow, in a few words, what to do, what to paste, and the places then named."""

    why: str
    what_to_do: str
    snippet: Snippet | None
    places: list[Location]

    @classmethod
    def of(cls, reason: str, row: Row, places: list[Location]) -> _Advice:
        """By a row of ``slow_loops``: what makes the loop so may be known."""
        (why, what_to_do, snippet), reader = _REASONS[reason], row["reader"]
        if reader in _NORMS:
            what_to_do, snippet = _CONTIGUOUS
        elif reader:
            reads = (
                "reads backwards or turns back at an edge, and Inductor leaves that without vectors"
                if reason == cpp_loops.REVERSED
                else "reads at places that are calculated"
            )
            why = f"{reader} at {short(places[0])} {reads}"
            places = places[1:] or places
            if reader.startswith("grid_sampler"):
                what_to_do, snippet = _BY_HAND, _DISABLED
        length = row["length"]
        return cls(why.format(length=length), what_to_do.format(length=length), snippet, places)


class _Setting(NamedTuple):
    """A setting of the user's that decides which vector instructions Inductor uses."""

    name: str
    value: str
    place: Location | None
    source: str

    @classmethod
    def of(cls, tables: Tables) -> _Setting | None:
        """As ``pick_vec_isa`` reads them: the variable only where no width is set."""
        for region in first_rank(rows(tables, "regions")):
            if (width := options(region).get(_SIMDLEN)) is not None:
                return cls(_SIMDLEN, str(width), compile_call(region), "regions")
        if row := first(tables, "environment", section="inductor_config", name=_SIMDLEN):
            return cls(_SIMDLEN, row["value"], setting_line(tables, _SIMDLEN), "environment")
        row = first(tables, "environment", section="env", name=_CAPABILITY)
        if row and row["value"] == "default":
            return cls(_CAPABILITY, "default", setting_line(tables, _CAPABILITY), "environment")
        return None


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding for a setting that leaves all loops without vectors, else one a reason."""
    by_setting: set[str] = set()
    if (setting := _Setting.of(tables)) is not None:
        without = {cpp_loops.NOT_VECTORIZED}
        if setting.value not in _WIDTHS:
            without = _REASONS.keys() - {cpp_loops.NO_VECTOR_FORM}
        found = slow(tables, without, least_share)
        if found is not None and _has_no_vectors(tables, found):
            by_setting = without
            yield _left_without(tables, found, setting)
    for reason in _REASONS:
        if reason in by_setting:
            continue
        found = slow(tables, {reason}, least_share)
        if found is None:
            if reason == cpp_loops.FEW_ELEMENTS:
                yield from _unfilled(tables)
            continue
        slowest, names = found.rows[0], found.functions
        why, what_to_do, snippet, places = _Advice.of(reason, slowest, found.places)
        where = at_first(*places)
        name = slowest["functions"][0]
        verb = "is computed" if names == name else "are computed"
        pasted = snippet and Snippet(snippet.language, snippet.text.replace("{name}", name))
        yield Finding(
            code=CODE,
            rule="ind-scalar-loop",
            severity=found.severity(tables),
            title=(f"{names}{where} {verb} one element at a time, {found.loss(tables)}: {why}"),
            explanation=(
                f"A step spends {milliseconds(found.ms)} in {kernels(found)}. ATen computes "
                f"{names} for several elements at once; the generated loop "
                f"{'takes' if name == cpp_loops.ARITHMETIC else 'calls the function for'} each "
                "alone."
            ),
            cost=found.cost,
            confidence="derived",
            location=found.places[0] if found.places else None,
            about=found.about,
            evidence=found.evidence("one at a time"),
            what_to_do=what_to_do,
            snippet=None if name in _TWO_ARGUMENTS else pasted,
            remedy=_REMEDIES.get(reason, ()),
            also_at=tuple(found.places[1:4]),
            weighs=found.weighs(tables),
        )


def _unfilled(tables: Tables) -> Iterator[Finding]:
    """Vectors that hold a few elements only, where that costs much, though no more than eager."""
    found = slow(tables, {cpp_loops.FEW_ELEMENTS}, MUCH, cost="unfilled_ms")
    if found is None:
        return
    length = found.rows[0]["length"]
    advice = _Advice.of(cpp_loops.FEW_ELEMENTS, found.rows[0], found.places)
    yield Finding(
        code=CODE,
        rule="ind-scalar-loop",
        severity="info",
        title=(
            f"A last dimension of {length} elements{at_first(*found.places)} does not fill a "
            f"vector: {found.loss(tables)}"
        ),
        explanation=(
            f"A step spends {milliseconds(found.ms)} in {kernels(found)}, whose innermost loop is "
            f"one vector with {length} elements in it."
        ),
        cost=found.cost,
        confidence="heuristic",
        location=found.places[0] if found.places else None,
        about=found.about,
        evidence=found.evidence("one at a time"),
        what_to_do=advice.what_to_do,
        snippet=advice.snippet,
        also_at=tuple(found.places[1:4]),
        weighs=True,
    )


def _has_no_vectors(tables: Tables, found: Slow) -> bool:
    """Whether no kernel has any of the compiles that ``found`` is about; not so if not known."""
    keys = {row["compile_key"] for row in found.rows}
    kernels = [row for row in rows(tables, "generated_kernels") if row["compile_key"] in keys]
    sources = [row["source_code"] for row in kernels if row["source_code"]]
    return bool(sources) and not any(_VECTOR in source for source in sources)


def _left_without(tables: Tables, found: Slow, setting: _Setting) -> Finding:
    name, value, place, source = setting
    at = f" ({short(place)})" if place else ""
    share = percent(found.lost_ms / (step_ms(tables, "compiled") or 1.0))
    verb = "is computed" if found.functions == found.rows[0]["functions"][0] else "are computed"
    is_config = name == _SIMDLEN
    where = "torch._inductor.config." if is_config else ""
    # What torch.compile's own options set stays set whatever the configuration is.
    tried = is_config and source == "environment"
    return Finding(
        code=CODE,
        rule="ind-scalar-loop",
        severity=found.severity(tables),
        title=(
            f"{name} = {value}{at} leaves generated code without vectors: {found.functions} {verb} "
            f"one element at a time, {milliseconds(found.lost_ms)} slower than eager ({share} of "
            "the step)"
        ),
        explanation=(
            f"A step spends {milliseconds(found.ms)} in {kernels(found)}. With this value Inductor "
            "picks no vector instructions of the CPU, and writes every loop in scalar code."
        ),
        cost=found.cost,
        confidence="derived",
        location=place or next(iter(found.places), None),
        about=found.about,
        evidence=(
            Evidence(f"{where}{name}: {value}", source),
            Evidence("no generated kernel of these graphs has a vector", "generated_kernels"),
            *found.evidence("one at a time"),
        ),
        what_to_do=(
            "Leave it at None: Inductor then takes the widest vectors that the CPU has."
            if is_config
            else "Unset it: ATen and Inductor then take the widest vectors that the CPU has."
        ),
        snippet=Snippet("python", f"{where}{name} = None") if tried else None,
        remedy=(f"{where}{name}=None",) if tried else (),
        also_at=tuple(found.places[:3]),
    )
