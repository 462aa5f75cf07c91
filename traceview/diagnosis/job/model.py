"""The story of a job, as plain data: what a post-mortem adds to the diagnosis of one rank.

Seconds are host seconds. Moments (``…_at_s``) count from the start of the job's first compile, by
each rank's own clock. None means "not recorded". Lists are ordered by what matters and cut;
``left_out`` says by how much. ``basis`` is how a figure is known: ``measured``, ``derived`` or
``heuristic``.
"""

from __future__ import annotations

import msgspec

#: What a span of the timeline is, by the index that stands in it.
SPAN_KINDS = ("compile", "compile_alone", "wait", "failed")


class Ranks(msgspec.Struct, frozen=True):
    """A set of ranks: how many, and in words ("ranks 0–16 and 18–63", "process 4711")."""

    count: int
    text: str


class Attempt(msgspec.Struct, frozen=True):
    """One start of a job; ``ended_at`` and ``began_at`` are ISO 8601 (UTC)."""

    pass_name: str
    job: str | None
    attempt: int
    ranks: Ranks
    began_at: str | None
    ended_at: str | None
    files: int | None
    compile_seconds: float | None
    failures: int
    shown: bool = False


class JobCompile(msgspec.Struct, frozen=True):
    """How long the job compiled: ``seconds`` in which at least one rank did, each counted once.

    ``rank_seconds`` add up over ranks. ``alone_seconds``: of ``seconds``, when ``most_rank`` and
    no other rank compiled. ``waited_seconds``: how long others waited for a rank that compiled,
    each instant once; None where that was not recorded. ``phases`` are exclusive and add up to
    ``rank_seconds``.
    """

    seconds: float | None
    rank_seconds: float | None
    median_seconds: float | None
    most_seconds: float | None
    most_rank: str | None
    alone_seconds: float | None
    ranks: int
    ranks_compiling: int
    compiles: int
    first_at_s: float | None
    last_at_s: float | None
    waited_seconds: float | None
    waited_basis: str | None
    phases: dict[str, float]


class RankRow(msgspec.Struct, frozen=True):
    """One rank: what it compiled, and how long others waited for it."""

    rank: str
    seconds: float | None
    phases: dict[str, float]
    compiles: int
    recompiles: int
    graph_breaks: int | None
    failures: int
    hits: int | None
    misses: int | None
    bypasses: int | None
    first_at_s: float | None
    last_at_s: float | None
    waited_seconds: float | None
    waited_for_seconds: float | None
    straggler: bool = False


class Lane(msgspec.Struct, frozen=True):
    """The timeline of one rank: ``spans`` are (start_s, seconds, index into ``kinds``)."""

    rank: str
    spans: tuple[tuple[float, float, int], ...]


class JobTimeline(msgspec.Struct, frozen=True):
    """All ranks on one axis; spans closer than ``resolution_s`` are drawn as one."""

    seconds: float
    resolution_s: float
    kinds: tuple[str, ...]
    lanes: tuple[Lane, ...]
    left_out: int = 0


class JobCause(msgspec.Struct, frozen=True):
    """Why a function took long: ``kind`` is recompiles, cache_miss, autotuning, failed or phase."""

    kind: str
    text: str
    seconds: float | None = None


class JobFrame(msgspec.Struct, frozen=True):
    """One function: its compiles on all ranks, the most expensive first."""

    name: str
    file: str | None
    line: int | None
    user_file: str | None
    user_line: int | None
    rank_seconds: float
    most_seconds: float
    most_rank: str
    ranks: Ranks
    compiles: int
    recompiles: int
    graph_breaks: int | None
    hits: int | None
    misses: int | None
    failures: int
    phases: dict[str, float]
    causes: tuple[JobCause, ...]
    co_name: str | None = None


class Recompile(msgspec.Struct, frozen=True):
    """One recompile: the guard that failed, the value it expected and the one it met."""

    compile_id: str
    guard: str
    kind: str
    source_name: str | None
    old: str | None
    new: str | None
    seconds: float | None


class ChainLink(Recompile, frozen=True):
    """A recompile of a job, with the moment when it began."""

    at_s: float | None


class JobChain(msgspec.Struct, frozen=True):
    """The recompiles of one function on the ranks that went through the same ones."""

    name: str
    file: str | None
    line: int | None
    ranks: Ranks
    recompiles: int
    seconds: float | None
    limit_hit: bool
    links: tuple[ChainLink, ...]
    left_out: int = 0
    co_name: str | None = None


class BreakPlace(msgspec.Struct, frozen=True):
    """One line where graphs break for one reason; ``times``: compiles that met it."""

    file: str | None
    line: int | None
    function: str | None
    gb_id: str | None
    reason: str
    times: int


class JobBreak(BreakPlace, frozen=True):
    """One line where graphs break, over all ranks; ``times`` add up over them."""

    ranks: Ranks
    everywhere: bool


class CacheRow(msgspec.Struct, frozen=True):
    """Look-ups of one of torch's caches by how they ended, over all ranks."""

    cache: str
    counts: dict[str, int]
    ranks: Ranks


class Bypass(msgspec.Struct, frozen=True):
    """A reason that kept graphs out of a cache."""

    cache: str
    reason: str
    times: int
    ranks: Ranks


class Side(msgspec.Struct, frozen=True):
    """One value of what differs, with the ranks (and the attempt) that had it."""

    ranks: Ranks
    value: str | None
    outcome: str | None = None
    pass_name: str | None = None


