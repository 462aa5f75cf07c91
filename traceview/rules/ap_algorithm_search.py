"""
## What it finds
Steps in which cuDNN times its algorithms for a convolution before it runs one, or in which
`@triton.autotune` times the configurations of a Triton kernel.

## Why it costs
With `torch.backends.cudnn.benchmark = True` the first convolution of each input size tries every
algorithm that fits, forward and backward, and waits for each. Later ones of that size run the
fastest. Where nearly every step has a new size, nothing is ever run a second time: the search takes
many times the step that it is for, and compiling changes nothing about it. A Triton kernel's
autotuner does the same for each new value of the arguments in its `key`, and of their dtypes: it
runs every configuration many times, clears the cache before each and waits.

## Evidence
Profiled convolutions that wait for the GPU between the kernels which they launch: one whose
algorithm is known waits for nothing. The cost is the time in which the GPU waits for the host
meanwhile; what the tried kernels take comes on top. The setting and the line that makes it are
listed where they were recorded.

Kernels with an `autotune` decorator in the script's source that at least half of the profiled steps
launch many times in a row, with events and waits for the GPU between the launches. The cost is the
time from the first of these launches to the last.

## What to do
Leave `torch.backends.cudnn.benchmark` off where sizes change all the time, or pad the inputs to a
few sizes: each is then searched for once. Take arguments out of `key` that change all the time and
do not decide which configuration is best, or round them there to a few values.

## References
- https://docs.pytorch.org/docs/stable/backends.html
- https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- https://triton-lang.org/main/python-api/generated/triton.autotune.html
- torch/backends/cudnn/__init__.py
- aten/src/ATen/native/cudnn/Conv_v8.cpp, `try_plans`
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.derive.facts.rows import timed_scale
from traceview.rules._starts import setting_line
from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Snippet,
    Tables,
    first_rank,
    from_row,
    milliseconds,
    percent,
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
#: A kernel that is tuned in fewer of the steps is tuned for what is new in these.
_MOST_STEPS = 0.5


def check(tables: Tables) -> Iterator[Finding]:
    """One finding on each kernel that is tuned, and one on all searches of a step."""
    accounts = first_rank(rows(tables, "accounting", stance="compiled", clock="device"))
    timed, profiled = (sum(row[name] or 0.0 for row in accounts) for name in ("ms", "profiled_ms"))
    for row in first_rank(rows(tables, "kernel_tunings")):
        if row["steps"] >= _MOST_STEPS and (scale := timed_scale(timed, profiled)):
            yield _tuned(tables, row, row["ms"] * scale)
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


def _tuned(tables: Tables, row: Row, ms: float) -> Finding:
    places = [Location(row["file"], row["line"])]
    if row["call_file"] and row["call_line"]:
        places.append(Location(row["call_file"], row["call_line"]))
    keys = " and ".join(row["keys"])
    whose = f" inside custom operator {row['operator']}" if row["operator"] else ""
    often = "each step" if row["steps"] >= 1 else f"{percent(row['steps'])} of the steps"
    several = len(row["keys"]) > 1
    return Finding(
        code=CODE,
        rule="ap-algorithm-search",
        severity=severity(tables, ms),
        title=(
            f"Triton kernel {row['kernel']} is tuned again in {often} "
            f"({short(places[0])}): key {keys or 'of the decorator'} has new values"
        ),
        explanation=(
            f"@triton.autotune times all configurations of a kernel for each new value of its key"
            f"{f', {keys}' if keys else ''}. That runs it "
            f"{row['launches']:.0f} times per step{whose}, in eager and compiled alike."
        ),
        cost=Cost(
            ms, None, "time of a compiled step from the first launch of a tuning to the last"
        ),
        confidence="derived",
        location=places[0],
        evidence=(
            Evidence(
                f"{row['kernel']}: {row['launches']:.0f} launches per step in "
                f"{plural(row['configurations'], 'configuration')}, {row['waits']:.0f} waits for "
                "the GPU between them",
                "kernel_tunings",
            ),
        ),
        what_to_do=(
            f"Take {keys or 'what changes'} out of key where the best configuration does not "
            f"depend on {'them' if several else 'it'}. Where it does, pass a rounded value as an "
            "argument of its own, such as the next power of two, and list that in key."
        ),
        also_at=tuple(places[1:]),
        weighs=True,
    )
