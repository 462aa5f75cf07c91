"""
## What it finds
A graph that DDPOptimizer split into many pieces, one for each gradient bucket of
DistributedDataParallel.

## Why it costs
The splits let a bucket's gradients be reduced while the backward of the next piece runs. Each piece
is a graph of its own: it is compiled, wrapped and entered separately, forward and backward, and
nothing fuses across a split. With many ranks and long pieces that pays off. With small pieces,
entering them takes longer than the communication that is hidden, and a job of one process has none
to hide.

## Evidence
More pieces of one graph than `most_buckets`, from torch's structured log. The cost is the host time
of the wrappers around all pieces but one and of the Python that calls one after the other, as
profiled and taken as part of the timed step; on a GPU only what the device idles meanwhile. The
evidence says which order was used, compile inside DistributedDataParallel or around it: torch
splits in both.

Information; a warning where it takes a few percent of the step and gains nothing: the job is one
process; or, on GPUs, less communication than that overlapped with compute. On a CPU the gain from
overlapping cannot be measured.

## What to do
Give DistributedDataParallel a larger `bucket_cap_mb`: fewer splits, and a longer last reduction
that nothing hides. Or set `torch._dynamo.config.optimize_ddp = False` before the first call: one
graph, and no gradient is reduced before the whole backward has run. In a job of one process, set
that. `optimize_ddp = "python_reducer"` keeps one graph and the overlap, but only with compiled
autograd, and torch calls it experimental. Whether torch.compile is inside DistributedDataParallel
or around it makes no difference here.

## Settings
- `most_buckets`: up to this many pieces of one graph are not reported.

## References
- https://docs.pytorch.org/docs/stable/torch.compiler_faq.html
- https://docs.pytorch.org/docs/stable/notes/ddp.html
- torch/_dynamo/backends/distributed.py, `DDPOptimizer`
- torch/_dynamo/config.py, `optimize_ddp`
- https://github.com/pytorch/pytorch/issues/108966
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from traceview.derive.facts.places import stack
from traceview.rules import _recompiles
from traceview.rules.kit import (
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
    plural,
    region_of,
    rows,
    severity,
)

CODE = "TV801"
NEEDS = frozenset({"ddp_buckets", "compiles"})
SEVERITIES = ("warning", "info")

#: torch's own buckets (1 MiB, then 25 MiB each) make as many of a model of 80 MiB.
MOST_BUCKETS = 4
_MIB = 1 << 20
#: DistributedDataParallel's own default, and what four pieces leave of most models.
_DEFAULT_MB = 25
_DDP, _ENTRY = "torch/nn/parallel/distributed.py", "torch/_dynamo/eval_frame.py"
#: Around each piece, and the Python that calls one after the other.
_PARTS = ("runtime_wrappers", "compiled_region")
_ONE_GRAPH = "torch._dynamo.config.optimize_ddp = False  # before the first call"


def check(tables: Tables, *, most_buckets: int = MOST_BUCKETS) -> Iterator[Finding]:
    """One finding a function, about the compile of it that was cut most."""
    compiles = {row["compile_key"]: row for row in rows(tables, "compiles", is_forward=True)}
    worst: dict[_recompiles.Frame, list[Row]] = {}
    found = first_rank(rows(tables, "ddp_buckets"))
    for _, every in groupby(found, key=itemgetter("compile_key")):
        pieces = list(every)
        attempt = pieces[-1]["attempt"]  # the last one counts
        pieces = [row for row in pieces if row["attempt"] == attempt]
        compile_ = compiles.get(pieces[0]["compile_key"])
        if compile_ is not None and len(pieces) > most_buckets:
            known = worst.setdefault(_recompiles.frame_of(compile_), pieces)
            if len(pieces) > len(known):
                worst[_recompiles.frame_of(compile_)] = pieces
    for pieces in worst.values():
        yield _finding(tables, compiles[pieces[0]["compile_key"]], pieces)


def _finding(tables: Tables, compile_: Row, pieces: list[Row]) -> Finding:
    ms, entered = _cost_ms(tables, compile_, len(pieces))
    world = first(tables, "environment", section="torch", name="world_size")
    alone = world is not None and world["value"] == "1"
    counts = first(tables, "step_counts", stance="compiled")
    hidden = counts["hidden_communication_ms"] if counts else None  # null without a GPU
    if alone:
        gained = "This job is one process: there is nothing to reduce, so the splits gain nothing."
    elif hidden is None:
        gained = "A profile without a GPU cannot show what the overlap gains."
    else:
        overlapped = f"{milliseconds(hidden)} of communication overlapped with compute"
        gained = f"In the profiled step {overlapped}."
    # A warning only where the splits are known to gain less than they cost.
    grade: Severity = "info"
    gain_ms = 0.0 if alone else hidden
    if ms is not None and gain_ms is not None and gain_ms < ms:
        grade = severity(tables, ms - gain_ms)

    # Which of the two stands on the stack first.
    found = [(n, each.file) for n, each in enumerate(stack(compile_))]
    entry, ddp = (next((n for n, f in found if f.endswith(end)), None) for end in (_ENTRY, _DDP))
    order = "compiled under DistributedDataParallel"
    if entry is not None and ddp is not None:
        order = f"torch.compile is {'around' if entry < ddp else 'inside'} "
        order += "DistributedDataParallel here; torch splits in either order"
    call = compile_call(region_of(tables, compile_["compile_key"]))
    remedy, snippet = _remedy(pieces, alone=alone)

    operations = statistics.median(row["op_count"] for row in pieces)
    text = f"{plural(len(pieces), 'piece')} of {operations:.0f} operations"
    known = [row["parameter_bytes"] for row in pieces if row["parameter_bytes"] is not None]
    if known:
        text += f" and {statistics.median(known) / _MIB:.3g} MiB of parameters"
    return Finding(
        code=CODE,
        rule="dd-ddp-splits",
        severity=grade,
        title=f"DDPOptimizer splits {_recompiles.called(compile_)} into {len(pieces)} graphs",
        explanation=(
            "Under DistributedDataParallel torch splits a graph where a gradient bucket is full, "
            "so that the bucket can be reduced while the backward continues. Each piece is "
            f"compiled and entered separately. {gained}"
        ),
        cost=Cost(
            ms_per_step=ms,
            about="wrappers around all pieces but one, and the Python between pieces; what fusing "
            "across the splits would save comes on top",
        ),
        confidence="derived",
        location=call or Owners(tables).code(compile_).place,
        evidence=(
            from_row(f"{text} each (median)", "ddp_buckets", pieces[0]),
            *entered,
            from_row(order, "compiles", compile_),
        ),
        what_to_do=remedy,
        snippet=snippet,
        remedy=("torch._dynamo.config.optimize_ddp=False",) if alone else (),
        about=about(compile_),
    )


def _cost_ms(tables: Tables, compile_: Row, pieces: int) -> tuple[float | None, list[Evidence]]:
    """Milliseconds of the timed step, and what the profile shows of it."""
    path = first_rank(rows(tables, "call_path"))
    own = [row for row in path if row["compile_id"] == compile_["compile_id"]]
    entered = [row for row in own if row["part"] == "runtime_wrappers"]
    calls = sum(row["calls"] or 0.0 for row in entered)
    if not calls:
        return None, []
    each = sum(row["ms"] for row in entered) / calls
    text = f"{calls:.3g} of them entered per step, {milliseconds(each)} each, as profiled"
    evidence = [Evidence(text, "call_path")]
    account = {
        row["category"]: row["ms"]
        for row in first_rank(rows(tables, "accounting", stance="compiled"))
    }
    lost, of = account.get("idle_call_overhead"), {row["part"] for row in path} - {"cache_lookup"}
    if lost is None:  # a CPU's account, by part
        lost, of = sum(account.get(f"overhead_{part}", 0.0) for part in _PARTS), set(_PARTS)
    whole = sum(row["ms"] for row in path if row["part"] in of)
    mine = sum(row["ms"] for row in own if row["part"] in _PARTS)
    return (lost * mine / whole * (1 - 1 / pieces) if whole and account else None), evidence


def _remedy(pieces: list[Row], *, alone: bool) -> tuple[str, Snippet]:
    if alone:
        text = (
            "Turn the splits off where the job is one process. With more ranks they let gradients "
            "be reduced during the backward: measure that job separately."
        )
        return text, Snippet("python", _ONE_GRAPH)
    whole = sum(row["parameter_bytes"] or 0 for row in pieces)
    size = max(_DEFAULT_MB, 5 * math.ceil(whole / MOST_BUCKETS / _MIB / 5))
    text = (
        f"Try fewer and larger buckets, {size} MiB for example: reducing the last one then takes "
        f"longer, and nothing hides it. Or no splits, {_ONE_GRAPH.partition('  #')[0]}: no "
        "gradient is reduced before the whole backward has run. Compare with all ranks of the "
        "real job."
    )
    return text, Snippet("python", f"DistributedDataParallel(model, bucket_cap_mb={size})")
