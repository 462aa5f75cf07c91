"""
## What it finds
A compiled callable that gives a wrong result, and the first stage of the compiler at which it is
wrong.

## Why it costs
The script computes something else than it says, silently.

## Evidence
A trial (`--compare-outputs`): one call, run again on copies. Compiled outputs are beyond the limit
of torch's own comparison (`torch._dynamo.utils.same`), and stay so with eager's random numbers and
eager's roundings. One backend after the other is tried, from `eager` (Dynamo alone) over
`aot_eager` and `aot_eager_decomp_partition` to the script's own. The first that is wrong is named,
if the error is more than `wrong_share` of the values' own root mean square, if elements are NaN or
infinite on one side only, or if there are no such outputs at all. Where eager does not agree with
itself, nothing is said, nor where only whole numbers beside floating-point outputs differ: of equal
values another one may come first.

## What to do
Do not trust this callable's results until it is cleared up. The stage says where to look: at
`eager` Dynamo's capture, at `aot_eager` what operators declare (a custom operator that writes into
an argument must say so in `mutates_args`), from there on torch's decompositions and Inductor. The
backend before the first wrong one is right, and slower. `CompilerBisector` finds the pass, the
minifier makes a small script for a report.

## Settings
- `wrong_share`: root mean square error as part of that of the values, 0 to 1, that no rounding
  explains.

## References
- https://docs.pytorch.org/docs/stable/compile/programming_model.reporting_issues.html
- https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html
- torch/_inductor/compiler_bisector.py
- torch/_dynamo/utils.py, `same`
- https://github.com/pytorch/pytorch/issues/160242
"""

from __future__ import annotations

from collections.abc import Iterator

from traceview.rules import _accuracy, _places, _versions
from traceview.rules._accuracy import Trial
from traceview.rules._rows import Row
from traceview.rules.finding import Finding, Snippet
from traceview.tables import Tables

CODE = "TV703"
NEEDS = frozenset({"output_trials", "output_checks"})

#: Roundings of bfloat16 add up to some percent in deep models; what is beyond is none.
WRONG_SHARE = 0.05
#: `compiler_bisector run COMMAND` is there in 2.13 and not in 2.6; in between nobody looked.
BISECTS_COMMANDS = (2, 13)
_STAGES = {
    "eager": (
        "Dynamo's capture: the graph is run as it was traced, without AOTAutograd and Inductor. "
        "Look for Python state that the function reads and changes."
    ),
    "aot_eager": (
        "AOTAutograd, which takes writes out of the graph. If a custom operator is in it, check "
        "that mutates_args names every argument that it writes into, that it returns no view of an "
        "argument, and that its fake gives the right shapes and strides."
    ),
    "aot_eager_decomp_partition": (
        "decompositions and the cut into forward and backward. Look at the operators that torch, "
        "or the script, decomposes."
    ),
    "inductor": "Inductor: its graph passes, its fusions or its generated code.",
}


def check(tables: Tables, *, wrong_share: float = WRONG_SHARE) -> Iterator[Finding]:
    """At most one finding a callable."""
    for trial in _accuracy.trials(tables):
        unlike = [row for row in trial.judged if not row["same"]]
        failed = trial.fails_at
        if not unlike or failed is None:
            continue
        backend, beyond = failed
        ties = _may_be_ties(trial, beyond)
        wrong = [
            row
            for row in beyond
            if row["output"] not in trial.wavering and not ties and _is_wrong(row, wrong_share)
        ]
        if wrong:
            bisects = not _versions.before(tables, BISECTS_COMMANDS)
            yield _finding(trial, backend, _accuracy.worst(wrong), bisects=bisects)


def _may_be_ties(trial: Trial, beyond: list[Row]) -> bool:
    """Whether only indices differ: of equal values each stage may sort another one first."""
    floating = [row for row in trial.of("compiled") if row["scale"] is not None]
    return bool(floating) and all((row["dtype"] or "").startswith("int") for row in beyond)


def _is_wrong(row: Row, wrong_share: float) -> bool:
    return bool(row["why"] or row["differing"]) or _accuracy.share(row) > wrong_share


def _finding(trial: Trial, backend: str, row: Row, *, bisects: bool) -> Finding:
    climbed = [rung for rung, _ in trial.rungs]
    passed = climbed[: climbed.index(backend)]
    before = f" {_listed(passed)} right." if passed else ""
    return Finding(
        code=CODE,
        rule="acc-backend-bug",
        severity="error",
        title=f'Compiled {trial.name} gives a wrong result, from backend="{backend}" on',
        explanation=(
            f"{_accuracy.told(row)}. Random numbers and roundings are as in eager there.{before} "
            f"So the first to be wrong is {_STAGES.get(backend, 'this backend itself.')}"
        ),
        cost=_accuracy.RESULT,
        confidence="measured",
        location=trial.place,
        evidence=tuple(_accuracy.ladder(trial)),
        what_to_do=_remedy(backend, passed),
        snippet=Snippet("shell", _commands(backend, bisects=bisects)),
        about=_places.about_region(trial.region),
    )


def _listed(passed: list[str]) -> str:
    names = ", ".join(f'"{rung}"' for rung in passed)
    return f"Backend {names} is" if len(passed) == 1 else f"Backends {names} are"


def _remedy(backend: str, passed: list[str]) -> str:
    text = (
        f'Until it is cleared up use backend="{passed[-1]}", which is right and slower, or leave '
        "this callable uncompiled. "
        if passed
        else "Leave this callable uncompiled until it is cleared up. "
    )
    if backend == "inductor":
        return text + (
            "To find the pass, let CompilerBisector run a check of yours that ends with an error "
            "where the result is wrong; the minifier makes a small script for a report."
        )
    return text + "The minifier makes a small script for a report."


def _commands(backend: str, *, bisects: bool) -> str:
    after = "aot" if backend == "inductor" else "dynamo"
    minify = f"TORCHDYNAMO_REPRO_AFTER={after} TORCHDYNAMO_REPRO_LEVEL=4 python SCRIPT"
    if backend != "inductor" or not bisects:
        return minify
    return f"python -m torch._inductor.compiler_bisector run python CHECK\n{minify}"
