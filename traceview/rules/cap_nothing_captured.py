"""
## What it finds
A compiled callable that Dynamo traced and captured nothing of: no graph came out of any of its
frames.

## Why it costs
The time for tracing is spent, each call checks guards, and all of the work runs in eager.

## Evidence
Calls of the callable, the compiles that fell into them, and that each of them ended as `skipped` or
`empty`, without a graph. Typical: DistributedDataParallel around a plain `nn.Sequential`, whose
frames all lie in torch's own files; a module that Dynamo does not support, such as an LSTM; a
function that holds no tensor operation.

It is information if other compiled callables were captured and this one just holds nothing.

## What to do
Compile the module inside the wrapper, `DistributedDataParallel(torch.compile(net))`, or a function
or module of your own that does the work.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.skipped_functions.html
- https://docs.pytorch.org/docs/stable/notes/ddp.html
- torch/_dynamo/trace_rules.py, `MOD_SKIPLIST`
- https://github.com/pytorch/pytorch/issues/108966
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from traceview.derive.outcome import CUT_SHORT
from traceview.rules import _breaks
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Row,
    Snippet,
    Tables,
    about,
    compile_call,
    compile_seconds,
    first_rank,
    from_row,
    plural,
    region_of,
    rows,
    seconds,
    shorten,
    times,
)

CODE = "TV113"
NEEDS = frozenset({"regions", "compiles", "compile_regions"})
SEVERITIES = ("warning", "info")
EXPLAINS = frozenset({"compile", "idle_compile", "overheads_added"})
#: A break that gave a frame up names the user's line; then this is what follows from it.
FOLLOWS = frozenset(
    {"gb-frame-skipped", "gb-item", "gb-dynamic-output-shape", "gb-side-effect-io"}
    | {"cap-customop-no-fake", "cap-fails-in-eager"}
)

_WRAPPERS = frozenset({"DistributedDataParallel", "DataParallel", "FullyShardedDataParallel"})


class _Why(NamedTuple):
    title: str
    words: str
    remedy: str
    snippet: Snippet | None = None


def check(tables: Tables) -> Iterator[Finding]:
    """One finding per compiled callable without any graph."""
    compiles: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in first_rank(rows(tables, "compiles")):
        if region := region_of(tables, row["compile_key"]):
            compiles[region["pid"], region["region_id"]].append(row)
    captured = any(
        row["graph_op_count"] or row["outcome"] == "ok" for own in compiles.values() for row in own
    )
    ends = {row["exit_kind"] for row in rows(tables, "runs")}
    in_doubt = 1 if ends & CUT_SHORT else 0  # calls: the first one may still have been compiling
    for region in first_rank(rows(tables, "regions")):
        found = compiles[region["pid"], region["region_id"]]
        left_in_eager = found and all(
            row["outcome"] in ("skipped", "empty") and not row["graph_op_count"] for row in found
        )
        if not left_in_eager or (region["calls"] or 0) <= in_doubt:
            continue

        # The break that is to blame: one that gave a frame up, else the first.
        keys = {row["compile_key"] for row in found}
        breaks = [row for row in rows(tables, "break_sites") if keys & set(row["compile_keys"])]
        broken = next((row for row in breaks if row["frame_skipped"]), next(iter(breaks), None))
        why = _why(region, broken)
        traced = f"called {times(region['calls'])}, {plural(len(found), 'frame')} traced"
        evidence = [Evidence(traced, "regions")]
        for row in found[:2]:
            text = f"compile {row['compile_id']} of {row['co_name']} ended as {row['outcome']}"
            took = f" after {seconds(us / 1e6)}" if (us := row["duration_us"]) else ""
            evidence.append(from_row(text + took, "compiles", row))
        if broken:
            evidence += _breaks.Site((broken,), None).evidence()
        yield Finding(
            code=CODE,
            rule="cap-nothing-captured",
            severity="info" if captured and broken is None else "warning",
            title=why.title,
            explanation=why.words,
            cost=Cost(
                seconds=compile_seconds(found),
                about="spent on tracing; what compiling would save is not known",
            ),
            confidence="heuristic",
            location=compile_call(region),
            about=about(*found),
            evidence=tuple(evidence),
            what_to_do=why.remedy,
            snippet=why.snippet,
        )


def _why(region: Row, broken: Row | None) -> _Why:
    nothing = f"Dynamo captures nothing of {region['name']}"
    if region["name"] in _WRAPPERS and not (broken and broken["frame_skipped"]):
        return _Why(
            f"{nothing}: what it wraps is torch's own code",
            f"{region['name']} breaks the graph in its own code, and Dynamo then looks for frames "
            "to start with further in. It does not start in torch's own files, and the module "
            "inside has no other: a plain nn.Sequential or a single layer.",
            "Compile the module inside, before you wrap it.",
            Snippet("python", f"model = {region['name']}(torch.compile(net))"),
        )
    if broken is None:
        return _Why(
            f"{nothing}: it finds no tensor operation",
            "It has no tensor operation that a graph could hold, or none in the frames that Dynamo "
            "starts with.",
            "Compile the function or module that does the work, or remove torch.compile here.",
        )
    hint = shorten(next((h for h in broken["hints"] or () if "issue" not in h), None), 200)
    reason = shorten(broken["gb_type"] or broken["reason"], 80)
    return _Why(
        f"{nothing}: {reason}",
        f"Dynamo leaves each frame in eager: {reason}.",
        "Remove what breaks, or compile the function or module inside that does the work."
        + (f" torch's hint: {hint.rstrip('.')}." if hint else ""),
    )
