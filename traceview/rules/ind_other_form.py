"""
## What it finds
An operator of ATen's or of a library that takes long, and whose result other operators of torch
give in far less time: a pooling with a large window, a convolution with a long kernel, a running
logarithm of sums, a full decomposition of which little is used.

## Why it costs
Inductor has no code of its own for these and calls the same kernel as eager does, so compiling
changes nothing. Which way is fast depends on the sizes: a window of 15 by 15 adds up 225 elements
for each result where two poolings along one dimension each add up 30; a kernel of 365 elements does
365 products for each result where a Fourier transform does some 20. The operator does what it says.

## Evidence
At the script's end the operators that take longest in a compiled step are called again with the
step's own sizes, strides, dtypes and settings on random data, as they are and in each other way
that traceview knows, with the backward where the step has one. A way counts where its results agree
with the operator's but for rounding. The saving is the difference as part of what the operator's
kernels take in the step. Random results (`multinomial`) are not compared. A way that is right for
some inputs only (positive factors, no need of an order) is information.

## What to do
Write it the other way: the finding says which, and what its price is. Compiled code fuses what is
left, so it may save more.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the other way must save.

## References
- ATen/native/Linear.cpp, `_trilinear`
- torch/_inductor/lowering.py, `fallback_handler`, `avg_pool2d`, `max_pool2d_with_indices`
- ATen/native/Convolution.cpp, `_select_conv_backend`
- https://docs.pytorch.org/docs/stable/generated/torch.fft.rfft.html
- https://docs.pytorch.org/docs/stable/generated/torch.linalg.lstsq.html
- https://github.com/pytorch/pytorch/issues/92623
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from traceview.rules._gain import Timed, at_first, locations, paced, slowest_lines
from traceview.rules.kit import (
    MOST_EVIDENCE,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    percent,
    rows,
    severity,
    step_ms,
)
from traceview.torchtext.fx import read_graph, tensor_sizes
from traceview.words.ways import EXPANDED, SOLVE, WAYS

CODE = "TV455"
NEEDS = frozenset({"form_trials", "matched_kernels", "step_counts", "graphs"})
SEVERITIES = ("warning", "info")

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05
#: What is left of a call's time where it is written the other way.
_MOST_LEFT = 0.80
_BY = {True: "calls ATen's {}, as eager does.", False: "has a kernel of its own for {}."}
#: A way that is right for some inputs only has to be faster than others by so much.
_PRICE = 1.5
#: Random results can't be compared; and a solve needs what the inverse is multiplied with.
_UNTRIED = frozenset({"a search in running sums", SOLVE})
_INVERSE = "aten.linalg_inv_ex"
#: Operators that generated code has in another's place.
_DECOMPOSED = {
    "aten.std": ("aten.var",),
    "aten.std_mean": ("aten.var_mean",),
    "aten.native_layer_norm": ("aten.var_mean",),
    "aten.native_group_norm": ("aten.var_mean",),
    "aten.max_pool2d_with_indices": (
        "prims._low_memory_max_pool_with_offsets",
        "prims._low_memory_max_pool2d_with_offsets",
    ),
}
_COPIES = frozenset({"aten.repeat", "aten.clone", "aten.expand", "aten.view", "aten.reshape"})
_PRODUCTS = frozenset({"aten.mm", "aten.bmm", "aten.addmm", "aten.baddbmm"})
#: An inverse costs as much as a solve for this part of its columns.
_FEW_COLUMNS = 0.5


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding for each operator and way, at the slowest call's line."""
    step = step_ms(tables, "compiled")
    ran = first_rank(rows(tables, "matched_kernels", stance="compiled"))
    for (op, way), trials in _fastest(tables).items():
        name = op.replace("::", ".")
        computed = {name, name.rstrip("_"), f"{name}_backward", *_DECOMPOSED.get(name, ())}
        mine = _kernels(ran, computed, trials[0])
        if not step or not mine or way not in WAYS:
            continue
        spent = sum(row["ms"] or 0.0 for row in mine)
        timed = Timed.of(tables, trials, spent)
        if not trials[0]["own"] and timed.base > spent:
            # By itself it took longer than all that it is fused with: no more than that goes.
            timed = timed._replace(saved=paced(tables, max(0.0, spent - timed.less))[0])
        if timed.saved < least_share * step:
            continue
        # A generated kernel has one line of all that it does.
        known = slowest_lines(mine) if trials[0]["own"] else []
        places = known or _lines(tables, computed) or slowest_lines(mine)
        words, short = WAYS[way], name.removeprefix("aten.").strip("_")
        both = ", with the backward" if trials[0]["backward"] else ""
        measured = timed.said("as it is", "the other way")
        yield Finding(
            code=CODE,
            rule="ind-other-form",
            severity=severity(tables, timed.saved) if not words.price else "info",
            title=(
                f"{short}{at_first(*places)}: {words.name} would save "
                f"{milliseconds(timed.saved)}, {percent(timed.saved / step)} of the step"
            ),
            explanation=(
                f"Compiled code {_BY[bool(trials[0]['own'])].format(short)} The same result, "
                "written another way, was timed on the step's own sizes."
            ),
            cost=timed.cost("these calls", f"{measured}{both}"),
            confidence="measured",
            location=places[0] if places else None,
            evidence=tuple(map(_evidence, trials))[:MOST_EVIDENCE],
            what_to_do=words.what_to_do,
            snippet=Snippet("python", words.code),
            remedy=() if way in _UNTRIED else (f"form={name.rstrip('_')}:{way}",),
            also_at=tuple(places[1:4]),
            weighs=True,
        )


