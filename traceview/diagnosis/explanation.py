"""Where the milliseconds went, as plain data: the part of the diagnosis that adds up.

Milliseconds are per step unless the name says otherwise; ``clock`` is ``device`` or ``host``. None
means "not recorded"; an empty tuple means that the table it is made of is not there or is empty.
"""

from __future__ import annotations

import msgspec


class AccountDetail(msgspec.Struct, frozen=True):
    """What stands behind a category of ``accounting``: a call, an operator, a user's line."""

    stance: str
    category: str
    what: str
    file: str | None
    line: int | None
    ms: float
    count: float | None
    clock: str


class ProfilerCost(msgspec.Struct, frozen=True):
    """What the profiler itself cost in one stance, and what the accounting leaves unexplained."""

    stance: str
    profiled_step_ms: float | None
    timed_step_ms: float | None
    beside_step_ms: float | None
    events: float | None
    event_cost_us: float | None
    unexplained_ms: float | None
    exposed_communication_ms: float | None = None
    hidden_communication_ms: float | None = None


class EffectRow(msgspec.Struct, frozen=True):
    """One part of an effect: ``ms`` is compiled less eager."""

    what: str
    group_id: int | None
    file: str | None
    line: int | None
    eager_ms: float | None
    compiled_ms: float | None
    ms: float


class Effect(msgspec.Struct, frozen=True):
    """One step of the waterfall from the eager median to the compiled one; negative ms: saved."""

    effect: str
    ms: float
    eager_ms: float | None
    compiled_ms: float | None
    clock: str
    confidence: str
    rows: tuple[EffectRow, ...] = ()


class GroupKernel(msgspec.Struct, frozen=True):
    """One kernel of a group, in one stance, at one line."""

    stance: str
    name: str
    category: str
    cpu_op: str | None
    file: str | None
    line: int | None
    compile_id: str | None
    ops: tuple[str, ...]
    count: float
    ms: float
    how: str | None


class MatchGroup(msgspec.Struct, frozen=True):
    """Eager kernels and the compiled ones that replaced them. ``kind`` as in ``match_groups``."""

    group_id: int
    kind: str
    matched: bool
    eager_kernels: float
    eager_ms: float | None
    compiled_kernels: float
    compiled_ms: float | None
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    compile_ids: tuple[str, ...]
    clock: str
    how: str | None
    kernels: tuple[GroupKernel, ...] = ()
    shape: str | None = None  # of a library's work: MxN, K of a product, sizes of operands else


class Matching(msgspec.Struct, frozen=True):
    """All groups, slowest first, and how much of each stance's busy time they match (0 to 1)."""

    groups: tuple[MatchGroup, ...] = ()
    eager_share: float | None = None
    compiled_share: float | None = None
    sourced_share: float | None = None  # of compiled busy time that leads to a graph's nodes
    left_out: int = 0


class Ceiling(msgspec.Struct, frozen=True):
    """What the device did at its best, measured in this run."""

    kind: str
    dtype: str | None
    value: float
    unit: str
    size: str | None
    detail: str | None
    runs: int | None
    clock: str | None


class KernelLimit(msgspec.Struct, frozen=True):
    """One kernel at one shape against the ceilings; fields as in table ``kernel_limits``."""

    stance: str
    name: str
    category: str
    compile_id: str | None
    shapes: str | None
    dtype: str | None
    count: float
    ms: float
    clock: str
    bytes: int | None
    bytes_from: str | None
    flops: int | None
    flops_from: str | None
    gb_s: float | None
    tflop_s: float | None
    floor_ms: float | None
    of_ceiling: float | None
    bound: str | None
    ceiling: str | None
    kernels: float | None = None
    bytes_kind: str | None = None
    flops_kind: str | None = None
    ceiling_from: str | None = None


class StepLimit(msgspec.Struct, frozen=True):
    """A step against the limits of the device.

    ``sentence``: the ``headline`` (what the limit is), what fusing could save and launches cost.
    """

    stance: str
    step_ms: float | None
    busy_ms: float | None
    known_ms: float | None
    limit_ms: float | None
    fusible_ms: float | None
    idle_ms: float | None
    launch_idle_ms: float | None
    sentence: str | None
    headline: str | None = None


class TimelineSpan(msgspec.Struct, frozen=True):
    """A stretch of one lane; times in ms after the step's start, as profiled."""

    start_ms: float
    duration_ms: float
    label: str
    category: str


