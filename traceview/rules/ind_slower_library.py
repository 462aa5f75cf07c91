"""
## What it finds
Work of a library (a matrix product, a convolution, attention, an operator without generated code)
that takes longer in the compiled step than the same work takes in eager. Or a Triton kernel of your
own that does.

## Why it costs
torch.compile may call the library another way: with operands in another memory layout or padded, by
another operator, or not at all, with loops of its own in the library's place. The library then
picks another kernel. That is usually a gain, and sometimes a loss that nothing makes up for. Or
compiled code has more to compute: eager's `TransformerEncoder` packs what a padding mask leaves
into a nested tensor, and does not do so while torch compiles. An LSTM or GRU that Dynamo traces
(`allow_rnn`) becomes small products of each time step, where eager runs one fused kernel of
cuDNN's.

`index_add_` is decomposed into `index_put_(accumulate=True)`. Where Triton has no atomic addition
for the dtype, as for int64, that is left to the library, which sorts the indices first.

A Triton kernel of your own runs as it is, but compiled code launches it. torch 2.11 to 2.13 hand it
Python floats as float64, Triton's own launch as float32: what is computed with such an argument
becomes float64, which takes a GPU much longer.

## Evidence
Table `library_pairs`: both stances' calls of one line with their shapes, dtypes, layouts, kernels
and times, and what differs. A library's calls that differ in nothing but their time are not
reported, nor what a GPU's pace explains, if its profiled steps were faster than timed ones in one
stance only. And on a CPU, where the two profiles may have run at different speeds, nothing unless
compiled steps are slower. A Triton kernel is found in both profiles by its name; its arguments'
types are those in the generated code's `triton_meta`. More to compute is known from the operations
of both stances' products (`kernel_limits`) or from the operator that makes the nested tensor. Of an
RNN: its operator runs in eager and not in the compiled step.

## What to do
It depends on what differs. A float64 argument: cast it in the kernel, `eps = eps.to(tl.float32)`,
or make it a `tl.constexpr`. More to compute: cut the padding off before the call, or keep that
module in eager. An RNN: leave `torch._dynamo.config.allow_rnn` off. Padded shapes:
`torch._inductor.config.shape_padding = False`. Another layout:
`torch._inductor.config.layout_optimization = False` for convolutions, contiguous operands for
products. Another backend of attention: choose it with `torch.nn.attention.sdpa_kernel`. Loops in
the place of a product: on a CPU Inductor writes batched products of one row or column as loops;
more rows at once, or `torch.nn.functional.scaled_dot_product_attention`, keep the library. Another
kernel: let Inductor time the library against its own templates with
`mode="max-autotune-no-cudagraphs"`, for convolutions set `torch.backends.cudnn.benchmark`.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the loss must be.
- `least_ratio`: compiled over eager time of the work from which it is reported.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compile.html
- https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.sdpa_kernel.html
- torch/_inductor/config.py, `shape_padding`, `layout_optimization`
- torch/_inductor/kernel/bmm.py
- torch/_inductor/fx_passes/pad_mm.py
- torch/nn/modules/transformer.py, `mask_check`
- torch/_dynamo/config.py, `allow_rnn`
- torch/_decomp/decompositions.py, `lstm_impl`, `_index_add`
- torch/_inductor/utils.py, `needs_fallback_due_to_atomic_add_limitations`
- torch/_inductor/codegen/triton_utils.py, `signature_of`
- https://github.com/pytorch/pytorch/pull/170289
- https://github.com/pytorch/pytorch/pull/190340
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules._gain import at_first, pace
from traceview.rules._starts import setting_line
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    first,
    first_rank,
    frame,
    from_row,
    milliseconds,
    outcome,
    percent,
    plural,
    rows,
    severity,
    short,
    shorten,
    step_ms,
)
from traceview.words.names import category
from traceview.words.numbers import flop
from traceview.words.text import listed

CODE = "TV409"
NEEDS = frozenset({"library_pairs", "speedups"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"library_choice", "other_kernels"})
FOLLOWS = frozenset(
    {
        "cap-cached-function",
        "ind-weight-layout",
        "mem-forward-again",
        "ind-unused-gradients",
        "ind-recomputed",
    }
)

#: Less of a step is within what two profiles of the same work differ by.
LEAST_SHARE = 0.05
#: The same: kernels of both windows ran at different moments.
LEAST_RATIO = 1.2
#: Operations of compiled products over eager's from which compiled code computes more.
MORE_WORK = 1.5
#: What packs the places that a padding mask leaves, in TransformerEncoder's fast path.
_PACKED = "aten::_nested_tensor_from_mask"
#: Operators that run a whole recurrent layer, or a cell of it, in one library call.
_RNN = re.compile(r"^aten::(_cudnn_rnn|miopen_rnn|mkldnn_rnn|_thnn_fused_(lstm|gru)_cell)")
#: What a difference is in words, what to do about it, and what to paste; the first that fits.
_CAUSES: dict[str, tuple[str, str, Snippet | None]] = {
    "generated": (
        "compiled code computes it in loops of its own, without the library",
        "Keep the library: attention of one token by "
        "torch.nn.functional.scaled_dot_product_attention, products of one row or column with more "
        "rows at once. Inductor writes batched products of one row or column as loops on a CPU.",
        None,
    ),
    "padded": (
        "compiled code pads it to another shape",
        "Turn padding off before the first compiled call, and compare; or choose sizes that are "
        "multiples of 8.",
        Snippet("python", "torch._inductor.config.shape_padding = False"),
    ),
    "dtype": (
        "it runs in another dtype",
        "Compare the dtypes at this line in eager and compiled code: a cast that moves past the "
        "call changes what it computes in.",
        None,
    ),
    "layout": (
        "its operands lie in another memory layout",
        "Pass operands in the layout that eager has, and compare: contiguous ones for a product, "
        "for a convolution without Inductor's layout optimization.",
        Snippet("python", "torch._inductor.config.layout_optimization = False"),
    ),
    "sorted": (
        "compiled code calls index_put, which sorts the indices",
        "scatter_add_ with an index of the values' shape stays the library's own. Or add values of "
        "a dtype for which Triton has atomic additions: float32, int32.",
        Snippet("python", "total.scatter_add_(0, index.view(-1, 1).expand_as(values), values)"),
    ),
    "calls": (
        "compiled code calls it more often",
        "Eager may decide by the data which formula it computes, such as that of cumprod's "
        "gradient for values without a zero; what is traced has all of them. Write it with "
        "operators of one formula: the product of positive values as the exponential of a cumsum "
        "of their logarithms.",
        Snippet("python", "torch.exp(torch.cumsum(torch.log(x), dim=0))  # cumprod, for x > 0"),
    ),
    "operator": (
        "compiled code calls another operator",
        "Let Inductor time the library against templates of its own.",
        Snippet("python", 'torch.compile(model, mode="max-autotune-no-cudagraphs")'),
    ),
    "kernel": (
        "the library picks another kernel",
        "Let Inductor time the library against templates of its own.",
        Snippet("python", 'torch.compile(model, mode="max-autotune-no-cudagraphs")'),
    ),
}
_NOT_PACKED = (
    "Eager takes TransformerEncoder's fast path, which packs what src_key_padding_mask leaves into "
    "a nested tensor and computes nothing else. While torch compiles it is not taken: all places "
    "are computed."
)
_CUT = (
    "Cut the padding off before the call: to the longest sequence of the batch, rounded up to a "
    "few sizes. Or keep the encoder in eager, with torch.compiler.disable."
)
_IN_DOUBLE = (
    "Compiled code hands Python floats to a Triton kernel as float64, Triton's own launch as "
    "float32. What is computed with one becomes float64, which takes a GPU much longer and more "
    "registers."
)
_ALIKE = (
    "The same kernel takes longer in compiled code, and neither float64 arguments nor the number "
    "of programs and threads is the reason."
)
_CAST = (
    "Cast to float32 in the kernel, before anything is computed; in eager that changes nothing. Or "
    "annotate the argument as tl.constexpr: Triton then compiles the kernel once for each value."
)
_COMPARE = (
    "Compare how eager and compiled code launch it: the grid, num_warps and num_stages, the types "
    "and alignment of its arguments, the configurations of triton.autotune. The launch is in the "
    "generated code (TORCH_LOGS=output_code)."
)
#: Python floats as Triton passes them; torch keeps the setting for itself.
_FLOAT32 = "torch._inductor.config._use_fp64_for_unbacked_floats=False"
#: What else decides which kernel runs.
_OF_KIND = {
    "attention": " Or choose the backend with torch.nn.attention.sdpa_kernel.",
    "convolution": " torch.backends.cudnn.benchmark = True times the library's own kernels.",
}


def check(
    tables: Tables, *, least_share: float = LEAST_SHARE, least_ratio: float = LEAST_RATIO
) -> Iterator[Finding]:
    """One finding for each line and cause."""
    step = step_ms(tables, "compiled")
    found: dict[tuple[str, str | None, int | None], list[Row]] = {}
    hurts = outcome(tables) == "hurt"
    unrolled = _unrolled_rnn(tables, step or 0.0, least_share)
    more = _more_work(tables, step or 0.0, least_share) if hurts and not unrolled else None
    whole = [each for each in (unrolled, more) if each is not None]
    yield from whole
    yield from _user_kernels(tables, step or 0.0, least_share, least_ratio)
    # Where one profile's steps ran at another pace than timed ones, more is needed to be sure.
    least = least_ratio * max(1.0, pace(tables, "compiled") / pace(tables, "eager"))
    for row in first_rank(rows(tables, "library_pairs")):
        if any(each.location == Location(row["file"], row["line"]) for each in whole):
            continue
        differs = ["sorted"] if _sorts(row) else row["differs"]
        cause = next((what for what in _CAUSES if what in differs), None)
        sure = row["clock"] == "device" or outcome(tables) == "hurt"
        if cause and sure and row["compiled_ms"] >= least * row["eager_ms"]:
            found.setdefault((cause, row["file"], row["line"]), []).append(row)
    for (cause, file, line), pairs in found.items():
        ms = sum(row["ms"] for row in pairs)
        if not step or ms < least_share * step:
            continue
        place = Location(file, line) if file and line is not None else None
        why, what_to_do, snippet = _CAUSES[cause]
        before, after = (sum(row[f"{s}_ms"] for row in pairs) for s in ("eager", "compiled"))
        work = dict.fromkeys(row["kind"] for row in pairs)
        longest = next(iter(work))
        name = longest.removeprefix("aten::") if "::" in longest else category(longest).capitalize()
        kinds = "".join(_OF_KIND.get(kind, "") for kind in sorted(work))
        where = at_first(place)
        yield Finding(
            code=CODE,
            rule="ind-slower-library",
            severity=severity(tables, after - before),
            title=(
                f"{name}{where}: {milliseconds(after)} compiled, "
                f"{milliseconds(before)} in eager; {why}"
            ),
            explanation=(
                f"The same work is {percent(ms / step)} of the compiled step slower than in eager: "
                f"{plural(len(pairs), 'shape')}, paired by line and shape."
            ),
            cost=Cost(after - before, None, "compiled less eager time of the same work"),
            confidence="derived",
            location=place,
            evidence=tuple(
                Evidence(text, "library_pairs") for row in pairs[:2] for text in _sides(row)
            ),
            what_to_do=what_to_do + (kinds if cause in ("operator", "kernel") else ""),
            snippet=snippet,
            remedy=_settings(cause, set(work)),
            weighs=True,
        )


def _user_kernels(
    tables: Tables, step: float, least_share: float, least_ratio: float
) -> Iterator[Finding]:
    """One finding for each Triton kernel of the user's that takes longer per call."""
    launches = {
        (row["stance"], row["name"]): f"{row['programs']:,} programs of {row['threads']:,} threads"
        for row in first_rank(rows(tables, "kernel_groups"))
        if row["programs"] and row["threads"]
    }
    for row in first_rank(rows(tables, "library_pairs", kind="user_kernel")):
        counts = {stance: row[f"{stance}_count"] for stance in ("eager", "compiled")}
        if row["clock"] != "device" or not all(counts.values()):
            continue
        # What as many calls as the compiled step makes take in eager.
        before = row["eager_ms"] / counts["eager"] * counts["compiled"]
        after = row["compiled_ms"]
        lost = after - before
        if not step or lost < least_share * step or after < least_ratio * before:
            continue
        name, doubles = row["compiled_kernels"][0], row["float64_arguments"] or []
        place = Location(row["file"], row["line"]) if row["file"] and row["line"] else None
        known = [launches.get((stance, name)) for stance in counts]
        if doubles:
            why, explanation = f"compiled code passes {listed(doubles)} as float64", _IN_DOUBLE
        elif "launch" in row["differs"]:
            why = f"{known[1]}, in eager {known[0]}"
            explanation = "Compiled code launches the same kernel in another way than eager does."
        else:
            why, explanation = "why is not recorded", _ALIKE
        code = first(tables, "generated_kernels", kernel_name=(row["compiled_ops"] or [None])[0])
        casts = "\n".join(f"{one} = {one}.to(tl.float32)" for one in doubles)
        each = {s: f"{n:.3g} × {milliseconds(row[f'{s}_ms'] / n)}" for s, n in counts.items()}
        where = at_first(place)
        yield Finding(
            code=CODE,
            rule="ind-slower-library",
            severity=severity(tables, lost),
            title=(
                f"Triton kernel {name}{where}: {milliseconds(after)} compiled, "
                f"{milliseconds(before)} in eager; {why}"
            ),
            explanation=explanation,
            cost=Cost(lost, None, "compiled less eager time of as many calls of this kernel"),
            confidence="derived" if row["differs"] else "heuristic",
            location=place,
            evidence=(
                *(
                    Evidence(f"{stance}: {calls}{f', {launch}' if launch else ''}", "library_pairs")
                    for (stance, calls), launch in zip(each.items(), known, strict=True)
                ),
                *(
                    from_row(f"'{one}': 'fp64' in triton_meta", "generated_kernels", code or {})
                    for one in doubles
                ),
            ),
            what_to_do=_CAST if doubles else _COMPARE,
            snippet=Snippet("python", casts) if doubles else None,
            remedy=(_FLOAT32,) if doubles else (),
            weighs=True,
        )


