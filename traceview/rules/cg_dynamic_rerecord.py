"""
## What it finds
`mode="reduce-overhead"` (or "max-autotune") with inputs of many sizes, or Python numbers of many
values: one cudagraph is recorded for each of them.

## Why it costs
A cudagraph replays one size only. Symbolic sizes save the recompiles, not the recordings: each new
size runs once to warm up, is recorded at its next call, and keeps its cudagraph from then on.

## Evidence
The sizes that torch recorded cudagraphs for (TORCH_LOGS=cudagraphs), or that its warning counts:
more than the eight at which torch warns. The cost is how much longer the timed blocks with
recordings in them took than the same number of steady steps; without such blocks, the time of the
recordings alone. Where most compiled steps meet a new size, or the device waits for most of the
step in calls that warm up or record, nothing is steady: then the cost is how much longer a step
takes than its call replayed on the same inputs, which records nothing; without replays, than in
eager.

A warning where there are many sizes and recording them takes a part of the steps that were timed.
Otherwise information: a few dozen sizes that all come early may be intended.

## What to do
Pad the inputs to a few sizes: multiples of 64, or powers of two. Pass a Python number as a tensor
on the device: one cudagraph then serves every value. Or leave graphs with symbolic sizes
out of cudagraphs: `torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True`. Some of
their kernels may still be recorded: look at the log again.

## Settings
- `least_sizes`: recorded sizes of one function from which it is reported.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_utils.py, `maybe_warning_due_to_dynamic_shape`
- torch/_inductor/config.py, `cudagraph_dynamic_shape_warn_limit`
- https://github.com/pytorch/pytorch/pull/131387
- https://github.com/pytorch/pytorch/issues/188913
- https://github.com/pytorch/pytorch/issues/196385
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median

from traceview.derive import causes
from traceview.rules import _recompiles
from traceview.rules.kit import (
    Confidence,
    Cost,
    Evidence,
    Finding,
    Owners,
    Row,
    Severity,
    Snippet,
    Tables,
    about,
    compile_call,
    first,
    first_rank,
    from_row,
    milliseconds,
    rows,
    severity,
    shorten,
    step_ms,
)
from traceview.torchtext.cudagraphs import recorded_for, run_id, tree_sizes
from traceview.words import names

CODE = "TV513"
NEEDS = frozenset({"cudagraph_events"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True
EXPLAINS = frozenset({causes.RECORDING})

#: torch warns above eight (cudagraph_dynamic_shape_warn_limit).
LEAST_SIZES = 9
#: Where this part of the compiled steps meets a new size, there is no steady step. Each recording
#: stands for two steps: the size's first call warms up.
MOST_NEW = 0.50
_CALLS_OF_SIZE = 2
#: Replayed blocks from which on they show what a step takes that records nothing.
_ENOUGH_BLOCKS = 3
#: Servers record this many sizes on purpose, before the first request.
_INTENDED = 32
#: ``x.size()[0]``, ``x.stride()[0]`` and ``x.storage_offset()``.
_OF_TENSOR = "()"
_LEAVE_OUT = "torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True"
_RECORDING = "cudagraph_recording"


def check(tables: Tables, *, least_sizes: int = LEAST_SIZES) -> Iterator[Finding]:
    """One finding for each function."""
    spans = first_rank(rows(tables, "compile_intervals", trigger=_RECORDING))
    spans = [row for row in spans if row["duration_ms"] is not None]
    warned = first_rank(rows(tables, "cudagraph_events", event="dynamic_shapes"))[:1]
    found = _sizes(tables)
    for compile_id, (trees, graphs) in found.items():
        recorded = _recorded(tables, compile_id, len(trees), graphs)
        if len(found) == 1:  # torch's warning names no compile
            recorded = max([recorded, *(row["count"] or 0 for row in warned)])
        if recorded < least_sizes:
            continue
        compiles = first_rank(rows(tables, "compiles", compile_id=compile_id))[:1]
        place = Owners(tables).called(compiles[0]) if compiles else None
        place = place or compile_call(first(tables, "regions", is_anchor=True))
        cost, level = _cost(tables, recorded, spans)
        confidence: Confidence = "heuristic" if cost.seconds is None else "measured"
        confidence = confidence if cost.ms_per_step is None else "derived"
        name = f" of {names.function(compiles[0]['co_name'])}" if compiles else ""
        # Python numbers that are all that is symbolic in a compile; none where a size is.
        symbols = first_rank(rows(tables, "symbols", compile_id=compile_id, event="create"))
        sources = [row["source_name"] or "" for row in symbols]
        sized = not all(sources) or any(_OF_TENSOR in source for source in sources)
        numbers = [] if sized else list(dict.fromkeys(map(_recompiles.plain, sources)))
        each, fix = "size of its inputs", "Pad the inputs to a few sizes"
        if numbers:
            each = f"value of {', '.join(numbers)}"
            fix = f"Pass {' and '.join(numbers)} in tensors on the device"
        evidence = [
            from_row(shorten(row["reason"]), "cudagraph_events", row)
            for row in (*warned, *trees[:2])
        ]
        if spans:
            mean = milliseconds(sum(row["duration_ms"] for row in spans) / len(spans))
            last = max(row["step"] or 0 for row in spans)
            text = f"{len(spans)} recordings of {mean} on average, the last in step {last}"
            evidence.append(Evidence(text, "compile_intervals"))
        yield Finding(
            code=CODE,
            rule="cg-dynamic-rerecord",
            severity=level,
            due_ms=_recording_ms(tables),
            title=f"{recorded} cudagraphs{name}: one for each {each}",
            explanation=(
                f"A cudagraph replays one {'value' if numbers else 'size'} only: each new one "
                "runs once to warm up, is recorded at its next call, and keeps its cudagraph."
            ),
            cost=cost,
            confidence=confidence,
            location=place,
            about=about(*compiles),
            evidence=tuple(evidence),
            what_to_do=(
                f"{fix}, or leave graphs with symbolic sizes out of cudagraphs (launches are "
                "then made one at a time; compare)."
            ),
            snippet=Snippet("python", _LEAVE_OUT),
            remedy=("torch._inductor.config.triton.cudagraph_skip_dynamic_graphs=True",),
        )


def _sizes(tables: Tables) -> dict[str, tuple[list[Row], int]]:
    """Compile → the events that a tree began, one for each of its sizes; and cudagraphs per size.

    Such an event names no compile; the run that follows it does. Forward and backward share a
    compile and may name the same sizes in another order, or other ones: the one with more counts.
    """
    found: dict[tuple[str, int], dict[tuple[int, ...], Row]] = {}
    begun: Counter[str] = Counter()
    tree: tuple[tuple[int, ...], Row] | None = None
    for row in first_rank(rows(tables, "cudagraph_events")):
        text = row["reason"] or ""
        if row["event"] == "tree":
            sizes = tree_sizes(text)
            tree = None if sizes is None else (sizes, row)
        elif tree is not None and row["event"] in ("warmup", "record"):
            key = run_id(text) or row["compile_id"] or "", len(tree[0])
            begun[key[0]] += 1
            found.setdefault(key, {}).setdefault(*tree)
            tree = None
    most: dict[str, list[Row]] = {}
    for (compile_id, _), trees in found.items():
        most[compile_id] = max(most.get(compile_id, []), [*trees.values()], key=len)
    return {key: (trees, max(1, round(begun[key] / len(trees)))) for key, trees in most.items()}


def _recorded(tables: Tables, compile_id: str, sizes: int, graphs: int) -> int:
    """Sizes of a compile: the log of trees ends where blocks begin, that of recordings goes on.

    One size may be recorded again, for an input that moved or after another graph.
    """
    events = first_rank(rows(tables, "cudagraph_events", event="record"))
    texts = [text for row in events if run_id(text := row["reason"] or "") == compile_id]
    inputs = {recorded_for(text) for text in texts}
    return max(sizes, (len(texts) if None in inputs else len(inputs)) // graphs)


def _recording_ms(tables: Tables) -> float | None:
    """What recording takes of a compiled step."""
    made = rows(tables, "accounting", stance="compiled", category=causes.RECORDING)
    return sum(row["ms"] or 0.0 for row in first_rank(made)) or None


def _cost(tables: Tables, sizes: int, spans: list[Row]) -> tuple[Cost, Severity]:
    timed = [
        row
        for row in first_rank(rows(tables, "blocks", stance="compiled"))
        if row["duration_ms"] is not None and row["steps"]
    ]
    blocks = [row for row in timed if not row["replayed"]]
    replays = [row["duration_ms"] / row["steps"] for row in timed if row["replayed"]]
    steps = sum(row["steps"] for row in blocks)
    eager, compiled = (step_ms(tables, stance) for stance in ("eager", "compiled"))
    dirty = [row for row in blocks if row["compiles_inside"]]
    first_step = min((row["first_step"] or 0 for row in dirty), default=0)
    others = first_rank(rows(tables, "compile_intervals"))
    only = all(row["trigger"] == _RECORDING for row in others if (row["step"] or 0) >= first_step)
    inside = sum(row["compiles_inside"] for row in dirty) if only else 0
    often = steps and max(sizes, _CALLS_OF_SIZE * inside) >= MOST_NEW * steps
    if compiled and (often or (_recording_ms(tables) or 0.0) >= MOST_NEW * compiled):
        slower, text = compiled - (eager or compiled), "in eager"
        if len(replays) >= _ENOUGH_BLOCKS:
            slower, text = compiled - median(replays), "the same call replayed, without recording"
        if slower > 0:
            text = f"how much longer a step takes than {text}: most steps meet a new size"
            return Cost(slower, None, text), severity(tables, slower)

    # Seconds that the sizes cost so far, and what that figure is.
    total, text = None, "not measured"
    if dirty and compiled and only:
        longer = sum(max(0.0, row["duration_ms"] - row["steps"] * compiled) for row in dirty)
        total = longer / 1e3
        text = (
            f"how much longer timed blocks with {inside} recordings in them took, "
            f"{milliseconds(longer / inside)} per recording"
        )
    elif spans:
        total = float(sum(row["duration_ms"] for row in spans)) / 1e3
        text = "time of the recordings, without the runs that warm up"
    many = sizes > _INTENDED and total is not None and steps
    level = severity(tables, 1e3 * (total or 0.0) / steps) if many else "info"
    return Cost(seconds=total, about=text), level
