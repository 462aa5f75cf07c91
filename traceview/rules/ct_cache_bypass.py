"""
## What it finds
Graphs that torch's compile caches bypass, because something in them has no name that would be the
same in another process.

## Why it costs
A bypassed graph is compiled again at every start and in every worker process. Keeping or shipping a
cache does not help.

## Evidence
Look-ups of the FX graph cache or of AOTAutograd's cache that ended as a bypass, with torch's own
reason, and the time that these compiles spent in what was not cached: AOTAutograd and Inductor, or
AOTAutograd alone where Inductor's code was cached. In a first start every graph is compiled, so
this is a cost only where a second start on the warm cache was recorded (`--warm`) and bypassed the
cache again.

A warning where it is a cost of at least a quarter of a job whose length is known. Otherwise
information.
Where Dynamo's DDP optimizer has split the graph, AOTAutograd's cache is always bypassed: that is
not reported.

## What to do
It depends on the reason. A custom pass has to be a `CustomGraphPass` whose `uuid()` names its
version; a `context_fn` of selective checkpointing needs a `cache_hash`.

## Settings
- `least_seconds`: smaller costs are not reported

## References
- https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html
- torch/_inductor/custom_graph_pass.py, `CustomGraphPass`
- torch/_inductor/codecache.py, `CacheabilityValidator`
- torch/_functorch/_aot_autograd/autograd_cache.py, `check_cacheable`
- https://github.com/pytorch/pytorch/pull/133826
- https://github.com/pytorch/pytorch/pull/134792
- https://github.com/torch-spyre/torch-spyre/issues/1346
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from traceview.rules import _starts
from traceview.rules.kit import (
    Cost,
    Finding,
    Owners,
    Snippet,
    Tables,
    about,
    from_row,
    plural,
    rows,
    seconds,
    shorten,
)
from traceview.tables import grouped

CODE = "TV604"
NEEDS = frozenset({"cache_events", "compiles"})
SEVERITIES = ("warning", "info")

#: Less than half a second is not noticeable.
LEAST_SECONDS = 0.5
#: Reported by ct-cache-disabled, or intended: the bisector compiles on purpose.
_SAID_ELSEWHERE = re.compile(r"cache is not enabled|not enabled|bisector", re.IGNORECASE)


class _Remedy(NamedTuple):
    """What to do where torch's reason matches; ``settings`` whose line in the source is meant."""

    reason: re.Pattern[str]
    words: str
    code: str | None = None
    settings: tuple[str, ...] = ()


_PASSES = (
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
    "joint_custom_pre_pass",
    "joint_custom_post_pass",
    "pre_grad_custom_pass",
)
_FUSION_PASSES = ("_pre_fusion_custom_pass", "_post_fusion_custom_pass")
_REMEDIES = (
    _Remedy(
        re.compile(r"Unsupported (?:pre grad|post grad|joint) custom pass"),
        "Make the pass a CustomGraphPass: its uuid() names the version, so that torch can "
        "distinguish the graphs that it changed. Give it a new name whenever its code changes: "
        "otherwise torch loads what the old one made.",
        "from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files\n\n"
        "class Pass(CustomGraphPass):\n    def __call__(self, graph): ...  # as now\n"
        "    def uuid(self):\n        return get_hash_for_files((__file__,))",
        _PASSES,
    ),
    _Remedy(
        re.compile(r"Unsupported _(?:pre|post)_fusion_custom_pass"),
        "Make the pass a CustomSchedulerPass with a uuid() that names its version.",
        None,
        _FUSION_PASSES,
    ),
    _Remedy(
        re.compile(r"SAC context_fn"),
        "Give the context_fn of the checkpoint an attribute cache_hash: any value that changes "
        "when its policy does.",
        'context_fn.cache_hash = "policy-1"',
    ),
    _Remedy(
        re.compile(r"freezing|frozen|mkldnn tensors"),
        "Freezing puts the weights into the code, packed for a library's kernels, and such a graph "
        "is not cached. Without freezing it is; measure whether the step gets slower.",
        None,
        ("freezing", "TORCHINDUCTOR_FREEZING"),
    ),
    _Remedy(
        re.compile(r"activation_memory_budget_(?:runtime_estimator|solver)"),
        "Give torch an object with a uuid() that names its version, not a bare function.",
        None,
        ("activation_memory_budget_runtime_estimator", "activation_memory_budget_solver"),
    ),
    _Remedy(
        re.compile(""),  # any other reason
        "Move what torch's reason names out of the compiled function if possible; the rest can "
        "then be cached.",
    ),
)


def check(tables: Tables, *, least_seconds: float = LEAST_SECONDS) -> Iterator[Finding]:
    """One finding a reason."""
    bypasses = [
        row
        for row in rows(tables, "cache_events", event="bypass")
        if row["reason"] and not _SAID_ELSEWHERE.search(row["reason"])
    ]
    split = {row["compile_key"] for row in rows(tables, "graphs", kind="ddp_split")}
    inductor = {row["compile_key"]: row["reason"] for row in bypasses if row["cache"] == "fx_graph"}
    # Where Inductor's cache was bypassed too, its reason counts: it costs more.
    found = (
        row
        for row in bypasses
        if row["cache"] == "fx_graph"
        or row["reason"] == inductor.get(row["compile_key"])
        or row["compile_key"] not in (inductor.keys() | split)
    )
    warm = tables["cache_events"].filter(pl.col("pass") == "warm", pl.col("event") == "bypass")
    again = {shorten(reason) for reason in warm["reason"].drop_nulls()}
    for reason, events in grouped(found, by=lambda row: shorten(row["reason"])).items():
        inductor_too = any(row["cache"] == "fx_graph" for row in events)
        keys = {row["compile_key"] for row in events}
        compiles = _starts.of_keys(tables, keys)
        spent = _starts.backend_seconds(compiles) - _starts.once_seconds(tables, keys)
        if not inductor_too:
            spent = _starts.autograd_seconds(compiles)
        if spent < least_seconds:
            continue

        said = [
            (f"{row['cache']} cache, compile {row['compile_id']}: {reason}", row) for row in events
        ]
        remedy = next(known for known in _REMEDIES if known.reason.search(reason))
        if remedy.settings:
            place = _starts.setting_place(tables, *remedy.settings)
        else:  # the function whose graphs are not kept
            place = Owners(tables).code(compiles[0]).place if compiles else None
        what = "torch's compile caches bypass" if inductor_too else "AOTAutograd's cache bypasses"
        whose = "AOTAutograd and Inductor" if inductor_too else "AOTAutograd"
        yield Finding(
            code=CODE,
            rule="ct-cache-bypass",
            severity=_starts.severity(tables, spent) if reason in again else "info",
            title=f"{what} {plural(len(keys), 'compile')}: {reason.rstrip('.')}",
            explanation=(
                f"torch cannot cache these graphs, so every start repeats {seconds(spent)} of "
                "compilation."
            ),
            cost=Cost(
                seconds=spent if reason in again else None,
                about=f"{seconds(spent)} in {whose}, at every start after the first",
            ),
            confidence="derived",
            location=place,
            evidence=tuple(from_row(text, "cache_events", row) for text, row in said[:2]),
            what_to_do=remedy.words,
            snippet=Snippet("python", remedy.code) if remedy.code else None,
            about=about(*compiles),
        )
