"""
## What it finds
A compiled callable whose outputs differ from eager's because of rounding, not because of a mistake.

## Why it costs
No time. Fused code keeps intermediate values in float32 where eager rounds each of them to bfloat16
or float16, and adds in another order. So results differ, and a test against eager, or a model that
depends on such digits, may fail. Usually the compiled result is the more exact one.

## Evidence
A trial (`--compare-outputs`): one call, run again in eager, compiled and in float64. Information
where the outputs differ by more than `noticeable_share` of their own root mean square and both are
about as far from float64. A warning where compiled is more than `worse_times` times as far from it
as eager, and agrees once eager's roundings are emulated.

Torch does not promise that compiled results equal eager's bit by bit.

## What to do
Nothing, where compiled is as close to float64 as eager. To compare against eager, set
`TORCHINDUCTOR_EMULATE_PRECISION_CASTS=1`: generated code then rounds where eager does, and is
slower. Compute differences of large numbers in float32.

## Settings
- `noticeable_share`: root mean square of the difference from eager, as part of that of the values
  (0 to 1), from which it is reported.
- `worse_times`: how many times eager's error against float64 is a warning.

## References
- https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
- torch/_inductor/config.py, `emulate_precision_casts`
- torch/_dynamo/utils.py, `same`
- https://github.com/pytorch/pytorch/pull/131595
- https://github.com/pytorch/pytorch/issues/141727
- https://github.com/pytorch/pytorch/issues/168186
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules._accuracy import RESULT, Compared, compared, described, worst
from traceview.rules.kit import Evidence, Finding, Row, Snippet, Tables, about_region

CODE = "TV701"
NEEDS = frozenset({"output_verdicts", "output_checks"})
SEVERITIES = ("warning", "info")

#: bfloat16 keeps a value to 0.4 % of its size; a few roundings more or less do not matter.
NOTICEABLE_SHARE = 0.02
#: What torch's own comparison allows in low precision.
WORSE_TIMES = 3.0
_LOW = ("bfloat16", "float16")
_EMULATE = "TORCHINDUCTOR_EMULATE_PRECISION_CASTS=1"


def check(
    tables: Tables,
    *,
    noticeable_share: float = NOTICEABLE_SHARE,
    worse_times: float = WORSE_TIMES,
) -> Iterator[Finding]:
    """At most one finding for each callable: its worst output."""
    for found in compared(tables):
        known = [
            row
            for row in found.judged
            if row["rmse"] is not None
            and row["eager_rmse"] is not None
            and row["output"] not in found.verdict["wavering"]
            and not row["differing"]
        ]
        worse = [
            row
            for row in known
            if found.verdict["ladder_agrees"]
            and not row["same"]
            and row["rmse"] > worse_times * row["eager_rmse"]
        ]
        unlike = [
            row
            for row in known
            if row["same"] and row["scale"] and row["rms_diff"] > noticeable_share * row["scale"]
        ]
        if worse:
            yield _finding(found, worst(worse), worse=True)
        elif unlike:
            yield _finding(found, worst(unlike), worse=False)


def _finding(found: Compared, row: Row, *, worse: bool) -> Finding:
    times = row["rmse"] / row["eager_rmse"] if row["eager_rmse"] else None
    if worse:
        how = f"is {times:.1f} times as far from float64 as eager" if times else "is less exact"
        explained = "With eager's roundings emulated, compiled is within the limits."
        what_to_do = (
            "Keep this part in float32 (differences of large numbers, long sums), or set "
            f"{_EMULATE} if results have to be eager's: generated code is slower with it."
            if row["dtype"] in _LOW
            else f"Compiled with eager's roundings it agrees: try {_EMULATE}, and compute "
            "differences of large numbers and long sums in float64."
        )
    else:
        closer = times is not None and times < 1 / 2
        how = f"differs from eager by up to {row['max_abs_diff']:.2g} and is " + (
            "closer to float64" if closer else "about as close to float64"
        )
        explained = (
            "So the difference is rounding: fused code rounds less often than eager, and adds in "
            "another order."
        )
        what_to_do = (
            f"Nothing is wrong. For a comparison against eager set {_EMULATE}: generated code then "
            "rounds where eager does, which makes it slower."
        )
    return Finding(
        code=CODE,
        rule="acc-low-precision",
        severity="warning" if worse else "info",
        title=f"Compiled {found.name} {how} ({row['dtype']})",
        explanation=(
            f"Against the same call in float64 the error is {row['rmse']:.2g} compiled and "
            f"{row['eager_rmse']:.2g} in eager (root mean square; the values' own is "
            f"{row['scale']:.2g}). {explained}"
        ),
        cost=RESULT,
        confidence="measured",
        location=found.place,
        evidence=(Evidence(described(row), "output_checks"), *found.proof()),
        what_to_do=what_to_do,
        snippet=Snippet("shell", f"{_EMULATE} python SCRIPT"),
        remedy=("torch._inductor.config.emulate_precision_casts=True",) if worse else (),
        about=about_region(found.region),
    )
