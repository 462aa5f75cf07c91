"""
## What it finds
Compiles on one rank while another rank waited: the ranks do not compile the same things at the same
time.

## Why it costs
Ranks synchronize in collectives: a gradient's reduction, a barrier. A rank that compiles arrives
late, and all others wait for it. Where every rank compiles its own variants in its own steps, the
job waits for the sum of them instead of the longest; a wait beyond the process group's timeout (10
minutes with NCCL) ends the job.

## Evidence
Compiles of one rank, by the clock of the machine, and the steps of another one meanwhile: that rank
compiled nothing, and waited for at least four fifths of the time, which is how much longer than
usual its step took. Ranks that compile one function in one step are left out, however long each
takes, unless one found in a cache what the other had to compile. The cost is the time lost, counted
once, measured.

Less than `least_seconds` in all is not reported. A warning from `fewest_compiles` compiles of one
function on, where a wait reaches `longest_wait` seconds, or where the waits are a quarter of a job
whose length is known. Otherwise information.

## What to do
Let all ranks see a new shape in the same step: use one seed for what decides it, or padding to the
longest of all ranks; or make the size symbolic everywhere before the first call; or run every shape
once on every rank before training, and a barrier. Code that one rank alone runs (evaluation,
logging) is best left in eager there. Give all ranks one cache folder, or each an empty one.

`torch._dynamo.config.enable_compiler_collectives` (`TORCH_COMPILER_COLLECTIVES=1`) has the ranks
agree on symbolic sizes while they compile, and `torch.compiler.set_enable_guard_collectives(True)`
(torch 2.8) has all compile when one must. Both hang if ranks do not all run the same program, and
the second costs a collective at every compiled call.

## Settings
- `least_seconds`: waits that add up to less are not reported.
- `fewest_compiles`: from this many compiles of one function on that others waited for, a warning.
- `longest_wait`: a single wait of this many seconds is a warning too.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.compiler.set_enable_guard_collectives.html
- https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html
- torch/_dynamo/distributed.py
- torch/_dynamo/config.py, `enable_compiler_collectives`
- https://github.com/pytorch/pytorch/pull/155558
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal

import msgspec

from traceview.derive.intervals import length
from traceview.rules import _recompiles, _starts
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Owners,
    Row,
    Severity,
    Snippet,
    Tables,
    about,
    compile_call,
    from_row,
    plural,
    region_of,
    rows,
    seconds,
    shorten,
)
from traceview.tables import grouped

CODE = "TV802"
NEEDS = frozenset({"rank_waits", "compiles"})
SEVERITIES = ("warning", "info")
#: What changes between calls causes the compiles. One rank that evaluates is no such change.
FOLLOWS = frozenset({"rc-*"})

#: Less does not matter to any real job.
LEAST_SECONDS = 1.0
#: A compile or two may be a start where ranks are not in step yet.
FEWEST_COMPILES = 3
#: A tenth of NCCL's timeout: a larger model, or a slower disk, reaches it.
LONGEST_WAIT = 60.0


Kind = Literal["only", "cache", "steps"]
_SHOWN = 3
_WHY: dict[Kind, str] = {
    "only": "No other rank ever compiled anything for this line.",
    "cache": "The graph is the same on all of them.",
    "steps": "Here each rank compiles its own variants in its own steps.",
}
_ALONE = (
    "If the other ranks do not run this call, run it on all of them, or leave it in eager on the "
    "one that does: it is seldom worth a compile that every rank waits for."
)
_EAGER = 'with torch.compiler.set_stance("force_eager"):\n    ...  # this call'
_CACHE = (
    "Give all ranks one cache folder (TORCHINDUCTOR_CACHE_DIR on a disk that all of them reach), "
    "or fill every rank's own before the job starts."
)
_STEPS = (
    "Let all ranks see a new shape or value in the same step: use one seed for what decides it, or "
    "pad to the longest of all ranks. Or run each of them once on every rank before training, then "
    "dist.barrier()."
)
_SYMBOLIC = "Or make the size symbolic on every rank before the first call."


class _Turn(msgspec.Struct, frozen=True):
    """One compile that others waited for, its backward included (waits: never empty)."""

    waits: tuple[Row, ...]
    compile: Row

    @property
    def seconds(self) -> float:
        return float(sum(row["wait_ms"] for row in self.waits) / 1e3)

    def text(self) -> str:
        first = self.waits[0]
        step = "" if first["step"] is None else f" in step {first['step']}"
        return (
            f"rank {first['rank']} compiles {_recompiles.called(self.compile)} "
            f"({first['compile_id']}){step}: rank {first['waiting_rank']} waits for "
            f"{seconds(self.seconds)}"
        )


def check(
    tables: Tables,
    *,
    least_seconds: float = LEAST_SECONDS,
    fewest_compiles: int = FEWEST_COMPILES,
    longest_wait: float = LONGEST_WAIT,
) -> Iterator[Finding]:
    """One finding a line that calls what is compiled."""
    reasons = {row["compile_key"]: row for row in rows(tables, "recompile_causes")}
    for place, (ranks, turns) in _by_place(tables).items():
        # Every moment once, however many ranks compiled or waited in it.
        waits = [(int(row["started_us"]), row["wait_ms"]) for turn in turns for row in turn.waits]
        lost = length((start, int(start + 1e3 * ms)) for start, ms in waits) / 1e6
        if lost < least_seconds:
            continue
        turns.sort(key=lambda turn: turn.seconds, reverse=True)
        functions = Counter(
            (*_recompiles.frame_of(turn.compile), turn.compile["co_name"]) for turn in turns
        )
        often = max(functions.values()) >= fewest_compiles
        long = turns[0].seconds >= longest_wait
        grade: Severity = "warning" if often or long else _starts.severity(tables, lost)

        kind: Kind = "only"
        if len(ranks) > 1:
            kind = "cache" if turns[0].waits[0]["found_in_cache"] else "steps"
        region = region_of(tables, turns[0].compile["compile_key"])
        call = compile_call(region)
        remedy, snippet = _remedy(tables, kind, turns, region)

        name, rank = _recompiles.called(turns[0].compile), turns[0].waits[0]["rank"]
        what = {
            "only": f"Only rank {rank} compiles {name} here",
            "cache": f"Rank {rank} compiles {name}, which another rank has in its cache",
            "steps": f"Ranks compile {name} in different steps",
        }[kind]

        evidence = [from_row(turn.text(), "rank_waits", turn.compile) for turn in turns[:_SHOWN]]
        if len(turns) > _SHOWN:
            rest = f"{plural(len(turns) - _SHOWN, 'more compile')} that another rank waited for"
            evidence.append(Evidence(rest, "rank_waits"))
        # What the slowest compile of each rank was for.
        known = [turn for turn in turns if turn.compile["compile_key"] in reasons]
        slowest = {turn.waits[0]["rank"]: turn for turn in reversed(known)}
        for rank, turn in sorted(slowest.items())[:_SHOWN]:
            row = reasons[turn.compile["compile_key"]]
            text = f"rank {rank}, {row['compile_id']}: {shorten(row['guard'])}"
            evidence.append(from_row(text, "recompiles", row))
        yield Finding(
            code=CODE,
            rule="dd-rank-skew",
            severity=grade,
            title=f"{what}: others wait for {seconds(lost)}",
            explanation=(
                "Ranks wait for each other in collectives. A rank that compiles what the others "
                f"do not compile in that step delays all of them. {_WHY[kind]}"
            ),
            cost=Cost(seconds=lost, about="time in which a rank waited while another compiled"),
            confidence="measured",
            location=place,
            evidence=tuple(evidence),
            what_to_do=remedy,
            snippet=snippet,
            also_at=() if call is None or call == place else (call,),
            about=about(*(turn.compile for turn in turns)),
        )


def _by_place(tables: Tables) -> dict[Location | None, tuple[set[int], list[_Turn]]]:
    """The user's line that called it → the ranks that compiled there, and whom others waited for.

    Only lines where a rank waited.
    """
    waits = grouped(rows(tables, "rank_waits"), "compile_key")
    owners = Owners(tables)
    ranks: dict[Location | None, set[int]] = {}
    turns: dict[Location | None, list[_Turn]] = {}
    for row in rows(tables, "compiles", is_forward=True) if waits else ():
        place = owners.called(row)
        ranks.setdefault(place, set()).add(row["rank"])
        if own := waits.get(row["compile_key"]):
            turns.setdefault(place, []).append(_Turn(tuple(own), row))
    return {place: (ranks[place], found) for place, found in turns.items()}


def _remedy(
    tables: Tables, kind: Kind, turns: list[_Turn], region: Row | None
) -> tuple[str, Snippet | None]:
    """What to do, and where they have names, what makes the sizes that changed symbolic."""
    if kind == "only":
        return _ALONE, Snippet("python", _EAGER)
    if kind == "cache":
        return _CACHE, None
    keys = {turn.compile["compile_key"] for turn in turns}
    sizes = (
        cause.marks("maybe_mark_dynamic")
        for cause in _recompiles.by_source(tables)
        if cause.row["compile_key"] in keys and cause.row["kind"] in ("size", "shape_guard")
    )
    marks = next(filter(None, sizes), None) if region and region["dynamic"] != "False" else None
    return (f"{_STEPS} {_SYMBOLIC}", Snippet("python", marks)) if marks else (_STEPS, None)
