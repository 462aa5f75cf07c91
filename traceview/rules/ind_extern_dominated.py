"""
## What it finds
Compiled graphs that spend most of their time in operators that Inductor has no code for: a sort, an
FFT, arithmetic on complex numbers, or a whole layer that torch's own fast path runs as one
operator. And custom operators whose body is made of torch's operators, which it does have code for.

## Why it costs
Such a fallback runs ATen's kernel, the same as in eager. Nothing fuses with it, and what it reads
and writes goes through memory. Products, convolutions and attention run in libraries on purpose and
do not count. The body of a custom operator (`torch.library.custom_op`) is hidden from the compiler:
its operators run one after the other as in eager, however well they would fuse.

## Evidence
The generated code calls `torch.ops.aten.…` where it could not generate a kernel, and these calls
take at least half of the compiled step's busy time. Of custom operators that the code calls, the
profile shows torch's own memory-bound operators inside, with at least 20 % of that time.

Information: compiling cannot help there, and need not hurt. A warning where the operators inside
one custom operator take half of the busy time, or where most of that time is arithmetic on complex
numbers and compiled steps are slower than eager ones, or on a GPU fusing it would save much:
estimated from the bytes that its operators move separately and those that fused kernels need. And
where the operator is given other arguments than in eager and takes longer on a host: `eigvalsh`,
say, becomes an `eigh` with eigenvectors.

## What to do
Complex numbers: keep real and imaginary parts as two real tensors (`torch.view_as_real`, cosine and
sine for `exp`), which fuse with each other and the work around them; FFTs between them stay as they
are. One product alone (a rotary embedding) is fastest in eager. The fast path of
nn.TransformerEncoderLayer and nn.MultiheadAttention:
`torch.backends.mha.set_fastpath_enabled(False)`, so that Inductor sees the operators inside; then
compare. Custom operators: call the function without the decorator, so that it is traced; one that
has to stay an operator can be implemented for `CompositeImplicitAutograd`. Other arguments: leave
the function that calls it in eager. Others: write it another way, where there is one.

## Settings
- `least_share`: part of the busy time in such operators, 0 to 1, from which it is reported.
- `custom_share`: the same, of operators inside one custom operator.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_faq.html
- https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html
- torch/_inductor/lowering.py, `make_fallback`, `unsupported_input_tensor`
- https://docs.pytorch.org/docs/stable/library.html
- torch/_library/custom_ops.py
- torch/nn/modules/transformer.py
- https://github.com/pytorch/pytorch/issues/125718
- https://github.com/pytorch/torchtitan/issues/15
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

import polars as pl

from traceview.derive.compiler.traffic import complex_traffic, on_complex
from traceview.derive.facts.rows import called_in
from traceview.parse.kineto.categories import FUSIBLE, is_foreign, operator_category
from traceview.rules._gain import Waiting, at_first, location, locations, waiting
from traceview.rules.kit import (
    MOST_EVIDENCE,
    NOTABLE_SHARE,
    Cost,
    Evidence,
    Finding,
    Location,
    Severity,
    Snippet,
    Tables,
    first_rank,
    frame,
    from_row,
    milliseconds,
    outcome,
    percent,
    plural,
    rows,
    severity,
    shorten,
    step_ms,
)
from traceview.torchtext import marks
from traceview.torchtext.fx import op_name, read_graph
from traceview.words.numbers import size

CODE = "TV402"
NEEDS = frozenset({"kernel_calls", "matched_kernels", "cpu_ops", "accounting", "graphs"})
FOLLOWS = frozenset(
    {
        "ap-debug-switch",
        "ind-slower-library",
        "ind-fft-length",
        "ind-other-form",
        "ind-strided-scan",
    }
)
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"library_choice", "launches_saved"})

#: Below half, something else is the step's main cost.
LEAST_SHARE = 0.50
#: Inside a custom operator, of which more can be gained.
CUSTOM_SHARE = 0.20
#: Views and the like, which are called along with them and take no time.
LEAST_OF_ALL = 0.05
#: These run in libraries on purpose.
_LIBRARY = frozenset({"gemm", "convolution", "attention", "communication"})
_FAST_PATH = frozenset({"aten._transformer_encoder_layer_fwd", "aten._native_multi_head_attention"})
_ELSE = {
    "aten._cdist_forward": (
        "Distances with p=1 can be (x[:, None] - y).abs().sum(-1), which has generated code and "
        "fuses with what reads it; Euclidean ones a product: |x|² + |y|² - 2·x·yᵀ."
    ),
    "aten.sort": "torch.kthvalue and topk find a quantile or a median without sorting all.",
    "aten.bincount": "Counts can be a scatter_add or a sum over a comparison.",
}
_REMEDIES = {"fast path": ("torch.backends.mha._is_fastpath_enabled=False",)}
_APART = (
    "Keep the real and the imaginary part as two real tensors: exp(1j * x) is cos(x) and sin(x). "
    "These operators then fuse into few kernels (results differ by rounding)."
)
_CHAIN = Snippet(
    "python",
    "re, im = torch.view_as_real(z).unbind(-1)\n"
    "cos, sin = x.cos(), x.sin()  # z * torch.exp(1j * x)\n"
    "re, im = re * cos - im * sin, re * sin + im * cos\n"
    "z = torch.view_as_complex(torch.stack((re, im), -1))  # for an FFT",
)
#: Why there is no code: in short, what to do, and what to paste.
_CAUSES: dict[str, tuple[str, str, Snippet | None]] = {
    "fast path": (
        "torch's fast path runs the layer as one operator",
        "Turn the fast path off before the first compiled call, so that Inductor sees the "
        "operators inside, and compare: on small inputs the fast path may be faster.",
        Snippet("python", "torch.backends.mha.set_fastpath_enabled(False)"),
    ),
    "complex": (
        "Inductor has no code for complex numbers",
        "With real numbers, cosine and sine as two tensors, it fuses with the work around it "
        "(results differ by rounding). Where there is no such work, it is fastest in eager: "
        "compile what is around it.",
        Snippet(
            "python",
            "a, b = x.unflatten(-1, (-1, 2)).unbind(-1)\n"
            "y = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)",
        ),
    ),
    "complex chain": ("Inductor has no code for complex numbers", _APART, _CHAIN),
    "arguments": (
        "it has other arguments than in eager",
        "Compiled code asks more of the operator than eager does. Leave the function that calls "
        "it in eager, and compare.",
        Snippet("python", "@torch.compiler.disable  # on the function that calls it"),
    ),
    "waiting": (
        "it waits for the device, and Inductor has no code of its own for it",
        "No cudagraph can hold it. Where the shapes are small and known, write it in operators "
        "that Inductor has code for, and compare.",
        None,
    ),
    "none": (
        "Inductor has no code of its own for it",
        "Nothing is wrong: expect no gain from compiling this part.",
        None,
    ),
}


_CALLED = (
    "Inductor generates no code for this, so ATen's kernels run and nothing fuses with them. "
    "Compiling can only shorten the rest."
)
_COMPLEX = (
    "Inductor generates no code for operators on complex numbers. Each of them is a kernel of "
    "ATen's that reads its operands from memory and writes its result, and compiling can only "
    "shorten the rest."
)


def check(
    tables: Tables, *, least_share: float = LEAST_SHARE, custom_share: float = CUSTOM_SHARE
) -> Iterator[Finding]:
    """At most one finding on torch's operators together, at the most expensive one's line.

    And one for each custom operator.
    """
    # Operators that the generated code calls because it has none of its own, with their lines.
    copied = {row["op"] for row in rows(tables, "host_operands")}  # for an operand on the CPU
    tuned = {row["operator"] for row in rows(tables, "kernel_tunings")}
    fallbacks: dict[str, list[str]] = {}
    customs: dict[str, list[str]] = {}
    for row in rows(tables, "kernel_calls", category="fallback"):
        op = op_name(row["kernel_name"] or "")
        name = op.replace(".", "::")
        if op.startswith("aten.") and operator_category(name) not in _LIBRARY:
            if op not in copied:
                fallbacks.setdefault(op, []).extend(row["user_lines"] or ())
        elif is_foreign(name) and name not in tuned:
            customs.setdefault(op, []).extend(row["user_lines"] or ())
    matched = frame(tables, "matched_kernels", stance="compiled")
    on_device = "device" in set(matched["clock"])
    if on_device:
        own = pl.col("ops").list.filter(pl.element().is_in(sorted(fallbacks)))
        mine = matched.filter(
            pl.col("compile_id").is_not_null() & ~pl.col("category").str.starts_with("generated")
        )
        found = mine.with_columns(op=own.list.last()).drop_nulls("op")
        by_line = found.group_by("op", "file", "line", maintain_order=True).agg(pl.col("ms").sum())
        spent = by_line.sort("ms", descending=True, maintain_order=True)
    else:
        # Operators that generated code calls, with what they call themselves.
        ops = frame(tables, "cpu_ops", stance="compiled").filter(pl.col("step").is_not_null())
        called = called_in(ops, marks.GRAPH).with_columns(
            op=pl.col("name").str.replace("::", ".", literal=True)
        )
        steps = max(1, ops["step"].n_unique())
        mine = called.filter(pl.col("op").is_in(sorted(fallbacks)))
        found = mine.group_by("op").agg(ms=pl.col("duration_ns").sum() / 1e6 / steps)
        places = [
            {"op": op, "file": place.file, "line": place.line}
            for op, lines in fallbacks.items()
            if (place := location(next(iter(lines), "")))
        ]
        known = pl.DataFrame(places, {"op": pl.String, "file": pl.String, "line": pl.Int32})
        joined = found.join(known, on="op", how="left").select("op", "file", "line", "ms")
        spent = joined.sort("ms", "op", descending=[True, False])
    # On a host the operators that are known by name only (a sort, an FFT) are not busy time.
    busy = sum(
        row["profiled_ms"] or 0.0
        for row in first_rank(rows(tables, "accounting", stance="compiled"))
        if row["kind"] == "busy" or row["category"] == "other"
    )
    ms = float(spent["ms"].sum())
    if not spent.is_empty() and busy and ms >= least_share * busy:
        yield _finding(tables, spent, ms, busy, on_device)
    for op, lines in customs.items():
        ms, count = _inside(tables, matched, op)
        if busy and ms >= custom_share * busy:
            share = min(1.0, ms / busy)
            level: Severity = "warning" if share >= least_share else "info"
            yield _opaque(tables, op, lines, Cost(ms), count, share, level)


def _inside(tables: Tables, matched: pl.DataFrame, op: str) -> tuple[float, float]:
    """What torch's memory-bound operators inside custom operator ``op`` take and are, per step."""
    fusible = pl.col("category").is_in(FUSIBLE)
    if "device" in set(matched["clock"]):
        mine = matched.filter(
            fusible, pl.col("compile_id").is_not_null(), pl.col("ops").list.last() == op
        )
        return float(mine["ms"].sum()), float(mine["count"].sum())
    ops = frame(tables, "cpu_ops", stance="compiled").filter(pl.col("step").is_not_null())
    custom = ops.filter(pl.col("graph_key").is_not_null(), name=op.replace(".", "::"))
    inner = ops.filter(fusible).join(
        custom.select("rank", parent_id="op_id"),
        on=["rank", "parent_id"],
        how="semi",
        nulls_equal=True,
    )
    steps = max(1, ops.n_unique(["rank", "step"]))
    return float(inner["duration_ns"].sum()) / 1e6 / steps, inner.height / steps


