"""The diagnosis: plain data that every report is made of. ``to_json`` is the public contract.

Contract: docs/diagnosis.md and ``traceview/diagnosis/schema.json``; ``FORMAT`` is raised when a key
changes its meaning or goes away. Every figure says its unit in its name; None means "not recorded".
"""

from __future__ import annotations

from typing import Any

import msgspec

from traceview.diagnosis.explanation import Explanation
from traceview.diagnosis.job.model import BreakPlace, Job, Recompile
from traceview.rules.finding import Finding
from traceview.rules.used import RulesUsed

FORMAT = 2


class Reason(msgspec.Struct, frozen=True):
    """One named part of the difference between an eager and a compiled step.

    ``effect`` is one of the waterfall, ``what`` the category of the accounting within it where the
    effect has several. ``ms`` is compiled less eager, ``share`` its part of the difference: parts
    that go the other way are negative; None where the outcome is neutral, whose difference is
    within the noise. Small parts are one, ``small_parts``. ``basis``: measured, derived or
    heuristic. ``finding``: code of the finding that explains most of it.

    Where there is no difference to explain, the effect is ``not_captured`` (what kept code from
    being compiled) or ``failure``, and ``ms`` and ``share`` are None.
    """

    effect: str
    ms: float | None
    share: float | None
    basis: str
    finding: str | None
    what: str | None = None


class Verdict(msgspec.Struct, frozen=True):
    """Did it help: ``outcome`` is helped, neutral, hurt, failed, not_compiled or not_measured.

    ``why`` and ``unexplained_ms`` add up to ``difference_ms`` (compiled less eager). ``advice``:
    codes of findings on what could still be gained; they explain no part of the difference.
    ``sentence`` is the ``headline``, its ``support`` in brackets, and the ``remarks``.
    """

    outcome: str
    sentence: str = ""
    speedup: float | None = None
    speedup_interval: tuple[float, float] | None = None
    eager_ms: float | None = None
    compiled_ms: float | None = None
    clock: str | None = None
    blocks: int = 0
    blocks_measured: int = 0
    replayed: int = 0
    steps_timed: int = 0
    basis: str = "none"
    ended: str | None = None
    headline: str = ""
    support: str = ""
    remarks: tuple[str, ...] = ()
    difference_ms: float | None = None
    why: tuple[Reason, ...] = ()
    unexplained_ms: float | None = None
    advice: tuple[str, ...] = ()


class AccountRow(msgspec.Struct, frozen=True):
    """Milliseconds per step of one category in one stance; ``kind``: busy, idle, overhead, …"""

    category: str
    ms: float
    kind: str
    count: float | None = None
    clock: str = "host"


class StanceCounts(msgspec.Struct, frozen=True):
    """What one step does in one stance, from the profiler window."""

    step_ms: float | None = None
    device_busy_ms: float | None = None
    device_idle_ms: float | None = None
    kernels: float | None = None
    launches: float | None = None
    graph_launches: float | None = None
    syncs: float | None = None
    compiled_regions: float | None = None
    cache_lookup_ms: float | None = None
    gap_ms: float | None = None
    page_faults: float | None = None
    peak_bytes: int | None = None
    peak_reserved_bytes: int | None = None
    peak_source: str | None = None


class Region(msgspec.Struct, frozen=True):
    """One compiled callable and its part of a step of the headline.

    From ``speedup`` on: figures of its own, where blocks of its own steps were timed; else
    ``not_measured`` says why there are none. ``headline``: the verdict is about its steps.
    """

    region_id: int
    name: str
    kind: str
    call_file: str | None
    call_line: int | None
    arguments: dict[str, Any]
    calls: int | None
    calls_per_step: float | None
    eager_ms: float | None
    compiled_ms: float | None
    share: float | None
    compile_seconds: float | None
    compiles: int | None
    graph_breaks: int | None
    recompiles: int | None
    headline: bool = False
    outcome: str | None = None
    speedup: float | None = None
    speedup_interval: tuple[float, float] | None = None
    step_eager_ms: float | None = None
    step_compiled_ms: float | None = None
    blocks: int | None = None
    script_ms: float | None = None
    not_measured: str | None = None
    sentence: str = ""


class KernelGroup(msgspec.Struct, frozen=True):
    """All executions of one kernel (on a CPU: operator) in one stance.

    ``count`` and ``ms`` are per step: None where no step is marked.
    """

    stance: str
    name: str
    category: str
    count: float | None
    ms: float | None
    share: float
    clock: str
    compile_id: str | None
    fused_ops: tuple[str, ...] = ()
    user_lines: tuple[str, ...] = ()
    total_count: int | None = None
    total_ms: float | None = None


class FusedKernel(msgspec.Struct, frozen=True):
    """Eager operator sequence → generated kernel: one kernel with what it swallowed."""

    kernel_name: str
    category: str
    compile_id: str
    fused_ops: tuple[str, ...]
    user_lines: tuple[str, ...]
    ms: float | None
    count: float | None
    clock: str | None
    source_code: str | None
    eager_ms: float | None = None
    eager_count: float | None = None


class CompileRow(msgspec.Struct, frozen=True):
    """One compile on the timeline."""

    compile_id: str
    name: str
    file: str | None
    line: int | None
    outcome: str
    started_s: float | None
    seconds: float | None
    phases: dict[str, float]
    ops: int | None
    guards: int | None
    reason: str | None


