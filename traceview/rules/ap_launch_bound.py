"""
## What it finds
Compiled steps in which the GPU mostly waits for the host to launch its next kernel.

## Why it costs
Kernels of a few microseconds finish before the host has launched the next one. Fusing made fewer
of them; what is left is bound by the CPU, and a faster GPU would change nothing.

## Evidence
The device is busy for less than 60 % of a compiled step as timed without the profiler, and at least
half of what it idles lies, in the profiler window, before launches rather than at synchronisations
or inside cudagraphs. What the GPU would idle no more if the step did not read values from it is
`ap-host-sync`'s. It is information where asking for a cudagraph gains nothing: four launches a step
or fewer, or a mode that asks for cudagraphs already.

## What to do
`mode="reduce-overhead"` records the launches into a cudagraph and replays it with one call: it
wants fixed shapes and no writes into inputs. Or give each launch more work: a larger batch.
Launches of eager code, such as an optimizer's, need that code to be compiled first. Where a mode
asks for cudagraphs and none is replayed, torch's reason is quoted, if it logged one;
`TORCHINDUCTOR_CUDAGRAPH_OR_ERROR=1` makes an error of it (torch 2.10 and newer).

## Settings
- `most_busy_share`: part of the step that the device may be busy.
- `least_launch_share`: part of its idle time that must lie before launches.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_profiling_torch_compile.html
- https://docs.pytorch.org/docs/stable/torch.compiler_inductor_profiling.html
- https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
- torch/_inductor/cudagraph_trees.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _costs, _edits, _places, _reads, _sizes, _versions
from traceview.rules._device import idle_ms
from traceview.rules._families import GRAPH_BREAKS
from traceview.rules._rows import Row, first, frame
from traceview.rules.finding import Confidence, Cost, Evidence, Finding, Snippet
from traceview.tables import Tables
from traceview.words.numbers import milliseconds, percent
from traceview.words.text import shorten

CODE = "TV502"
NEEDS = frozenset({"step_counts", "accounting"})
#: What keeps launches out of a cudagraph, or makes more of them.
FOLLOWS = GRAPH_BREAKS | {
    "gb-fragmented", "cg-skip-cpu", "cg-skip-mutation", "cap-debug-backend",
    "cap-suppressed-failure", "rc-limit-hit", "cg-dynamic-rerecord",
}  # fmt: skip
GPU_ONLY = True

#: torch's own profiling guide takes less than this for a sign of launch overhead.
MOST_BUSY_SHARE = 0.60
#: The larger part of the idle time must be the launches' fault.
LEAST_LAUNCH_SHARE = 0.50
#: A replay takes about as long on the host as a handful of launches.
FEW_LAUNCHES = 4
#: Below that part, much of the idle time lies before launches that no cudagraph takes over.
MOST_IN_GRAPHS = 0.75
_CUDAGRAPH_MODES = ("reduce-overhead", "max-autotune")
_LOG = "TORCH_LOGS=+cudagraphs python SCRIPT"
_OR_ERROR = "TORCHINDUCTOR_CUDAGRAPH_OR_ERROR=1 python SCRIPT"
#: Older ones may not know that variable.
_RAISES_SINCE = (2, 10)
_MORE_WORK = "give each launch more work, a larger batch."
_REMEDY = (
    "Record the launches as a cudagraph, or give each launch more work with a larger batch. A "
    "cudagraph wants fixed shapes and no writes into inputs, keeps its memory, and the next call "
    "overwrites its results: clone what is kept."
)


def check(
    tables: Tables,
    *,
    most_busy_share: float = MOST_BUSY_SHARE,
    least_launch_share: float = LEAST_LAUNCH_SHARE,
) -> Iterator[Finding]:
    """At most one finding: the compiled step as a whole."""
    counts = first(tables, "step_counts", stance="compiled")
    step = _costs.step_ms(tables, "compiled")
    idle, launch = idle_ms(tables, "compiled"), idle_ms(tables, "compiled", "launch")
    if not (counts and counts["device_busy_ms"] and step and idle and launch):
        return
    busy = counts["device_busy_ms"] / step
    launch = min(launch, _left_without_reads(tables, step) - counts["device_busy_ms"])
    if busy >= most_busy_share or launch < least_launch_share * idle:
        return
    region = first(tables, "regions")
    instead = _instead(tables, counts, region)
    what_to_do, snippet = instead or (_REMEDY, _snippet(tables, region))
    yield Finding(
        code=CODE,
        rule="ap-launch-bound",
        severity="info" if instead else _costs.severity(tables, launch),
        title=f"The GPU works {percent(busy)} of a compiled step and waits for launches otherwise",
        explanation=(
            f"{counts['kernels'] or 0:.0f} kernels of {_each(counts)} on average need "
            f"{milliseconds(counts['device_busy_ms'])} of a step of {milliseconds(step)}; the host "
            "cannot launch them any faster."
        ),
        cost=Cost(launch, None, "time of a compiled step in which the GPU waits for launches"),
        confidence=_confidence(tables),
        location=_places.compile_call(region) if region else None,
        evidence=_proof(tables, counts, idle, launch),
        what_to_do=what_to_do,
        snippet=snippet,
    )


def _left_without_reads(tables: Tables, step: float) -> float:
    """ms of a step of which the dearest read of values is gone: it starves the GPU as well."""
    return min((place.without_ms for place in tables.once(_reads.places)), default=step)


def _instead(tables: Tables, counts: Row, region: Row | None) -> tuple[str, Snippet | None] | None:
    """What to do, and to run, where asking for a cudagraph would gain nothing; None elsewhere."""
    if counts["graph_launches"]:
        return f"Cudagraphs are replayed already: {_MORE_WORK}", None
    if region is not None and region["mode"] in _CUDAGRAPH_MODES:
        return _asked_in_vain(tables, region["mode"])
    if counts["launches"] is not None and counts["launches"] <= FEW_LAUNCHES:
        return f"A cudagraph has little to gather here: {_MORE_WORK}", None
    return None


def _asked_in_vain(tables: Tables, mode: str) -> tuple[str, Snippet | None]:
    asked = f'mode="{mode}" asks for cudagraphs and none was replayed'
    skipped = first(tables, "cudagraph_events", event="skip")
    if skipped is None:
        return f"{asked}: torch's log says which graphs it records.", Snippet("shell", _LOG)
    why = f"torch left a graph out due to {shorten(skipped['reason']).rpartition('due to ')[2]}"
    version = _versions.torch_version(tables)
    if version is None or version < _RAISES_SINCE:
        return f"{asked}: {why}.", None
    until = "The command fails at the first graph left out, until none is."
    return f"{asked}: {why}. {until}", Snippet("shell", _OR_ERROR)


def _confidence(tables: Tables) -> Confidence:
    share = _in_graphs(tables)
    return "derived" if share is not None and share < MOST_IN_GRAPHS else "measured"


def _proof(tables: Tables, counts: Row, idle: float, launch: float) -> tuple[Evidence, ...]:
    share = percent(launch / idle)
    text = f"idle {milliseconds(idle)} of a step, {share} of it before launches"
    return Evidence(_launches(tables, counts), "step_counts"), Evidence(text, "accounting")


def _launches(tables: Tables, counts: Row) -> str:
    launches = counts["launches"] or 0.0
    found = f"{launches:.0f} launches per step"
    if counts["graph_launches"]:
        return f"{found}, {counts['graph_launches']:.0f} of them of cudagraphs"
    share = _in_graphs(tables)
    return found if share is None else f"{found}, {percent(share)} of them in compiled graphs"


def _in_graphs(tables: Tables) -> float | None:
    """Part of the launches that a cudagraph could take over; None where none was recorded."""
    made = frame(tables, "kernel_launches", stance="compiled", kind="launch")
    return None if made.is_empty() else float(made["graph_key"].count() / made.height)


def _each(counts: Row) -> str:
    return milliseconds(counts["device_busy_ms"] / max(1.0, counts["kernels"] or 1.0))


def _snippet(tables: Tables, region: Row | None) -> Snippet | None:
    if region is None or region["mode"] is not None or region["options"] is not None:
        return None
    line = _edits.source_line(tables, _places.compile_call(region))
    asked, dropped = 'mode="reduce-overhead"', "dynamic" if _varies(tables, region) else None
    diff = _edits.added(line, asked, dropped=dropped)
    return diff or Snippet("python", f"torch.compile(..., {asked})")


def _varies(tables: Tables, region: Row) -> bool:
    """Whether dynamic=False had its sizes compiled one by one, each with a cudagraph then."""
    sizes = tables.once(_sizes.Sizes)
    found = (sizes.static_region(row) for row, reason in sizes.rows if reason == "static")
    return any(each and each["region_id"] == region["region_id"] for each in found)