def _opaque(
    tables: Tables,
    op: str,
    lines: list[str],
    cost: Cost,
    count: float,
    share: float,
    level: Severity,
) -> Finding:
    called = locations(lines)
    name = op.replace(".", "::")
    # The first line of its body that ran: only an eager step shows lines inside an operator.
    seen = frame(tables, "line_ops", stance="eager")
    body = seen.filter(kind="line").join(
        seen.filter(name=name).select("rank", parent_id="op_id"),
        on=["rank", "parent_id"],
        how="semi",
        nulls_equal=True,
    )
    first = body.drop_nulls(["file", "line"]).sort("line").select("file", "line").head(1)
    defined = [Location(*row) for row in first.iter_rows()]
    spent = milliseconds(cost.ms_per_step or 0.0)
    return Finding(
        code=CODE,
        rule="ind-extern-dominated",
        severity=level,
        title=(
            f"{percent(share)} of the busy time is inside custom operator {name}, as in eager: "
            "Inductor can't look into it"
        ),
        explanation=(
            "Its body is made of torch's operators, which Inductor would fuse with each other and "
            "with the work around them. In a custom operator each is a kernel of its own."
        ),
        cost=Cost(cost.ms_per_step, None, "current time of the operators inside"),
        confidence="measured",
        location=called[0] if called else next(iter(defined), None),
        evidence=(
            Evidence(
                f"torch.ops.{op}: {plural(round(count), 'operator')} of torch's inside, {spent} of "
                "a step",
                "matched_kernels",
            ),
        ),
        what_to_do=(
            "Call the function itself, without the decorator that makes it an operator: it is then "
            "traced and fused. If it has to stay an operator, make it with torch.library.define "
            "and implement it for CompositeImplicitAutograd, which compiled code looks into."
        ),
        also_at=tuple((called[1:] + defined)[:3]) if called else (),
        weighs=True,
    )


