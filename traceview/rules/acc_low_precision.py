"""
## What it finds
A compiled callable whose outputs differ from eager's for want of digits, not by a mistake.

## Why it costs
No time. Fused code keeps intermediate values in float32 where eager rounds each of them to bfloat16
or float16, and adds in another order. So results differ, and a test against eager, or a model that
hangs on such digits, may fail. As a rule the compiled result is the more exact one.

## Evidence
A trial (`--compare-outputs`): one call, run again in eager, compiled and in float64. Information
where the outputs differ by more than `noticeable_share` of their own root mean square and both lie
about as far from float64. A warning where compiled is more than `worse_times` times as far from it
as eager, and agrees once eager's roundings are emulated.

Torch does not promise that compiled results equal eager's bit by bit.

## What to do
Nothing, where compiled is as close to float64 as eager. To compare against eager, set
`TORCHINDUCTOR_EMULATE_PRECISION_CASTS=1`: generated code then rounds where eager does, and is
slower. Differences of large numbers belong into float32.

## Settings
- `noticeable_share`: root mean square of the difference from eager, as part of that of the values
  (0 to 1), from which it is said.
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

from traceview.rules import _accuracy, _places
from traceview.rules._accuracy import Trial
from traceview.rules._rows import Row
from traceview.rules.finding import Evidence, Finding, Snippet
from traceview.tables import Tables

CODE = "TV701"
NEEDS = frozenset({"output_trials", "output_checks"})

#: In bfloat16 a value has 0.4 % of its size; a few roundings more or less nobody looks for.
NOTICEABLE_SHARE = 0.02
#: What torch's own comparison allows in low precision.
WORSE_TIMES = 3.0
_EMULATE = "TORCHINDUCTOR_EMULATE_PRECISION_CASTS=1"


def check(
    tables: Tables,
    *,
    noticeable_share: float = NOTICEABLE_SHARE,
    worse_times: float = WORSE_TIMES,
) -> Iterator[Finding]:
    """At most one finding a callable: its worst output."""
    for trial in _accuracy.trials(tables):
        known = [
            row
            for row in trial.judged
            if row["rmse"] is not None
            and row["eager_rmse"] is not None
            and row["output"] not in trial.wavering
            and not row["differing"]
        ]
        worse = [row for row in known if trial.rounds_elsewhere and _is_worse(row, worse_times)]
        unlike = [row for row in known if row["same"] and _differs(row, noticeable_share)]
        if worse:
            yield _finding(trial, _accuracy.worst(worse), worse=True)
        elif unlike:
            yield _finding(trial, _accuracy.worst(unlike), worse=False)


def _is_worse(row: Row, worse_times: float) -> bool:
    return not row["same"] and row["rmse"] > worse_times * row["eager_rmse"]


def _differs(row: Row, noticeable_share: float) -> bool:
    return bool(row["scale"]) and row["rms_diff"] > noticeable_share * row["scale"]


def _finding(trial: Trial, row: Row, *, worse: bool) -> Finding:
    dtype = row["dtype"]
    return Finding(
        code=CODE,
        rule="acc-low-precision",
        severity="warning" if worse else "info",
        title=f"Compiled {trial.name} {_how(row, worse=worse)} ({dtype})",
        explanation=(
            f"Against the same call in float64 the error is {row['rmse']:.2g} compiled and "
            f"{row['eager_rmse']:.2g} in eager (root mean square; the values' own is "
            f"{row['scale']:.2g}). "
            + (
                "With eager's roundings emulated, compiled is within the limits."
                if worse
                else "So it is a matter of rounding: fused code rounds less often than eager, and "
                "adds in another order."
            )
        ),
        cost=_accuracy.RESULT,
        confidence="measured",
        location=trial.place,
        evidence=(
            Evidence(_accuracy.told(row), "output_checks"),
            *_accuracy.ladder(trial),
        ),
        what_to_do=_remedy(dtype, worse=worse),
        snippet=Snippet("shell", f"{_EMULATE} python SCRIPT"),
        about=_places.about_region(trial.region),
    )


def _how(row: Row, *, worse: bool) -> str:
    times = row["rmse"] / row["eager_rmse"] if row["eager_rmse"] else None
    if worse:
        return f"is {times:.1f} times as far from float64 as eager" if times else "is less exact"
    text = f"differs from eager by up to {row['max_abs_diff']:.2g} and is"
    if times is not None and times < 1 / 2:
        return f"{text} closer to float64"
    return f"{text} about as close to float64"


def _remedy(dtype: str, *, worse: bool) -> str:
    if not worse:
        return (
            f"Nothing is wrong. For a comparison against eager set {_EMULATE}: generated code then "
            "rounds where eager does, which makes it slower."
        )
    if dtype in _accuracy.LOW:
        return (
            f"Keep this part in float32 (differences of large numbers, long sums), or set "
            f"{_EMULATE} if results have to be those of eager: generated code is slower with it."
        )
    return (
        "Compiled afresh with eager's roundings it agrees: try "
        f"{_EMULATE}, and compute differences of large numbers and long sums in float64."
    )
