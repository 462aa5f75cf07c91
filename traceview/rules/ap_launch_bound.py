"""
## What it finds
Compiled steps in which the GPU mostly waits for the host to launch its next kernel, with what it
waits for the launches of compiled code.

## Why it costs
Kernels of a few microseconds finish before the host has launched the next one. Fusion leaves fewer
of them; what remains is limited by the CPU, and a faster GPU would change nothing.

## Evidence
The device is busy for less than 60 % of a compiled step as timed without the profiler, and in the
profiler window at least half of its idle time is before launches rather than at synchronizations or
inside cudagraphs. Where most launches are one library operator's, or those of equal work on several
tensors, or where compiled code itself reads values from the device, that line is named. Waits for
launches of code in no compiled graph, such as an optimizer's, are `ap-not-in-model`'s, and those
inside an operator that waits for the GPU itself, which no cudagraph can hold, are
`ind-extern-dominated`'s: without them the rest is 5 % of the step or more. Idle time that would go
if the step did not read values from the GPU is `ap-host-sync`'s.

A warning where compiling did not help. Where it did, nothing is wrong with the step: information,
ranked among the causes by its cost. Plain information where the launches of other code cost more,
or where asking for a cudagraph gains nothing: four launches per step or fewer, or a mode that asks
for cudagraphs already.

## What to do
`mode="reduce-overhead"` records the launches into a cudagraph and replays it with one call: it
needs fixed shapes and no writes into inputs. Or give each launch more work: a larger batch. Equal
work on several tensors can be done at once on one tensor that stacks them; or let Inductor put
their kernels into one launch (`torch._inductor.config.combo_kernels`). A choice by `torch.where`
computes both sides and waits for nothing.
Where a mode asks for cudagraphs and none is replayed, torch's reason is quoted, if it logged one;
`TORCHINDUCTOR_CUDAGRAPH_OR_ERROR=1` makes it an error (torch 2.10 and newer).

## Settings
- `most_busy_share`: part of the step that the device may be busy.
- `least_launch_share`: part of its idle time that must be before launches.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_profiling_torch_compile.html
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_trees.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from traceview.rules import _breaks, _edits
from traceview.rules._gain import at_first, idle_ms, launches, waiting
from traceview.rules.kit import (
    NOTABLE_SHARE,
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    compile_call,
    first,
    first_rank,
    frame,
    milliseconds,
    outcome,
    percent,
    rows,
    severity,
    shorten,
    step_ms,
    torch_version,
)

CODE = "TV502"
NEEDS = frozenset({"step_counts", "accounting"})
SEVERITIES = ("warning", "info")
#: What keeps launches out of a cudagraph, makes more of them, or delays them.
FOLLOWS = frozenset(
    {
        *_breaks.RULES,
        "gb-fragmented",
        "cg-skip-cpu",
        "cg-skip-mutation",
        "cap-debug-backend",
        "cap-suppressed-failure",
        "rc-limit-hit",
        "cg-dynamic-rerecord",
        "cg-moved-input",
        "ap-busy-thread",
        "ap-debug-switch",
        "ap-call-overhead",
        "ap-many-tensors",
        "ind-weight-casts",
        "ind-weight-layout",
    }
)
GPU_ONLY = True
EXPLAINS = frozenset({"launches_saved"})

#: torch's own profiling guide takes less than this for a sign of launch overhead.
MOST_BUSY_SHARE = 0.60
#: Launches must cause the larger part of the idle time.
LEAST_LAUNCH_SHARE = 0.50
#: A replay takes about as long on the host as a handful of launches.
FEW_LAUNCHES = 4
#: Where fewer of the launches are in graphs, much of the idle time is before launches that no
#: cudagraph takes over.
MOST_IN_GRAPHS = 0.75
_COMBINED = "torch._inductor.config.combo_kernels=True"
_CUDAGRAPH_MODES = ("reduce-overhead", "max-autotune")
#: Older ones may not know TORCHINDUCTOR_CUDAGRAPH_OR_ERROR.
_RAISES_SINCE = (2, 10)
_MORE_WORK = "give each launch more work with a larger batch."
_RECORD = (
    "Record the launches as a cudagraph, or give each launch more work with a larger batch. A "
    "cudagraph needs fixed shapes and no writes into inputs, keeps its memory, and the next call "
    "overwrites its results: clone what you keep."
)


def check(
    tables: Tables,
    *,
    most_busy_share: float = MOST_BUSY_SHARE,
    least_launch_share: float = LEAST_LAUNCH_SHARE,
) -> Iterator[Finding]:
    """At most one finding: the compiled step as a whole."""
    counts = first(tables, "step_counts", stance="compiled")
    step = step_ms(tables, "compiled")
    idle, launch = idle_ms(tables), idle_ms(tables, "launch")
    if not (counts and counts["device_busy_ms"] and step and idle and launch):
        return
    busy = counts["device_busy_ms"]
    # A line that reads values starves the GPU as well: what it costs is not the launches'.
    reads = first_rank(rows(tables, "read_places", stance="compiled"))
    launch = min(launch, min((row["without_ms"] for row in reads), default=step) - busy)
    if busy / step >= most_busy_share or launch < least_launch_share * idle:
        return
    eager = sum(row["waits_ms"] or 0.0 for row in first_rank(rows(tables, "outside_work")))
    own = launch * (1.0 - sum(each.share for each in tables.once(waiting))) - eager
    if own < NOTABLE_SHARE * step:
        return
    region = first(tables, "regions")
    way = _way(tables, counts, region)
    if source := first(tables, "launch_sources"):
        way = _of_one_thing(source, counts["launches"] or 0.0, way)
    made = frame(tables, "kernel_launches", stance="compiled", kind="launch")
    in_graphs = 1.0 if made.is_empty() else float(made["graph_key"].count() / made.height)
    launched = f"{launches(counts['launches'] or 0.0)} per step"
    if counts["graph_launches"]:
        launched += f", {counts['graph_launches']:.0f} of them of cudagraphs"
    elif not made.is_empty():
        launched += f", {percent(in_graphs)} of them in compiled graphs"
    before = f"{percent(launch / idle)} of it before launches"
    if eager:
        before += f" ({milliseconds(eager)} before those of code in no compiled graph)"
    kernels = counts["kernels"] or 0.0
    helped, main = outcome(tables) == "helped", way.gains and own >= eager
    yield Finding(
        code=CODE,
        rule="ap-launch-bound",
        severity="info" if helped or not main else severity(tables, own),
        title=f"Launch-bound: the GPU is busy for {percent(busy / step)} of a compiled step"
        + way.title,
        explanation=(
            f"Kernels take {milliseconds(busy)} of a step of {milliseconds(step)}: {kernels:.0f} "
            f"of {milliseconds(busy / max(1.0, kernels))} on average. The host cannot launch them "
            f"any faster.{way.explanation}"
        ),
        cost=Cost(own, None, "time of a compiled step in which the GPU waits for these launches"),
        confidence="measured" if in_graphs >= MOST_IN_GRAPHS else "derived",
        location=way.place,
        evidence=(
            Evidence(launched, "step_counts"),
            Evidence(f"idle {milliseconds(idle)} of a step, {before}", "accounting"),
        ),
        what_to_do=way.what_to_do,
        snippet=way.snippet,
        remedy=way.remedy,
        weighs=main,
    )


class _Way(NamedTuple):
    """What to do, where; ``title`` and ``explanation``: what the launches are for, if one thing.

    ``gains``: whether doing so may gain anything.
    """

    place: Location | None
    what_to_do: str
    snippet: Snippet | None = None
    remedy: tuple[str, ...] = ()
    title: str = ""
    explanation: str = ""
    gains: bool = True


def _of_one_thing(source: Row, launched: float, otherwise: _Way) -> _Way:
    """A row of ``launch_sources``; ``otherwise``: what to do where launches are for many things."""
    place = Location(source["file"], source["line"]) if source["file"] else None
    name, count = source["name"], source["count"]
    at = at_first(place)
    if source["kind"] == "read":
        return _Way(
            place,
            "Compute both sides and choose with torch.where, if that is cheap: nothing waits for "
            "it, and it fuses.",
            Snippet("python", "torch.where(condition, if_true(x), if_false(x))"),
            title=f"; {name}{at} waits for it {count:,.0f} times",
            explanation=f" {name} reads a value on the host: the host waits for all that it "
            "launched, and the GPU has nothing to do until it goes on.",
        )
    of_all = f"; {count:,.0f} of {launched:,.0f} launches are"
    if source["kind"] == "operator":
        return _Way(
            place,
            "Give it fewer and larger parts, or write it for the sizes here in operators that take "
            "the whole batch at once: Inductor fuses those.",
            remedy=otherwise.remedy,
            title=f"{of_all} {name.replace('::', '.')}'s{at}",
            explanation=" This operator launches kernels for each matrix or part, in eager and "
            "compiled code alike: Inductor calls the library for it.",
        )
    return _Way(
        place,
        "Put the tensors into one with a dimension more, once, where they are made, and compute "
        "them together. Where they can't be, record the launches as a cudagraph, or let Inductor "
        "put such kernels into one launch.",
        Snippet(
            "python",
            "batch = torch.stack(tensors)  # not: for tensor in tensors\n"
            'torch.compile(..., mode="reduce-overhead")  # or this\n'
            f"{_COMBINED.partition('=')[0]} = True  # or this, before the first call",
        ),
        otherwise.remedy or (_COMBINED,),
        title=f"{of_all} for equal work on {name} tensors{at}",
        explanation=" Inductor fuses what reads from each other. Equal work on separate tensors "
        "has a kernel for each, however small.",
    )


def _way(tables: Tables, counts: Row, region: Row | None) -> _Way:
    """By cudagraphs, or what to do where asking for them gains nothing."""
    place = compile_call(region)
    if counts["graph_launches"]:
        done = f"Cudagraphs are replayed already: {_MORE_WORK}"
        return _Way(place, done, gains=False)
    if region is not None and region["mode"] in _CUDAGRAPH_MODES:
        asked = f'mode="{region["mode"]}" asks for cudagraphs and none was replayed'
        skipped = first(tables, "cudagraph_events", event="skip")
        if skipped is None:
            log = Snippet("shell", "TORCH_LOGS=+cudagraphs python SCRIPT")
            shows = f"{asked}: torch's log shows which graphs it records."
            return _Way(place, shows, log, gains=False)
        why = f"torch skipped a graph due to {shorten(skipped['reason']).rpartition('due to ')[2]}"
        version = torch_version(tables)
        if version is None or version < _RAISES_SINCE:
            return _Way(place, f"{asked}: {why}.", gains=False)
        fails = f"{asked}: {why}. The command fails at the first graph that is skipped."
        raising = Snippet("shell", "TORCHINDUCTOR_CUDAGRAPH_OR_ERROR=1 python SCRIPT")
        return _Way(place, fails, raising, gains=False)
    if counts["launches"] is not None and counts["launches"] <= FEW_LAUNCHES:
        few = f"There are too few launches for a cudagraph to help: {_MORE_WORK}"
        return _Way(place, few, gains=False)
    if region is None or region["options"] is not None:  # next to what the call asks for
        return _Way(place, _RECORD, remedy=("torch._inductor.config.triton.cudagraphs=True",))
    if region["mode"] is not None:
        tuned = region["mode"] == "max-autotune-no-cudagraphs"
        mode = "max-autotune" if tuned else "reduce-overhead"
        return _Way(place, _RECORD, remedy=(f"mode={mode}",))

    # Under dynamic=False each size would be recorded separately.
    own = rows(tables, "compile_regions", pid=region["pid"], region_id=region["region_id"])
    static = rows(tables, "recompile_causes", size_reason="static")
    sizes = {row["compile_key"] for row in own} & {row["compile_key"] for row in static}
    varies = region["dynamic"] == "False" and bool(sizes)
    line = _edits.source_line(tables, place)
    asked = 'mode="reduce-overhead"'
    diff = _edits.added(line, asked, dropped="dynamic" if varies else None)
    call = diff or Snippet("python", f"torch.compile(..., {asked})")
    return _Way(place, _RECORD, call, ("mode=reduce-overhead",))