def _unrolled_rnn(tables: Tables, step: float, least_share: float) -> Finding | None:
    """The recurrent layer that eager runs in a library's own kernels and compiled code doesn't."""
    ran = first_rank(rows(tables, "matched_kernels"))
    fused = [row for row in ran if _RNN.match(row["cpu_op"] or row["name"] or "")]
    if not fused or any(row["stance"] == "compiled" for row in fused):
        return None
    lines = {(row["file"], row["line"]) for row in fused if row["line"] is not None}
    mine = [row for row in ran if (row["file"], row["line"]) in lines]
    took = {s: sum(r["ms"] for r in mine if r["stance"] == s) for s in ("eager", "compiled")}
    lost = took["compiled"] - took["eager"]
    if not lines or lost < least_share * step:
        return None
    longest = max(fused, key=lambda row: row["ms"])
    if longest["clock"] != "device" and outcome(tables) != "hurt":
        return None
    line, setting = Location(longest["file"], longest["line"]), setting_line(tables, "allow_rnn")
    known = {row["name"]: row["value"] for row in first_rank(rows(tables, "environment"))}
    allowed = known.get("allow_rnn") == "True"
    operator = longest["cpu_op"] or longest["name"]
    tf32 = (
        known.get("cudnn.allow_tf32") == "True"
        and known.get("float32_matmul_precision") == "highest"
    )
    off = "torch._dynamo.config.allow_rnn = False"
    return Finding(
        code=CODE,
        rule="ind-slower-library",
        severity=severity(tables, lost),
        title=(
            f"RNN at {short(line)}: {milliseconds(took['compiled'])} compiled, "
            f"{milliseconds(took['eager'])} in eager; compiled code unrolls it into products of "
            "each time step"
        ),
        explanation=(
            f"Eager runs a fused kernel of the library ({operator}). "
            + (
                "allow_rnn has Dynamo trace the layer, and AOTAutograd"
                if allowed
                else "AOTAutograd"
            )
            + " decomposes it: small products and loops that wait for each other."
            + (" cuDNN may also use TF32, which is off for these products." if tf32 else "")
        ),
        cost=Cost(lost, None, "compiled less eager time of this line's kernels"),
        confidence="derived",
        location=line,
        also_at=(setting,) if setting and setting != line else (),
        evidence=(
            Evidence(f"{operator} runs in eager only", "matched_kernels"),
            *([Evidence("torch._dynamo.config.allow_rnn: True", "environment")] if allowed else []),
        ),
        what_to_do=(
            f"Leave allow_rnn off{f' ({short(setting)})' if setting else ''}: the layer then runs "
            "in eager between two graphs."
            if allowed
            else "Keep the layer in eager: call it in a function under torch.compiler.disable."
        ),
        snippet=Snippet("python", off) if allowed else None,
        remedy=(off.replace(" ", ""),) if allowed else (),
        weighs=True,
    )