def _fastest(tables: Tables) -> dict[tuple[str, str], list[Row]]:
    """(operator, way) → calls for which that way is the fastest, and much faster than as it is.

    With ``base_ms`` and ``ms`` of a step, as a row of ``shape_gains``.
    """
    best: dict[tuple[object, ...], Row] = {}
    for row in first_rank(rows(tables, "form_trials")):
        if row["value"] > _MOST_LEFT * row["base"]:
            continue
        if row["way"] in _CONDITIONS and not tables.once(_CONDITIONS[row["way"]]):
            continue
        call = tuple(row[key] for key in ("op", "shape", "settings", "dtype"))
        if call not in best or _worth(row) < _worth(best[call]):
            best[call] = row
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in best.values():
        base_ms, ms = _of_step(row)
        found[row["op"], row["way"]].append({**row, "base_ms": base_ms, "ms": ms})
    return found


def _worth(row: Row) -> float:
    """us of a call; more where the way is not right for all inputs."""
    known = WAYS.get(row["way"])
    return float(row["value"]) * (_PRICE if known and known.price else 1.0)


def _of_step(row: Row) -> tuple[float, float]:
    """ms of a step as it is and in the other way."""
    return row["count"] * row["base"] / 1e3, row["count"] * row["value"] / 1e3


def _kernels(ran: list[Row], ops: Collection[str], trial: Row) -> list[Row]:
    """Rows of ``matched_kernels`` that do the operator: library calls, or generated code.

    Gradients of generated code have other operators: all that is at its lines.
    """
    kind = [row for row in ran if row["category"].startswith("generated") != trial["own"]]
    mine = [row for row in kind if not set(ops).isdisjoint(row["ops"] or ())]
    if trial["own"] or not trial["backward"]:
        return mine
    at = {(row["file"], row["line"]) for row in mine if row["line"]}
    return [row for row in kind if row in mine or (row["file"], row["line"]) in at]


def _lines(tables: Tables, ops: Collection[str]) -> list[Location]:
    """The lines of these operators in compiled graphs, where kernels have none."""
    texts = (row["text"] or "" for row in first_rank(rows(tables, "graphs", kind="post_grad")))
    theirs = (text for text in texts if any(f"{op}." in text for op in ops))
    nodes = (node for text in theirs for node in read_graph(text).operations)
    return locations(node.user_line for node in nodes if node.op in ops)


def _evidence(row: Row) -> Evidence:
    settings = f" ({row['settings']})" if row["settings"] else ""
    base, other = map(milliseconds, _of_step(row))
    return Evidence(
        f"{row['op']} of {row['shape']}{settings}: {base} as it is, {other} as {row['way']}",
        "form_trials",
    )


def _inverses_are_multiplied(tables: Tables) -> bool:
    """Whether compiled code multiplies its inverses with few columns, and reads none otherwise."""
    columns = []
    for row in first_rank(rows(tables, "graphs", kind="post_grad")):
        if _INVERSE not in (row["text"] or ""):
            continue
        graph = read_graph(row["text"])
        made = (node.name for node in graph.operations if node.op == _INVERSE)
        for name in (each for inverse in made for each in graph.users[inverse]):
            size = tensor_sizes(graph.nodes[name].meta) or (0,)
            for reader in (graph.nodes[each] for each in graph.users[name]):
                result = tensor_sizes(reader.meta)
                if reader.op not in _PRODUCTS or not result or name in graph.outputs:
                    return False
                columns.append(result[-1] / max(1, size[-1]))
    return bool(columns) and max(columns) <= _FEW_COLUMNS


def _indices_are_repeated(tables: Tables) -> bool:
    """Whether compiled code scatters by indices that are copies of one column, and by no others."""
    found = []
    for row in first_rank(rows(tables, "graphs", kind="post_grad")):
        if "aten.scatter_" not in (row["text"] or ""):
            continue
        graph = read_graph(row["text"])
        for node in graph.operations:
            if not node.op.startswith(("aten.scatter_add", "aten.scatter_reduce")):
                continue
            index = graph.nodes[node.inputs[1]]
            while index.op in _COPIES and (tensor_sizes(index.meta) or (1, 1))[-1] > 1:
                index = graph.nodes[index.inputs[0]]
            sizes = tensor_sizes(index.meta)
            found.append(sizes is not None and (len(sizes) < 2 or sizes[-1] == 1))
    return bool(found) and all(found)


#: What has to be true of compiled code before a way is one.
_CONDITIONS = {SOLVE: _inverses_are_multiplied, EXPANDED: _indices_are_repeated}
