"""
## What it finds
Steps in which cuDNN times its algorithms for a convolution before it runs one.

## Why it costs
With `torch.backends.cudnn.benchmark = True` the first convolution of each input size tries every
algorithm that fits, forward and backward, and waits for each. Later ones of that size run the
fastest. Where nearly every step has a new size, nothing is ever run a second time: the search takes
many times the step that it is for, and compiling changes nothing about it.

## Evidence
Profiled convolutions that wait for the GPU between the kernels which they launch: one whose
algorithm is known waits for nothing. The cost is the time in which the GPU waits for the host
meanwhile; what the tried kernels take comes on top. The setting and the line that makes it are
listed where they were recorded.

## What to do
Leave `torch.backends.cudnn.benchmark` off where sizes change all the time, or pad the inputs to a
few sizes: each is then searched for once.

## References
- https://docs.pytorch.org/docs/stable/backends.html
- https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- torch/backends/cudnn/__init__.py
- aten/src/ATen/native/cudnn/Conv_v8.cpp, `try_plans`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._starts import setting_line
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Snippet,
    Tables,
    first_rank,
    from_row,
    milliseconds,
    plural,
    rows,
    severity,
    short,
)

CODE = "TV504"
NEEDS = frozenset({"host_stalls", "step_counts"})
SEVERITIES = ("warning", "info")
GPU_ONLY = True

_SETTING = "cudnn.benchmark"


def check(tables: Tables) -> Iterator[Finding]:
    """At most one finding: all searches of a step."""
    found = first_rank(rows(tables, "host_stalls", kind="search"))
    if not found:
        return
    ms = sum(row["ms"] for row in found)
    settings = first_rank(rows(tables, "environment", name=_SETTING, value="True"))
    lines = [Location(row["file"], row["line"]) for row in found if row["file"] and row["line"]]
    places = [place for place in (setting_line(tables, _SETTING), *lines) if place is not None]
    at = f" ({short(places[0])})" if places else ""
    sizes = first_rank(rows(tables, "input_sizes"))
    evidence = [
        Evidence(
            f"{row['what']}: {plural(round(row['count'] or 1.0), 'call')} per step, "
            f"in which the GPU waits {milliseconds(row['ms'])}",
            "host_stalls",
        )
        for row in found[:2]
    ]
    evidence += [from_row(f"{_SETTING}: {row['value']}", "environment", row) for row in settings]
    if len(sizes) > 1:
        calls = sum(row["calls"] or 0 for row in sizes)
        text = f"{len(sizes)} combinations of sizes in {plural(calls, 'watched call')}"
        evidence.append(Evidence(text, "input_sizes"))
    yield Finding(
        code=CODE,
        rule="ap-algorithm-search",
        severity=severity(tables, ms),
        title=f"cuDNN searches for the fastest convolution in each step{at}",
        explanation=(
            "For every input size that it has not seen yet, cuDNN times all of its algorithms "
            f"before it runs one. The GPU waits {milliseconds(ms)} of a step for that, in eager "
            "and compiled alike."
        ),
        cost=Cost(ms, None, "time of a compiled step in which the GPU waits for the search"),
        confidence="measured",
        location=places[0] if places else None,
        evidence=tuple(evidence),
        what_to_do=(
            "Leave cudnn.benchmark off where the sizes of inputs change all the time, or pad the "
            "inputs to a few sizes: each is searched for once."
        ),
        snippet=Snippet("python", "torch.backends.cudnn.benchmark = False"),
        also_at=tuple(places[1:4]),
    )
