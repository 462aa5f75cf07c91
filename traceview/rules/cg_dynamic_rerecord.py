"""
## What it finds
`mode="reduce-overhead"` (or "max-autotune") with inputs of many sizes, or Python numbers of many
values: one cudagraph is recorded for each of them.

## Why it costs
A cudagraph replays one size only. Symbolic sizes save the recompiles, not the recordings: each new
size runs once to warm up, is recorded at its next call, and keeps its cudagraph from then on.

## Evidence
The sizes that torch recorded cudagraphs for (TORCH_LOGS=cudagraphs), more of them than the eight at
which torch itself warns. The cost is what the timed blocks with recordings in them took longer than
the same number of steady steps; where there are none, the time of the recordings alone. Where
every other compiled step or more meets a new size, nothing is steady: what a step takes longer
than in eager is the cost then.

A warning where the sizes are many and recording them takes a part of the steps that were watched;
else information: a few dozen sizes that all come early may be meant.

## What to do
Pad the inputs to a few sizes: steps of 64, or powers of two. Pass a Python number as a tensor on
the device: one cudagraph then does for every value. Or leave graphs with symbolic sizes
out of cudagraphs: `torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True`. Some of
their kernels may still be recorded: look at the log again.

## Settings
- `least_sizes`: recorded sizes of one function from which it is said.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_utils.py, `maybe_warning_due_to_dynamic_shape`
- torch/_inductor/config.py, `cudagraph_dynamic_shape_warn_limit`
- https://github.com/pytorch/pytorch/pull/131387
- https://github.com/pytorch/pytorch/issues/188913
- https://github.com/pytorch/pytorch/issues/196385
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules import _costs, _places, _recompiles
from traceview.rules._evidence import from_row
from traceview.rules._rows import Row, first_rank, rows
from traceview.rules.finding import Confidence, Cost, Evidence, Finding, Severity, Snippet
from traceview.tables import Tables
from traceview.torchtext.frames import readable_name
from traceview.words.numbers import milliseconds
from traceview.words.text import shorten

CODE = "TV513"
NEEDS = frozenset({"compiles", "cudagraph_events"})
GPU_ONLY = True

#: torch warns above eight (cudagraph_dynamic_shape_warn_limit).
LEAST_SIZES = 9
#: Of the compiled steps in blocks, so many sizes are met for the first time all the time.
MOST_NEW = 0.50
_ALWAYS = "what a step takes longer than in eager: most steps meet a new size"
#: Servers record this many sizes on purpose, before the first request.
_MEANT = 32
_SIZES = re.compile(r"Recording cudagraph tree for symint key (.+)")
_NUMBER = re.compile(r"\d{1,18}")
_RUN = re.compile(r"^\[([^\]]+)\]")
#: ``x.size()[0]``, ``x.stride()[0]`` and ``x.storage_offset()``.
_OF_TENSOR = "()"
_RECORDING = "cudagraph_recording"


def check(tables: Tables, *, least_sizes: int = LEAST_SIZES) -> Iterator[Finding]:
    """One finding a function."""
    for compile_id, trees in _sizes(tables).items():
        if len(trees) >= least_sizes:
            yield _finding(tables, compile_id, trees)


def _sizes(tables: Tables) -> dict[str, list[Row]]:
    """Compile → sizes → the event that a tree began for them.

    That event names no compile; the run that follows it does. Forward and backward share a compile
    and may name the same sizes in another order, or other ones: the one with more counts.
    """
    found: dict[tuple[str, int], dict[tuple[int, ...], Row]] = {}
    tree: tuple[tuple[int, ...], Row] | None = None
    for row in first_rank(rows(tables, "cudagraph_events")):
        text = row["reason"] or ""
        if row["event"] == "tree":
            sized = _SIZES.search(text)
            tree = (tuple(sorted(map(int, _NUMBER.findall(sized[1])))), row) if sized else None
        elif tree is not None and row["event"] in ("warmup", "record"):
            run = _RUN.match(text)
            key = run[1] if run else row["compile_id"] or "", len(tree[0])
            found.setdefault(key, {}).setdefault(*tree)
            tree = None
    most: dict[str, list[Row]] = {}
    for (compile_id, _), trees in found.items():
        most[compile_id] = max(most.get(compile_id, []), [*trees.values()], key=len)
    return most


def _finding(tables: Tables, compile_id: str, trees: list[Row]) -> Finding:
    compiles = first_rank(rows(tables, "compiles", compile_id=compile_id))[:1]
    owners = _places.Owners(tables)
    place = owners.caller(compiles[0]) or owners.code(compiles[0]).place if compiles else None
    total, about = _lost_s(tables)
    count, each = len(trees), _each_step_ms(tables, len(trees))
    cost = Cost(seconds=total, about=about) if each is None else Cost(each, None, _ALWAYS)
    name = f" of {readable_name(compiles[0]['co_name'])}" if compiles else ""
    numbers = _numbers(tables, compile_id)
    of_what = f"value of {', '.join(numbers)}" if numbers else "size that its inputs had"
    cure = (
        f"Pass {' and '.join(numbers)} in tensors on the device"
        if numbers
        else "Pad the inputs to a few sizes"
    )
    return Finding(
        code=CODE,
        rule="cg-dynamic-rerecord",
        severity=(
            _severity(tables, count, total) if each is None else _costs.severity(tables, each)
        ),
        title=f"{count} cudagraphs{name}: one for each {of_what}",
        explanation=(
            f"A cudagraph replays one {'value' if numbers else 'size'} only: each new one runs "
            "once to warm up, is recorded at its next call, and keeps its cudagraph."
        ),
        cost=cost,
        confidence=_confidence(total, each),
        location=place,
        about=_places.about(*compiles),
        evidence=tuple(_proof(tables, trees)),
        what_to_do=(
            f"{cure}, or leave graphs with symbolic sizes out of cudagraphs (launches are then "
            "made one by one; compare)."
        ),
        snippet=Snippet(
            "python", "torch._inductor.config.triton.cudagraph_skip_dynamic_graphs = True"
        ),
    )


def _numbers(tables: Tables, compile_id: str) -> list[str]:
    """Python numbers that are all that is symbolic in a compile; none where a size is."""
    found = first_rank(rows(tables, "symbols", compile_id=compile_id, event="create"))
    sources = [row["source_name"] or "" for row in found]
    if not all(sources) or any(_OF_TENSOR in source for source in sources):
        return []
    return list(dict.fromkeys(map(_recompiles.plain, sources)))


def _proof(tables: Tables, trees: list[Row]) -> Iterator[Evidence]:
    for row in first_rank(rows(tables, "cudagraph_events", event="dynamic_shapes"))[:1]:
        yield from_row(shorten(row["reason"]), "cudagraph_events", row)
    for row in trees[:2]:
        yield from_row(shorten(row["reason"]), "cudagraph_events", row)
    spans = _recordings(tables)
    if spans:
        last = max(row["step"] or 0 for row in spans)
        text = (
            f"{len(spans)} recordings of {milliseconds(_ms(spans) / len(spans))} each on average, "
            f"the last in step {last}"
        )
        yield Evidence(text, "compile_intervals")


def _recordings(tables: Tables) -> list[Row]:
    found = first_rank(rows(tables, "compile_intervals", trigger=_RECORDING))
    return [row for row in found if row["duration_ms"] is not None]


def _ms(spans: list[Row]) -> float:
    return float(sum(row["duration_ms"] for row in spans))


def _lost_s(tables: Tables) -> tuple[float | None, str]:
    """Seconds that the sizes cost so far, and what that figure is."""
    spans = _recordings(tables)
    steady = _costs.step_ms(tables, "compiled")
    dirty = [row for row in _blocks(tables) if row["compiles_inside"]]
    first_step = min((row["first_step"] or 0 for row in dirty), default=0)
    others = first_rank(rows(tables, "compile_intervals"))
    only = all(row["trigger"] == _RECORDING for row in others if (row["step"] or 0) >= first_step)
    if dirty and steady and only:
        longer = sum(max(0.0, row["duration_ms"] - row["steps"] * steady) for row in dirty) / 1e3
        inside = sum(row["compiles_inside"] for row in dirty)
        each = milliseconds(1e3 * longer / inside)
        about = (
            f"what timed blocks with {inside} recordings in them took longer, {each} a recording"
        )
        return longer, about
    if spans:
        return _ms(spans) / 1e3, "time of the recordings, without the runs that warm up"
    return None, "not measured"


def _each_step_ms(tables: Tables, sizes: int) -> float | None:
    """What a step loses, where most compiled steps meet a size that is new."""
    steps = sum(row["steps"] for row in _blocks(tables))
    eager, compiled = (_costs.step_ms(tables, stance) for stance in ("eager", "compiled"))
    if not steps or sizes < MOST_NEW * steps or eager is None or compiled is None:
        return None
    return compiled - eager if compiled > eager else None


def _confidence(total: float | None, each: float | None) -> Confidence:
    if each is not None:
        return "derived"
    return "measured" if total is not None else "heuristic"


def _blocks(tables: Tables) -> list[Row]:
    found = first_rank(rows(tables, "blocks", stance="compiled"))
    return [row for row in found if row["duration_ms"] is not None and row["steps"]]


def _severity(tables: Tables, count: int, total: float | None) -> Severity:
    """By the part that recording has in the steps that were timed."""
    steps = sum(row["steps"] for row in _blocks(tables))
    if count <= _MEANT or total is None or not steps:
        return "info"
    return _costs.severity(tables, 1e3 * total / steps)
