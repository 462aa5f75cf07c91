"""
## What it finds
A custom operator in compiled code whose own code, Python or numpy, takes much of the step.

## Why it costs
The compiler can't look into a custom operator: its body runs as it is, in eager and compiled steps
alike. A body that computes on the host copies its inputs from the GPU and waits for them; the GPU
has nothing to do until it returns. No graph break shows it.

## Evidence
In the profiler window, the time between the operator's start and the operators and calls inside it,
on the step as timed. With a GPU, only stretches longer than 0.1 ms count, as they are no launching,
and only as far as the device waits: a warning where that is 5 % of the step or more. On a CPU it is
information, at 30 % of the step or more, where its body is Python of the script's own. The line is
the one of the body with most time.

## What to do
Write the body with torch's operators, on the tensors' own device: `torch.median`, `sort`,
`scatter`. Then it needs no custom operator, and is compiled with the rest. Or write a Triton
kernel. What has to run on the host can run ahead, in a thread or a DataLoader's workers.

## Settings
- `least_share`: on a CPU, part of a compiled step that it must take, 0 to 1.

## References
- https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html
- torch/_library/custom_ops.py
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules.kit import (
    Cost,
    Evidence,
    Finding,
    Location,
    Row,
    Tables,
    first_rank,
    milliseconds,
    percent,
    rows,
    severity,
    short,
    step_ms,
)

CODE = "TV422"
#: The lines of an operator's own Python are those of eager steps.
NEEDS = frozenset({"host_stalls", "step_counts:eager"})
SEVERITIES = ("warning", "info")

LEAST_SHARE = 0.30


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """One finding for each operator, most expensive first."""
    step = step_ms(tables, "compiled")
    found: dict[str, list[Row]] = {}
    for row in first_rank(rows(tables, "host_stalls", kind="custom_op")):
        found.setdefault(row["what"], []).append(row)
    tuned = {row["operator"] for row in rows(tables, "kernel_tunings")}  # TV504 reports these
    for name, mine in found.items():
        ms, first = sum(row["ms"] for row in mine), mine[0]
        place = _place(first["file"], first["line"])
        call = _place(first["call_file"], first["call_line"])
        of_device = first["clock"] == "device"
        if not step or name in tuned or (of_device and severity(tables, ms) != "warning"):
            continue
        if not of_device and (ms < least_share * step or place in (None, call)):
            continue
        share = percent(min(1.0, ms / step))
        called = f", called at {short(call)}" if call else ""
        yield Finding(
            code=CODE,
            rule="ap-custom-op-on-host",
            severity="warning" if of_device else "info",
            title=(
                f"The GPU waits for {share} of a step while custom operator {name} runs on the host"
                if of_device
                else f"{share} of a step is custom operator {name}: compiling cannot shorten that"
            ),
            explanation=(
                f"Its own code takes {milliseconds(ms)} of {milliseconds(step)}. The compiler "
                "can't look into it: it runs as it does in eager."
            ),
            cost=Cost(ms, None, "time of a compiled step in the operator's own code"),
            confidence="measured",
            location=place or call,
            evidence=(
                Evidence(
                    f"{name}{called}: {first['count'] or 1:.3g} per step, {milliseconds(ms)} "
                    "outside of the operators and calls inside it",
                    "host_stalls",
                ),
            ),
            what_to_do=(
                "Write its body with torch operators on the tensors' own device, so that it is "
                "compiled with the rest, or as a Triton kernel."
            ),
            also_at=(call,) if call and call != place and place else (),
            weighs=True,
        )


def _place(file: str | None, line: int | None) -> Location | None:
    return Location(file, line) if file and line is not None else None
