"""
## What it finds
Compiled graphs that spend most of their time in operators that Inductor has no code for: a sort, an
FFT, arithmetic on complex numbers, or a whole layer that torch's own fast path runs as one
operator.

## Why it costs
Such a fallback runs ATen's kernel, the same as in eager. Nothing fuses with it, and what it reads
and writes goes through memory. Products, convolutions and attention are libraries' on purpose and
are not meant.

## Evidence
The generated code calls `torch.ops.aten.…` where it could not generate a kernel, and these calls
take at least half of the compiled step's busy time.

Information: compiling cannot help there, and need not hurt. A warning where most of that time is
arithmetic on complex numbers and compiled steps are slower than eager ones.

## What to do
Complex numbers (rotary embeddings): the same with real ones, cosine and sine apart, which fuses
with the work around it; alone it is fastest in eager. The fast path
of nn.TransformerEncoderLayer and nn.MultiheadAttention:
`torch.backends.mha.set_fastpath_enabled(False)`, so that Inductor sees the operators inside; then
compare. Others: another formulation, where there is one.

## Settings
- `least_share`: part of the busy time in such operators, 0 to 1, from which it is said.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_faq.html
- https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html
- torch/_inductor/lowering.py, `make_fallback`, `unsupported_input_tensor`
- torch/nn/modules/transformer.py
- https://github.com/pytorch/pytorch/issues/125718
- https://github.com/pytorch/torchtitan/issues/15
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from traceview.parse.kineto.categories import operator_category
from traceview.rules import _costs, _places
from traceview.rules._evidence import MOST_EVIDENCE, from_row
from traceview.rules._rows import first_rank, frame, rows
from traceview.rules.finding import Cost, Evidence, Finding, Location, Severity, Snippet
from traceview.tables import Tables
from traceview.torchtext import marks
from traceview.torchtext.fx import op_name, read_graph
from traceview.words.numbers import milliseconds, percent
from traceview.words.text import shorten

CODE = "TV402"
NEEDS = frozenset({"kernel_calls", "matched_kernels", "cpu_ops", "accounting", "graphs"})
EXPLAINS = frozenset({"library_choice"})

#: Below half, something else is the step's main cost.
LEAST_SHARE = 0.50
#: Views and the like, which are called beside them and take no time.
LEAST_OF_ALL = 0.05
#: The library's own, on purpose.
_LIBRARY = frozenset({"gemm", "convolution", "attention", "communication"})
_FAST_PATH = frozenset({"aten._transformer_encoder_layer_fwd", "aten._native_multi_head_attention"})
_FFT = "aten._fft_"
_ELSE = {
    "aten._cdist_forward": "Euclidean distances can be a product: |x|² + |y|² - 2·x·yᵀ.",
    "aten.multinomial": "Samples can be drawn by argmax(p / torch.empty_like(p).exponential_(1)).",
    "aten._embedding_bag": "An embedding followed by a sum or mean has generated code.",
    "aten._embedding_bag_forward_only": "An embedding and a sum or mean have generated code.",
    "aten.bincount": "Counts can be a scatter_add or a sum over a comparison.",
    "aten.histc": "Counts can be a scatter_add of bucketized values.",
}


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: the operators together, at the dearest one's line."""
    fallbacks = _fallbacks(tables)
    on_device = "device" in set(frame(tables, "matched_kernels", stance="compiled")["clock"])
    dear = (_on_device if on_device else _on_host)(tables, fallbacks)
    accounts = first_rank(rows(tables, "accounting", stance="compiled"))
    # On a host the operators that are known by name only are no busy time: a sort, an FFT.
    busy = sum(
        row["profiled_ms"] or 0.0
        for row in accounts
        if row["kind"] == "busy" or row["category"] == "other"
    )
    ms = float(dear["ms"].sum())
    if dear.is_empty() or not busy or ms < least_share * busy:
        return
    named = dear.filter(pl.col("ms") >= LEAST_OF_ALL * ms)
    yield _finding(tables, named, ms, min(1.0, ms / busy))


def _on_device(tables: Tables, fallbacks: dict[str, list[str]]) -> pl.DataFrame:
    """Kernels of the fallbacks: ``op``, ``file``, ``line``, ``ms`` of a step, dearest first."""
    own = pl.col("ops").list.filter(pl.element().is_in(sorted(fallbacks)))
    mine = frame(tables, "matched_kernels", stance="compiled").filter(
        pl.col("compile_id").is_not_null() & ~pl.col("category").str.starts_with("generated")
    )
    found = mine.with_columns(op=own.list.last()).drop_nulls("op")
    by_line = found.group_by("op", "file", "line", maintain_order=True).agg(pl.col("ms").sum())
    return by_line.sort("ms", descending=True, maintain_order=True)