def _more_work(tables: Tables, step: float, least_share: float) -> Finding | None:
    """The line that got slower the most, where compiled code has more to compute than eager."""
    limits = first_rank(rows(tables, "kernel_limits"))
    flops = {"eager": 0.0, "compiled": 0.0}
    for row in limits:
        if row["category"] == "gemm" and row["flops"] is not None:
            flops[row["stance"]] += row["flops"] * row["count"]
    packed = [
        not frame(tables, "cpu_ops", stance=stance, name=_PACKED).is_empty() for stance in flops
    ] == [True, False]
    # What one stance's attention computes may be products in the other.
    attention = any(row["category"] == "attention" for row in limits)
    counted = flops["eager"] > 0 and flops["compiled"] >= MORE_WORK * flops["eager"]
    if not packed and (attention or not counted):
        return None
    took = _by_line(tables)
    place = max(took, key=lambda at: took[at]["compiled"] - took[at]["eager"], default=None)
    if place is None:
        return None
    ms = took[place]
    lost = ms["compiled"] - ms["eager"]
    if lost < least_share * step:
        return None
    evidence = [
        Evidence(f"{milliseconds(ms[s])} of a step {words}", "matched_kernels")
        for s, words in (("eager", "in eager"), ("compiled", "compiled"))
    ]
    if counted:
        both = [flop(flops[stance]) for stance in flops]
        text = f"matrix products: {both[0]} per step in eager, {both[1]} compiled"
        evidence.insert(0, Evidence(text, "kernel_limits"))
    if packed:
        evidence.append(Evidence(f"{_PACKED} runs in eager only", "cpu_ops"))
    why = "compiled code computes the padding too" if packed else "compiled code computes more"
    return Finding(
        code=CODE,
        rule="ind-slower-library",
        severity=severity(tables, lost),
        title=(
            f"{short(place)}: {milliseconds(ms['compiled'])} compiled, "
            f"{milliseconds(ms['eager'])} in eager; {why}"
        ),
        explanation=(
            _NOT_PACKED
            if packed
            else "The same lines multiply larger matrices in the compiled step than in eager."
        ),
        cost=Cost(lost, None, "compiled less eager time of this line's kernels"),
        confidence="derived",
        location=place,
        evidence=tuple(evidence),
        what_to_do=(
            _CUT
            if packed
            else "Compare the shapes at this line in eager and compiled code: look for a branch "
            "that asks torch.compiler.is_compiling(), or work that eager skips."
        ),
        weighs=True,
    )