def _more_ms(tables: Tables, op: str) -> tuple[float, str]:
    """ms of a step that ``op`` takes more than in eager, on a host, and its arguments in both.

    0 where they are the same: then it is the same work.
    """
    ops = frame(tables, "cpu_ops").filter(pl.col("step").is_not_null())
    sides = {}
    for stance in ("eager", "compiled"):
        in_steps = ops.filter(stance=stance)
        mine = in_steps.filter(name=op.replace(".", "::", 1))
        steps = max(1, in_steps.n_unique(["rank", "step"]))
        how = mine.select("input_dims", "concrete_inputs").unique().rows()
        sides[stance] = float(mine["duration_ns"].sum()) / 1e6 / steps, how
    (eager_ms, eager), (compiled_ms, compiled) = sides["eager"], sides["compiled"]
    if len(eager) != 1 or len(compiled) != 1 or eager[0][0] != compiled[0][0]:
        return 0.0, ""
    if None in (eager[0][1], compiled[0][1]) or eager == compiled:
        return 0.0, ""
    times = f"{milliseconds(compiled_ms)} of a step, {milliseconds(eager_ms)} in eager"
    return compiled_ms - eager_ms, f"{times}; arguments {compiled[0][1]}, in eager {eager[0][1]}"


class _Complex(NamedTuple):
    """Arithmetic on complex numbers among the operators without code.

    ``moved``: bytes of its separate kernels and of fused ones, None where not known; ``chain``:
    fusing saves some. ``leads``: it takes longer than the others.
    """

    ops: frozenset[str]
    ms: float
    rest_ms: float
    moved: tuple[int, int] | None

    @property
    def leads(self) -> bool:
        return self.ms > self.rest_ms

    @property
    def chain(self) -> bool:
        return self.moved is not None and self.moved[1] < (1 - NOTABLE_SHARE) * self.moved[0]

    @classmethod
    def of(cls, tables: Tables, spent: pl.DataFrame) -> _Complex:
        called = set(spent.get_column("op"))
        graphs = [read_graph(row["text"] or "") for row in rows(tables, "graphs", kind="post_grad")]
        ops = frozenset(node.op for graph in graphs for node in on_complex(graph, called))
        ms = float(spent.filter(pl.col("op").is_in(sorted(ops)))["ms"].sum())
        moved = complex_traffic(graphs, called) if ops else None
        return cls(ops, ms, float(spent["ms"].sum()) - ms, moved)