class RecompileLink(Recompile, frozen=True):
    """One link of a recompile chain, with the compile whose guard failed."""

    failed_compile_id: str | None


class RecompileChain(msgspec.Struct, frozen=True):
    """All recompiles of one function."""

    name: str
    file: str | None
    line: int | None
    compiles: int
    limit_hit: bool
    links: tuple[RecompileLink, ...]


class GraphBreakSite(BreakPlace, frozen=True):
    """One place in the user's source where graphs break, with torch's explanation and hints."""

    explanation: str | None
    hints: tuple[str, ...]
    frame_skipped: bool


class Graph(msgspec.Struct, frozen=True):
    """One graph with its generated code."""

    compile_id: str
    kind: str
    name: str
    op_count: int | None
    graph_text: str | None
    output_code: str | None
    kernels: tuple[str, ...] = ()


class CompileLine(msgspec.Struct, frozen=True):
    """A line that calls torch.compile."""

    file: str
    line: int


class SourceExcerpt(msgspec.Struct, frozen=True):
    """Lines of the run's own copy of a file: ``lines`` are (number, text)."""

    file: str
    line: int
    lines: tuple[tuple[int, str], ...]


class NotChecked(msgspec.Struct, frozen=True):
    """A rule that had nothing to read, and what it would have needed."""

    rule: str
    code: str
    needs: str
    command: str | None = None


class OutputCheck(msgspec.Struct, frozen=True):
    """One output of one run against eager's; fields as in table ``output_checks``."""

    run: str | None
    backend: str | None
    output: str | None
    dtype: str | None
    elements: int | None
    max_abs_diff: float | None
    rms_diff: float | None
    rmse: float | None
    eager_rmse: float | None
    cosine: float | None
    differing: int | None
    limit: float | None
    same: bool | None
    why: str | None
    what: str | None = None


class OutputDifference(msgspec.Struct, frozen=True):
    """One result that no rounding explains; fields as in table ``output_differences``."""

    what: str | None
    output: str
    stage: str | None
    direction: str
    relative_error: float | None
    eager_error: float | None
    max_abs_diff: float | None
    differing: int | None
    why: str | None


class OwnCode(msgspec.Struct, frozen=True):
    """The script's own compiled code is wrong: fields as in table ``end_checks``.

    ``recorded``: its cudagraph is, and what it replays is not. ``operators``: the user's in it.
    """

    name: str
    relative_error: float
    noise: float
    recorded: bool
    operators: tuple[str, ...]
    constant: str | None
    file: str | None
    line: int | None


class ComparedOutputs(msgspec.Struct, frozen=True):
    """One compiled callable: whether its outputs agree with eager's (``outcome``), and all checks.

    ``own_code`` is set where the code that the script compiled is wrong, and none compiled again.
    ``why`` they were not compared; ``reference_why`` there is no run in float64; ``file`` and
    ``line`` of its torch.compile call.
    """

    region_id: int
    name: str
    outcome: str
    why: str | None
    reference: str | None
    reference_why: str | None
    draws_random: bool
    checks: tuple[OutputCheck, ...] = ()
    gradients: bool | None = None
    gradients_why: str | None = None
    random_state_same: bool | None = None
    file: str | None = None
    line: int | None = None
    differences: tuple[OutputDifference, ...] = ()
    own_code: OwnCode | None = None


class ReadingRow(msgspec.Struct, frozen=True):
    """Damage of one kind in one file."""

    file: str
    kind: str
    times: int
    first_line: int | None
    example: str | None


class Reading(msgspec.Struct, frozen=True):
    """What was read and what could not be."""

    records: int
    unreadable: int
    unknown_records: int = 0
    rows: tuple[ReadingRow, ...] = ()


class CompileTime(msgspec.Struct, frozen=True):
    """Cold (and, where measured, warm) compile seconds; phases are exclusive and add up."""

    seconds: float | None
    warm_seconds: float | None
    phases: dict[str, float]
    frames: tuple[dict[str, Any], ...]
    first_call_ms: float | None = None


class Diagnosis(msgspec.Struct, frozen=True):
    """Everything a report says."""

    verdict: Verdict
    break_even_steps: int | None
    compile_time: CompileTime
    accounting: dict[str, tuple[AccountRow, ...]]
    counts: dict[str, StanceCounts]
    regions: tuple[Region, ...]
    findings: tuple[Finding, ...]
    excerpts: tuple[SourceExcerpt, ...]
    not_checked: tuple[NotChecked, ...]
    reading: Reading
    environment: dict[str, Any]
    kernels: tuple[KernelGroup, ...] = ()
    fused: tuple[FusedKernel, ...] = ()
    compiles: tuple[CompileRow, ...] = ()
    recompiles: tuple[RecompileChain, ...] = ()
    graph_breaks: tuple[GraphBreakSite, ...] = ()
    graphs: tuple[Graph, ...] = ()
    pairs: tuple[dict[str, Any], ...] = ()
    outputs: tuple[ComparedOutputs, ...] = ()
    #: Lines that call torch.compile and had not run when the run was stopped.
    unreached: tuple[CompileLine, ...] = ()
    explanation: Explanation = msgspec.field(default_factory=Explanation)
    #: What a whole job did, in a post-mortem; None for an ordinary run.
    job: Job | None = None
    rules: RulesUsed = msgspec.field(default_factory=RulesUsed)
    notes: tuple[str, ...] = ()
    links: dict[str, str] = {}
    target: str = ""
    created: str | None = None
    traceview: str = ""