class TimelineLane(msgspec.Struct, frozen=True):
    """The host thread (``host``) or one stream (``stream 7``), spans in order of start."""

    name: str
    spans: tuple[TimelineSpan, ...]


class StepTimeline(msgspec.Struct, frozen=True):
    """One profiled step (the median one) of one stance."""

    stance: str
    step: int | None
    duration_ms: float
    lanes: tuple[TimelineLane, ...]
    left_out: int = 0  # spans too short to be drawn, merged or dropped


class FusionNote(msgspec.Struct, frozen=True):
    """One thing to say about fusion; fields as in table ``fusion_notes``."""

    kind: str
    text: str
    reason: str | None
    compile_id: str | None
    kernels: tuple[str, ...]
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    bytes_saved: int | None
    setting: str | None
    times: int


class GraphPass(msgspec.Struct, frozen=True):
    """What one pass changed in one graph; fields as in table ``graph_passes``."""

    compile_id: str | None
    aot_id: str | None
    stage: str
    nodes_before: int | None
    nodes_after: int | None
    patterns: int | None
    read_bytes_before: int | None
    read_bytes_after: int | None
    removed: tuple[str, ...]
    added: tuple[str, ...]


class CallPart(msgspec.Struct, frozen=True):
    """One part of the way into the generated code; fields as in table ``call_path``."""

    part: str
    region_id: int | None
    compile_id: str | None
    calls: float | None
    us_per_call: float | None
    ms: float | None
    guards: int | None
    ns_per_guard: float | None
    us_less_profiler: float | None = None
    entries: int | None = None


class GuardCost(msgspec.Struct, frozen=True):
    """A compile's guards, or one guard; fields as in table ``guard_costs``."""

    compile_id: str | None
    co_name: str | None
    guard: str | None
    kind: str | None
    source_name: str | None
    file: str | None
    line: int | None
    guards: int | None
    us: float | None
    how: str | None


class PhaseSpan(msgspec.Struct, frozen=True):
    """One phase on the compile timeline; ``depth`` 0 is the compile itself.

    ``part``: the part of compiling that it belongs to, ``label`` that part in words.
    """

    compile_id: str | None
    name: str
    label: str
    started_s: float
    seconds: float
    self_seconds: float | None
    depth: int
    parallel: bool = False  # ran in a worker while something else went on
    part: str | None = None


class WorkerTime(msgspec.Struct, frozen=True):
    """Kernels that workers compiled, and how long the compile itself waited for them.

    ``seconds`` add up over workers; Triton's hold those that the process compiled on its own.
    """

    compile_id: str | None
    what: str  # Triton kernels, C++ files
    count: int
    seconds: float
    waited_seconds: float


class FirstCallPart(msgspec.Struct, frozen=True):
    """One part of the first call's latency; the parts of one region add up."""

    region_id: int | None
    part: str
    ms: float


class Autotuned(msgspec.Struct, frozen=True):
    """One autotuning table: who won and by how much."""

    op: str
    shapes: str | None
    winner: str
    winner_ms: float | None
    runner_up: str | None
    runner_up_ms: float | None
    best_other_backend: str | None
    best_other_backend_ms: float | None
    choices: int
    seconds: float | None


class Explanation(msgspec.Struct, frozen=True):
    """Everything of the diagnosis that accounts for milliseconds."""

    waterfall: tuple[Effect, ...] = ()
    details: tuple[AccountDetail, ...] = ()
    profiler: tuple[ProfilerCost, ...] = ()
    matching: Matching = msgspec.field(default_factory=Matching)
    ceilings: tuple[Ceiling, ...] = ()
    limits: tuple[KernelLimit, ...] = ()
    step_limits: tuple[StepLimit, ...] = ()
    timelines: tuple[StepTimeline, ...] = ()
    fusion: tuple[FusionNote, ...] = ()
    passes: tuple[GraphPass, ...] = ()
    call_path: tuple[CallPart, ...] = ()
    guards: tuple[GuardCost, ...] = ()
    phases: tuple[PhaseSpan, ...] = ()
    workers: tuple[WorkerTime, ...] = ()
    first_calls: tuple[FirstCallPart, ...] = ()
    warm_first_calls: tuple[FirstCallPart, ...] = ()  # of the same script on the then warm cache
    autotuning: tuple[Autotuned, ...] = ()