def _on_host(tables: Tables, fallbacks: dict[str, list[str]]) -> pl.DataFrame:
    """The same of operators that generated code calls, with what they call themselves."""
    ops = frame(tables, "cpu_ops", stance="compiled").filter(pl.col("step").is_not_null())
    code = ops.filter(pl.col("name").str.starts_with(marks.GRAPH)).select(parent_id="op_id")
    called = ops.join(code.unique(), on="parent_id", how="semi").with_columns(
        op=pl.col("name").str.replace("::", ".", literal=True)
    )
    steps = max(1, ops["step"].n_unique())
    found = called.filter(pl.col("op").is_in(sorted(fallbacks))).group_by("op").agg(
        ms=pl.col("duration_ns").sum() / 1e6 / steps
    )  # fmt: skip
    places = [
        {"op": op, "file": file, "line": int(line)}
        for op, lines in fallbacks.items()
        for file, _, line in [next(iter(lines), "").rpartition(":")]
        if line.isdecimal()
    ]
    known = pl.DataFrame(places, {"op": pl.String, "file": pl.String, "line": pl.Int32})
    joined = found.join(known, on="op", how="left").select("op", "file", "line", "ms")
    return joined.sort("ms", "op", descending=[True, False])


def _fallbacks(tables: Tables) -> dict[str, list[str]]:
    """Operators that the generated code calls because it has none of its own, with their lines."""
    found: dict[str, list[str]] = {}
    for row in rows(tables, "kernel_calls", category="fallback"):
        op = op_name(row["kernel_name"] or "")
        if op.startswith("aten.") and operator_category(op.replace(".", "::")) not in _LIBRARY:
            found.setdefault(op, []).extend(row["user_lines"] or ())
    return found


def _finding(tables: Tables, dear: pl.DataFrame, ms: float, share: float) -> Finding:
    ops = list(dict.fromkeys(dear.get_column("op")))
    cause = _cause(tables, ops)
    places = [
        Location(file, line)
        for file, line in dear.select("file", "line").iter_rows()
        if file and line is not None
    ]
    severity = _severity(tables, cause)
    return Finding(
        code=CODE,
        rule="ind-extern-dominated",
        severity=severity,
        title=f"{percent(share)} of the busy time is {_named(ops)}, as in eager: {_SHORT[cause]}",
        explanation=(
            "Inductor generates no code for this, so ATen's kernels run and nothing fuses with "
            "them. Compiling can only shorten the rest."
        ),
        cost=_cost(tables, severity, ms),
        confidence="derived",
        location=places[0] if places else None,
        evidence=tuple(_proof(tables, dear, cause)),
        what_to_do=_remedy(cause, ops),
        snippet=_SNIPPETS[cause],
        also_at=tuple(dict.fromkeys(place for place in places[1:] if place != places[0]))[:3],
        weighs=True,
    )


def _cause(tables: Tables, ops: list[str]) -> str:
    if ops[0] in _FAST_PATH:
        return "fast path"
    made = {
        node.op
        for row in rows(tables, "graphs", kind="post_grad")
        for node in read_graph(row["text"] or "").operations
        if (node.dtype or "").startswith("complex")
    }
    # An FFT has complex results, and no real formulation that would be faster.
    of_fft = any(op.startswith(_FFT) for op in ops)
    return "complex" if ops[0] in made and not of_fft else "none"


def _severity(tables: Tables, cause: str) -> Severity:
    return "warning" if cause == "complex" and _costs.outcome(tables) == "hurt" else "info"


def _cost(tables: Tables, severity: Severity, ms: float) -> Cost:
    eager, compiled = (_costs.step_ms(tables, stance) for stance in ("eager", "compiled"))
    if severity == "warning" and eager and compiled:
        about = "compiled step less eager step; what generated code would save comes on top"
        return Cost(compiled - eager, None, about)
    return Cost(about=f"nothing against eager: {milliseconds(ms)} of a step run the same kernels")


_SHORT: dict[str, str] = {
    "fast path": "torch's fast path runs the layer as one operator",
    "complex": "Inductor has no code for complex numbers",
    "none": "Inductor has no code of its own for it",
}
_SNIPPETS: dict[str, Snippet | None] = {
    "fast path": Snippet("python", "torch.backends.mha.set_fastpath_enabled(False)"),
    "complex": Snippet(
        "python",
        "a, b = x.unflatten(-1, (-1, 2)).unbind(-1)\n"
        "y = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)",
    ),
    "none": None,
}


def _remedy(cause: str, ops: list[str]) -> str:
    if cause == "fast path":
        return (
            "Switch the fast path off before the first compiled call, so that Inductor sees the "
            "operators inside, and compare: on small inputs the fast path may be the faster one."
        )
    if cause == "complex":
        return (
            "With real numbers, cosine and sine as two tensors, it fuses with the work around it "
            "(results differ by rounding). Where there is none, it is fastest in eager: compile "
            "what is around it."
        )
    return " ".join(
        [
            "Nothing is wrong: expect no gain from compiling this part.",
            *(_ELSE[op] for op in ops if op in _ELSE),
        ]
    )


def _proof(tables: Tables, dear: pl.DataFrame, cause: str) -> Iterator[Evidence]:
    for op, file, line, ms in dear.head(MOST_EVIDENCE).iter_rows():
        at = f" at {_places.short(Location(file, line))}" if file and line is not None else ""
        yield Evidence(f"torch.ops.{op}{at}: {milliseconds(ms)} of a step", "kernel_calls")
    for row in rows(tables, "warnings", kind="complex_fallback")[:1] if cause == "complex" else []:
        yield from_row(shorten(row["message"]), "warnings", row)


def _named(ops: list[str]) -> str:
    return ops[0] if len(ops) == 1 else f"{ops[0]} and the like"