def _by_line(tables: Tables) -> dict[Location, dict[str, float]]:
    """What the kernels of each line take of a step in each stance."""
    took: dict[Location, dict[str, float]] = {}
    for row in first_rank(rows(tables, "matched_kernels")):
        if row["file"] and row["line"] is not None:
            place = Location(row["file"], row["line"])
            took.setdefault(place, {"eager": 0.0, "compiled": 0.0})[row["stance"]] += row["ms"]
    return took


def _sorts(row: Row) -> bool:
    """Whether compiled code adds by index_put, by way of a sort, what eager adds by itself."""
    added = any("_add" in operator for operator in row["eager_ops"] or ())
    put = any(
        operator.startswith("aten::_index_put_impl") for operator in row["compiled_ops"] or ()
    )
    return added and put and any("sort" in name.lower() for name in row["compiled_kernels"])


def _settings(cause: str, kinds: set[str]) -> tuple[str, ...]:
    """What changes the library's choice for work of these kinds."""
    if cause == "padded":
        return ("torch._inductor.config.shape_padding=False",)
    if cause == "layout" and "convolution" in kinds:
        return ("torch._inductor.config.layout_optimization=False",)
    if cause in ("operator", "kernel"):
        if kinds == {"convolution"}:
            return ("torch.backends.cudnn.benchmark=True",)
        return ("mode=max-autotune-no-cudagraphs",)
    return ()


def _sides(row: Row) -> Iterator[str]:
    """What each stance ran: kernel, shape, dtype, layout, time."""
    for stance, words in (("eager", "eager"), ("compiled", "compiled")):
        shape = row["compiled_shape"] if stance == "compiled" else None
        work = (shape or row["shape"], row[f"{stance}_dtype"], row[f"{stance}_layout"])
        known = ", ".join(filter(None, work))
        count = f"{row[f'{stance}_count']:.3g} × " if row[f"{stance}_count"] != 1 else ""
        yield (
            f"{words}: {count}{shorten(row[f'{stance}_kernels'][0])}"
            f"{f' ({known})' if known else ''}: {milliseconds(row[f'{stance}_ms'])} of a step"
        )