def _cause(op: str, numbers: _Complex, blocked: Sequence[Waiting], more: bool) -> str:
    """Which of ``_CAUSES``."""
    if more:
        return "arguments"
    if op in _FAST_PATH:
        return "fast path"
    if numbers.leads:
        return "complex chain" if numbers.chain else "complex"
    return "waiting" if blocked else "none"


def _finding(
    tables: Tables, spent: pl.DataFrame, ms: float, busy: float, on_device: bool
) -> Finding:
    numbers = _Complex.of(tables, spent)
    mine = pl.col("op").is_in(sorted(numbers.ops))
    rest = spent.filter(~mine)
    if numbers.leads:
        ms, spent = numbers.ms, pl.concat([spent.filter(mine), rest])
    spent = spent.filter(pl.col("ms") >= LEAST_OF_ALL * ms)
    ops = list(dict.fromkeys(spent.get_column("op")))
    more_ms, arguments = _more_ms(tables, ops[0])
    more = more_ms > NOTABLE_SHARE * (step_ms(tables, "compiled") or inf)
    blocked = [one for one in tables.once(waiting) if one.name == ops[0].replace(".", "::", 1)]
    cause = _cause(ops[0], numbers, blocked, more)
    why, what_to_do, snippet = _words(cause, ops, numbers, rest, busy)
    alike = numbers.ops.intersection(ops) if numbers.leads else ops
    named = ops[0] if len(alike) == 1 else f"{ops[0]} and the like"
    if cause.startswith("complex"):
        named = f"arithmetic on complex numbers ({named})"
    places, evidence = _calls(spent, blocked)
    cost = Cost(about=f"nothing against eager: {milliseconds(ms)} of a step run the same kernels")
    level: Severity = "info"
    due_ms: float | None = None
    if cause.startswith("complex"):
        evidence += [
            from_row(shorten(row["message"]), "warnings", row)
            for row in rows(tables, "warnings", kind="complex_fallback")[:1]
        ]
        level, cost, due_ms = _complex_cost(tables, numbers, on_device) or (level, cost, due_ms)
        if numbers.chain and numbers.moved:
            both = "as separate kernels they move {}, fused {}".format(*map(size, numbers.moved))
            evidence.insert(0, Evidence(both, "graphs"))
    if more:
        evidence.insert(0, Evidence(f"torch.ops.{ops[0]}: {arguments}", "cpu_ops"))
        cost = Cost(more_ms, None, "longer than in eager, as profiled")
        level = severity(tables, more_ms)
    return Finding(
        code=CODE,
        rule="ind-extern-dominated",
        severity=level,
        title=(
            f"{percent(min(1.0, ms / busy))} of the busy time is {named}"
            f"{'' if more else ', as in eager'}: {why}"
        ),
        explanation=_COMPLEX if cause.startswith("complex") else _CALLED,
        cost=cost,
        confidence="derived",
        location=places[0] if places else None,
        evidence=tuple(evidence),
        what_to_do=what_to_do,
        snippet=snippet,
        remedy=_remedy(tables, cause),
        also_at=tuple(dict.fromkeys(place for place in places[1:] if place != places[0]))[:3],
        weighs=True,
        due_ms=due_ms,
    )


