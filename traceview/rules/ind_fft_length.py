"""
## What it finds
Fourier transforms of a length with a large prime factor, which the next length without one would do
in less time.

## Why it costs
Libraries (MKL, pocketfft, cuFFT) split a transform by the factors of its length and have code for
small ones. A length such as 32,749, a prime, is computed by another transform of more than twice
that length (Bluestein's algorithm). `torch.compile` leaves transforms to these libraries.

## Evidence
The profiled step has a transform of a length with a factor above 13. At the script's end it is
timed on random data, as it is and with the next even length that has the factors 2, 3 and 5 only.
The saving is that part of the transforms in a compiled step.

## What to do
Where the transform is part of a convolution or a correlation, any length will do that is as long as
the result: pad to a fast one (`n=`), and cut the result as before. A signal that has to have that
many samples can't be padded: its spectrum would have other frequencies.

## Settings
- `least_share`: part of the compiled step, 0 to 1, that the other length must save.

## References
- https://docs.pytorch.org/docs/stable/generated/torch.fft.rfft.html
- https://docs.scipy.org/doc/scipy/reference/generated/scipy.fft.next_fast_len.html
- https://docs.nvidia.com/cuda/cufft/index.html
- torch/_refs/fft.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traceview.rules._gain import Timed, at_first, locations
from traceview.rules.kit import (
    Evidence,
    Finding,
    Snippet,
    Tables,
    first_rank,
    milliseconds,
    percent,
    rows,
    severity,
    step_ms,
)
from traceview.torchtext.fx import read_graph

CODE = "TV433"
NEEDS = frozenset({"shape_gains", "graphs", "kernel_groups", "step_counts"})
SEVERITIES = ("warning", "info")

#: A smaller gain is hard to tell from noise.
LEAST_SHARE = 0.05
_TRANSFORM = "aten::_fft_"
_LENGTH = "length "
#: A length that the call asks for: the input may be padded to it.
_ASKED = re.compile(r"\b[ns] = ")


def check(tables: Tables, *, least_share: float = LEAST_SHARE) -> Iterator[Finding]:
    """At most one finding: all transforms of such lengths."""
    gains = first_rank(rows(tables, "shape_gains", kind="fft"))
    groups = first_rank(rows(tables, "kernel_groups", stance="compiled"))
    step = step_ms(tables, "compiled")
    if not gains or not step:
        return
    spent = sum(
        row["ms"] for row in groups if (row["cpu_op"] or row["name"]).startswith(_TRANSFORM)
    )
    timed = Timed.of(tables, gains, spent)
    saved = timed.saved
    if saved < least_share * step:
        return
    calls = _calls(tables)
    places = locations(calls)
    trials = [r for r in first_rank(rows(tables, "shape_trials")) if r["op"].startswith(_TRANSFORM)]
    slow = max(trials, key=lambda row: row["value"] * row["count"])
    work = slow["op"], slow["shape"]
    ways = [row["way"] for row in trials if (row["op"], row["shape"]) == work]
    way = next(each for each in ways if each.startswith(_LENGTH))
    fast = way.removeprefix(_LENGTH)
    padded = f"rfft(x, n={fast})"
    if not fast.isdecimal():  # of several dimensions
        padded = f"rfftn(x, s=({fast.replace('x', ', ')}))"
    at = at_first(*places)
    measured = timed.said("as it is", f"with {way}")
    yield Finding(
        code=CODE,
        rule="ind-fft-length",
        severity=severity(tables, saved) if any(calls.values()) else "info",
        title=(
            f"The Fourier transform{at} has a slow length: {fast} would save "
            f"{milliseconds(saved)}, {percent(saved / step)} of the step"
        ),
        explanation=(
            f"A signal of {slow['shape']} has a length with a large prime factor. The library then "
            "computes a transform of more than twice that length."
        ),
        cost=timed.cost("transforms", measured),
        confidence="measured",
        location=places[0] if places else None,
        evidence=(Evidence(f"{slow['op']} of {slow['shape']}: {measured}", "shape_trials"),),
        what_to_do=(
            "If it is for a convolution or correlation, pad to the fast length and cut the result "
            "as before. Leave it if the spectrum has to have just that many frequencies."
        ),
        snippet=Snippet("python", f"torch.fft.{padded}"),
        also_at=tuple(places[1:4]),
        weighs=True,
    )


def _calls(tables: Tables) -> dict[str, bool]:
    """Line of a transform in compiled code → whether one there asks for a length."""
    found: dict[str, bool] = {}
    for row in first_rank(rows(tables, "graphs", kind="dynamo_output")):
        if "_fft." not in (row["text"] or ""):
            continue
        for node in read_graph(row["text"]).operations:
            if "._fft." in node.target and node.user_line:
                asks = _ASKED.search(node.args) is not None
                found[node.user_line] = found.get(node.user_line, False) or asks
    return found