class KeyDifference(msgspec.Struct, frozen=True):
    """What differs in the cache keys of one compile: ``between`` ranks, attempts or starts.

    ``component`` is torch's name for it (inductor_config[max_autotune], gm, example_inputs[0]);
    None: the keys are the same, and one side's cache did not hold it. ``kind`` is settings, graph,
    inputs, versions, folder or unknown. ``seconds``: what the misses took beyond a hit.
    """

    cache: str
    component: str | None
    kind: str
    between: str
    sides: tuple[Side, ...]
    functions: tuple[str, ...]
    compiles: int
    seconds: float | None
    text: str


class JobCaches(msgspec.Struct, frozen=True):
    """Caches over all ranks."""

    rows: tuple[CacheRow, ...] = ()
    bypasses: tuple[Bypass, ...] = ()
    differences: tuple[KeyDifference, ...] = ()
    left_out: int = 0


class RankGroup(msgspec.Struct, frozen=True):
    """Ranks that agree, with what they have in common."""

    ranks: Ranks
    text: str


class Divergence(msgspec.Struct, frozen=True):
    """Something that ranks do differently: ``kind`` is frames, graph, guards or collectives."""

    kind: str
    name: str
    file: str | None
    line: int | None
    text: str
    groups: tuple[RankGroup, ...]
    before: str | None = None
    after: str | None = None
    place_file: str | None = None
    place_line: int | None = None


class Straggler(msgspec.Struct, frozen=True):
    """A rank that compiled much longer than the median of the others; ``parts`` say with what."""

    rank: str
    seconds: float
    median_seconds: float
    why: str
    parts: tuple[JobCause, ...]
    basis: str


class Wait(msgspec.Struct, frozen=True):
    """A compile that other ranks waited for."""

    rank: str
    name: str
    file: str | None
    line: int | None
    compile_id: str | None
    at_s: float | None
    seconds: float
    ranks: Ranks
    basis: str
    evidence: str


class LateCompile(msgspec.Struct, frozen=True):
    """A function that was compiled when the job was past its start."""

    name: str
    file: str | None
    line: int | None
    ranks: Ranks
    compiles: int
    seconds: float
    first_step: int | None
    last_step: int | None
    first_at_s: float | None
    cause: str | None


class LateCompiles(msgspec.Struct, frozen=True):
    """Compiles after the start: ``basis`` is steps, profiler_steps or time; ``text`` says which."""

    basis: str
    after_step: int | None
    after_s: float | None
    compiles: int
    seconds: float
    rank_seconds: float
    text: str
    rows: tuple[LateCompile, ...]
    left_out: int = 0


class ConfigDifference(msgspec.Struct, frozen=True):
    """A version or setting that is not the same on all ranks."""

    section: str
    name: str
    sides: tuple[Side, ...]


class JobFailure(msgspec.Struct, frozen=True):
    """Compiles that failed alike: ``outcome`` is failed, limit or unfinished.

    ``attempt``: the start that they belong to, where it is an earlier one of the same job.
    """

    outcome: str
    fail_type: str | None
    reason: str | None
    name: str
    file: str | None
    line: int | None
    function: str | None
    ranks: Ranks
    times: int
    first_at_s: float | None
    everywhere: bool
    attempt: int | None = None


class Tuning(msgspec.Struct, frozen=True):
    """Autotuning of one operator, over all ranks; ``seconds`` add up over them."""

    op: str
    shapes: str | None
    seconds: float | None
    times: int
    ranks: Ranks
    winners: tuple[str, ...]


class JobTuning(msgspec.Struct, frozen=True):
    """What autotuning cost: ``rank_seconds`` over all ranks, ``most_seconds`` on one."""

    rank_seconds: float
    most_seconds: float
    most_rank: str
    rows: tuple[Tuning, ...]
    left_out: int = 0


class IdleOnCompile(msgspec.Struct, frozen=True):
    """A profile's idle time that falls on compiles: of its own rank, or of another one."""

    rank: str
    file: str | None
    window_s: float
    idle_s: float
    own_compile_s: float
    other_compile_s: float
    basis: str
    text: str


class JobFile(msgspec.Struct, frozen=True):
    """A file that was read, or that could not be: then ``error`` says why.

    ``records`` are those of a structured log, ``rows`` what it gave to all tables; ``damaged``:
    pieces of damage in it.
    """

    name: str
    kind: str
    ranks: Ranks
    size_bytes: int | None
    bytes_read: int | None
    records: int | None
    rows: int | None
    damaged: int
    error: str | None


class Job(msgspec.Struct, frozen=True):
    """What a job did, over all its ranks.

    ``sentence`` is the ``headline`` (how long it compiled) and the ``remarks`` (what matters most).
    """

    sentence: str
    attempt: Attempt
    compile: JobCompile
    timeline: JobTimeline
    frames: tuple[JobFrame, ...] = ()
    frames_left_out: int = 0
    frames_left_out_seconds: float = 0.0
    ranks: tuple[RankRow, ...] = ()
    ranks_left_out: int = 0
    waits: tuple[Wait, ...] = ()
    stragglers: tuple[Straggler, ...] = ()
    caches: JobCaches = msgspec.field(default_factory=JobCaches)
    recompiles: tuple[JobChain, ...] = ()
    breaks: tuple[JobBreak, ...] = ()
    divergences: tuple[Divergence, ...] = ()
    late: LateCompiles | None = None
    configs: tuple[ConfigDifference, ...] = ()
    failures: tuple[JobFailure, ...] = ()
    autotuning: JobTuning | None = None
    idle: tuple[IdleOnCompile, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    files: tuple[JobFile, ...] = ()
    left_out: dict[str, int] = {}
    notes: tuple[str, ...] = ()
    headline: str = ""
    remarks: tuple[str, ...] = ()