def _remedy(tables: Tables, cause: str) -> tuple[str, ...]:
    """Settings; arithmetic on complex numbers that is slower than in eager stays there."""
    called = {row["name"] for row in first_rank(rows(tables, "regions")) if row["calls"]}
    if cause.startswith("complex") and outcome(tables) == "hurt" and len(called) == 1:
        return (f"eager={called.pop()}",)
    return _REMEDIES.get(cause, ())


def _words(
    cause: str, ops: Sequence[str], numbers: _Complex, rest: pl.DataFrame, busy: float
) -> tuple[str, str, Snippet | None]:
    """Why there is no code, what to do and what to paste; ``rest`` is no complex arithmetic."""
    why, what_to_do, snippet = _CAUSES[cause]
    if cause in ("none", "waiting"):
        instead = [_ELSE[op] for op in ops if op in _ELSE]
        what_to_do = " ".join(instead if instead and cause == "none" else [what_to_do, *instead])
        if numbers.chain and numbers.ms >= CUSTOM_SHARE * busy:
            apart = f"{milliseconds(numbers.ms)} of a step is arithmetic on complex numbers."
            what_to_do, snippet = f"{what_to_do} But {apart} {_APART}", _CHAIN
    if cause == "complex chain" and numbers.rest_ms >= LEAST_OF_ALL * busy:
        stays = f"{rest.item(0, 'op')} stays as it is: {milliseconds(numbers.rest_ms)} of a step."
        what_to_do = f"{what_to_do} {stays}"
    return why, what_to_do, snippet


def _calls(
    spent: pl.DataFrame, blocked: Sequence[Waiting]
) -> tuple[list[Location], list[Evidence]]:
    """The lines that call the operators, and what they take."""
    places = []
    evidence = [Evidence(one.text, "kernel_launches") for one in blocked]
    for op, file, line, each_ms in spent.iter_rows():
        place = Location(file, line) if file and line is not None else None
        places += [place] if place else []
        at = at_first(place)
        text = f"torch.ops.{op}{at}: {milliseconds(each_ms)} of a step"
        evidence.append(Evidence(text, "kernel_calls"))
    return places, evidence[:MOST_EVIDENCE]


def _complex_cost(
    tables: Tables, numbers: _Complex, on_device: bool
) -> tuple[Severity, Cost, float] | None:
    """Severity, cost, and ms that compiling lost; None where there is no loss or known saving."""
    eager, compiled = (step_ms(tables, stance) for stance in ("eager", "compiled"))
    hurts = outcome(tables) == "hurt"
    lost = compiled - eager if hurts and eager and compiled else 0.0
    if numbers.chain and numbers.moved and on_device:  # a host's caches hold what lies between
        before, after = numbers.moved
        saved = numbers.ms * (1 - after / before)
        about = f"of {milliseconds(numbers.ms)}, by the bytes that fused kernels need not move"
        return "warning" if lost else severity(tables, saved), Cost(saved, None, about), lost
    if lost:
        about = "compiled step less eager step; what generated code would save comes on top"
        return "warning", Cost(lost, None, about), lost
    return None
